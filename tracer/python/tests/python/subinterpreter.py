"""A thread that runs code in a second interpreter and blocks there.

Prints a line once it does; "none" where this Python cannot do that.
"""
import os
import sys
import threading

try:
    import _interpreters as interpreters  # 3.13
except ImportError:
    import _xxsubinterpreters as interpreters

out, inside = os.pipe()
hold, release = os.pipe()
SOURCE = """
import os
def within():
    os.write({}, b".") and os.read({}, 1)
within()
""".format(inside, hold)


def run():
    try:
        other = interpreters.create("legacy")
    except (TypeError, ValueError):
        other = interpreters.create()
    # 3.13 has a new name for it, and takes a function or a str.
    execute = getattr(interpreters, "exec", None) or interpreters.run_string
    execute(other, SOURCE)


thread = threading.Thread(target=run)
thread.start()
os.read(out, 1)
print("inside", flush=True)
sys.stdin.read()
os.close(release)
thread.join()
