"""Loads the driver from a file where nobody would look for it, and uses that one.

usage: another_driver.py FILE
Prints "ready" and waits for a line; then it takes memory on the GPU and gives it back, again and again, until
another line comes. It keeps one tensor, says "figures allocated A reserved S", and ends with a third line.
"""
import ctypes
import select
import sys
import time

import torch

MIB = 1 << 20

print("ready", flush=True)
sys.stdin.readline()
# Of two libraries with one name the loader takes the one that is there.
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
print("begun", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    taken = torch.empty(24 * MIB, dtype=torch.uint8, device="cuda")
    time.sleep(0.05)
    del taken
    torch.cuda.empty_cache()
sys.stdin.readline()
kept = torch.empty(22 * MIB, dtype=torch.uint8, device="cuda")
allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
print(f"figures allocated {allocated} reserved {reserved}", flush=True)
sys.stdin.readline()
