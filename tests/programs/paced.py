"""Runs a script's loop over range(LEAKCASE_STEPS) to a given step, waits for an attach, goes on for a
given number of steps, and stands still.

usage: paced.py AT WATCHED SCRIPT
Prints "ready" at step AT and waits for a line; prints "watched" WATCHED steps later and waits for a line;
then ends without tidying up.
"""
import os
import sys

at, watched = int(sys.argv.pop(1)), int(sys.argv.pop(1))
script = sys.argv.pop(1)
sys.argv[0] = script
sys.path[0] = os.path.dirname(script)
steps = int(os.environ.get("LEAKCASE_STEPS", "300"))
assert steps > at + watched


def paced(*arguments):
    """`range`, with a word at the two steps if it is the loop over all of them."""
    if arguments != (steps,):
        yield from range(*arguments)
        return
    for step in range(steps):
        if step == at:
            print("ready", flush=True)
            sys.stdin.readline()
        if step == at + watched:
            print("watched", flush=True)
            sys.stdin.readline()
            os._exit(0)
        yield step


with open(script, encoding="utf-8") as file:
    code = compile(file.read(), script, "exec")
exec(code, {"__name__": "__main__", "__file__": script, "range": paced})
