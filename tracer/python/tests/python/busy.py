"""Threads that never rest: every frame and code object is short-lived."""
import sys
import threading

done = threading.Event()


def recurse(n):
    return 1 if n == 0 else 1 + recurse(n - 1)


def generate(n):
    for i in range(n):
        yield from (recurse(i % 7) for _ in range(2))


def work():
    while not done.is_set():
        sum(generate(20))
        space = {}
        exec("def made():\n    return recurse(3)\n", {"recurse": recurse}, space)
        space["made"]()


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
print("started", flush=True)
sys.stdin.read()
done.set()
for thread in threads:
    thread.join()
