"""Copies itself again and again; each copy takes memory on the GPU, says how much it has, and ends.

usage: forks.py AT_ONCE
Goes on until a line comes on its standard input. Prints "begun PID at T" (nanoseconds of CLOCK_MONOTONIC) for
each copy before it exists for long, "copy PID allocated A reserved S" at its end, and "all done" when each has
ended as it should. The program itself never touches the GPU: its copies could not use it otherwise.
"""
import os
import select
import sys
import time

import torch

at_once = int(sys.argv[1])


def say(text):
    """One write, so that lines of several processes do not mix."""
    os.write(1, (text + "\n").encode())


def copy(number):
    """What a copy does."""
    kept = []
    # To its very end: probes that come late still see what it has.
    for block in range(40):
        time.sleep(0.02)
        kept.append(torch.empty(1 << (14 + (block + number) % 6), device="cuda"))
        if block % 4 == 3:
            del kept[0]
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    say(f"copy {os.getpid()} allocated {allocated} reserved {reserved}")
    os._exit(7)


running = 0
number = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    number += 1
    if running == at_once:
        _, status = os.wait()
        assert os.waitstatus_to_exitcode(status) == 7, status
        running -= 1
    before = time.monotonic_ns()
    pid = os.fork()
    if pid == 0:
        copy(number)
    running += 1
    say(f"begun {pid} at {before}")
    # One that is gone before anybody can look.
    quick = os.fork()
    if quick == 0:
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(quick, 0)[1]) == 5
while running:
    _, status = os.wait()
    assert os.waitstatus_to_exitcode(status) == 7, status
    running -= 1
say("all done")
