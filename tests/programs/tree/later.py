"""Starts a copy of a program that uses the GPU after other processes have come and gone.

usage: later.py
Prints "ready". For each line "many N" it starts N processes that end at once, one after the other, and prints
"many done"; for each line "copy" a copy of itself, which takes memory on the GPU, says "begun PID" and goes on
to take and give back a little. With "more PID" it takes more that it keeps, and says
"copy PID allocated A reserved S". "end" ends all.
"""
import os
import select
import sys

import torch


def say(text):
    """One write, so that lines of several processes do not mix."""
    os.write(1, (text + "\n").encode())


def many(count):
    """Programs that end at once."""
    for _ in range(count):
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def copy(told):
    """What a copy does."""
    kept = [torch.empty(1 << 16, device="cuda")]
    say(f"begun {os.getpid()}")
    # Whoever waits for its events to be seen waits for its probes, not for its name.
    while not select.select([told], [], [], 0.01)[0]:
        torch.empty(1, device="cuda")
    assert os.read(told, 1)
    kept += [torch.empty(1 << (12 + block), device="cuda") for block in range(6)]
    del kept[3]
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    say(f"copy {os.getpid()} allocated {allocated} reserved {reserved}")
    assert os.read(told, 1)
    os._exit(0)


say("ready")
copies = {}
for line in sys.stdin:
    word, *rest = line.split()
    if word == "many":
        many(int(rest[0]))
        say("many done")
    elif word == "copy":
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(tell)
            copy(told)
        os.close(told)
        copies[pid] = tell
    elif word == "more":
        os.write(copies[int(rest[0])], b"m")
    elif word == "end":
        for pid, tell in copies.items():
            os.write(tell, b"e")
            assert os.waitpid(pid, 0)[1] == 0
        say("all done")
        break
