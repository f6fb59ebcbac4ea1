"""Reports events from libraries that come and go, each where the one before it was.

usage: unloading.py FOLDER EVENTS TRUTH.json LIBRARY...
Prints "ready", waits for a line on stdin, works, writes the truth, prints "done N", waits again. The
truth of an event: the functions' names, innermost first.
"""
import _ctypes
import ctypes
import json
import os
import random
import sys

FOLDER, EVENTS, TRUTH = sys.argv[1], int(sys.argv[2]), sys.argv[3]


class Chain(ctypes.Structure):
    _fields_ = [
        ("links", ctypes.c_char_p),
        ("at", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("number", ctypes.c_uint64),
        ("python", ctypes.c_void_p),
    ]


core = ctypes.CDLL(os.path.join(FOLDER, "libcore.so"), mode=ctypes.RTLD_GLOBAL)
core.go.argtypes = [ctypes.POINTER(Chain)]
core.go.restype = None
core.add.argtypes = [ctypes.c_void_p, ctypes.c_uint]
truth = {}
places = set()


def one(number, prefix):
    links = [random.randrange(8) for _ in range(random.randint(1, 6))]
    truth[number] = [f"{prefix}_{link}" for link in reversed(links)]
    core.go(ctypes.byref(Chain(bytes(links), 0, len(links), number, None)))


def swap(prefix, numbers):
    path = os.path.join(FOLDER, f"libchain_{prefix}.so")
    library = ctypes.CDLL(path)
    functions = ctypes.addressof((ctypes.c_void_p * 8).in_dll(library, "functions_of_it"))
    places.add(functions)
    core.forget()
    core.add(functions, 8)
    for number in numbers:
        one(number, prefix)
    _ctypes.dlclose(library._handle)


print("ready", flush=True)
sys.stdin.readline()
number = 1
while number <= EVENTS:
    count = random.choice([5, 2000])
    swap(random.choice(sys.argv[4:]), range(number, number + count))
    number += count
with open(TRUTH, "w") as file:
    json.dump(truth, file)
print("done", len(truth), "in", len(places), "places", flush=True)
sys.stdin.readline()
