"""Twelve Python threads that compute, wait and allocate; prints "ready", ends with its input, and
prints a digest of what they computed."""

import hashlib
import queue
import sys
import threading
import time

STEPS = 400
results = {}
stop = threading.Event()


def compute(name):
    digest = hashlib.sha256()
    values = []
    for step in range(STEPS):
        values = [value * 1.000001 + step for value in values[-50:]] + [float(step)]
        text = " ".join(f"{value:.9e}" for value in values)
        digest.update(text.encode())
        if step % 7 == 0:
            time.sleep(0.0005)
    results[name] = digest.hexdigest()


def endless(name, inbox):
    count = 0
    while not stop.is_set():
        try:
            inbox.get(timeout=0.002)
        except queue.Empty:
            pass
        count += sum(len(str(number)) for number in range(200))
    results[name] = "ended" if count else "idle"


def main():
    inbox = queue.Queue()
    background = [threading.Thread(target=endless, args=(f"endless {n}", inbox)) for n in range(4)]
    for thread in background:
        thread.start()
    print("ready", flush=True)
    listener = threading.Thread(target=lambda: (sys.stdin.read(), stop.set()))
    listener.start()
    rounds = 0
    first = None
    while rounds == 0 or not stop.is_set():
        results.clear()
        workers = [threading.Thread(target=compute, args=(n,)) for n in range(8)]
        for thread in workers:
            thread.start()
        for thread in workers:
            thread.join()
        now = [results[n] for n in range(8)]
        first = first or now
        if now != first:
            print("errors 1", flush=True)
        rounds += 1
    for thread in background:
        thread.join()
    print("digest", first[0], "errors", 0 if all(text == first[0] for text in first) else 1, flush=True)


main()
