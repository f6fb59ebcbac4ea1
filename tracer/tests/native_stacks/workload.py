"""Reports events from chains of C and Python functions and writes down what each chain was.

usage: workload.py FOLDER EVENTS THREADS TRUTH.json LIBRARY...
Prints "ready", waits for a line on stdin, works, writes the truth, prints "done N", waits again. The
libraries are deleted before. The truth of an event: the functions' names, innermost first.
"""
import ctypes
import itertools
import json
import os
import random
import sys
import threading

FOLDER, EVENTS, THREADS, TRUTH = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
PYTHON, SORT = 255, 254


class Chain(ctypes.Structure):
    pass


Callback = ctypes.CFUNCTYPE(None, ctypes.POINTER(Chain))
Chain._fields_ = [
    ("links", ctypes.c_char_p),
    ("at", ctypes.c_uint32),
    ("count", ctypes.c_uint32),
    ("number", ctypes.c_uint64),
    ("python", Callback),
]

core = ctypes.CDLL(os.path.join(FOLDER, "libcore.so"), mode=ctypes.RTLD_GLOBAL)
core.go.argtypes = [ctypes.POINTER(Chain)]
core.go.restype = None
core.add.argtypes = [ctypes.c_void_p, ctypes.c_uint]
names = {PYTHON: ["inner", "outer"], SORT: ["compare", "by_sort"]}
libraries = []
for prefix in sys.argv[5:]:
    path = os.path.join(FOLDER, f"libchain_{prefix}.so")
    library = ctypes.CDLL(path)
    first = core.add(ctypes.addressof((ctypes.c_void_p * 8).in_dll(library, "functions_of_it")), 8)
    names.update({first + index: [f"{prefix}_{index}"] for index in range(8)})
    libraries.append(library)
    if prefix == "deleted":
        os.remove(path)


def inner(chain):
    core.go(chain)


def outer(chain):
    inner(chain)


callback = Callback(outer)
numbers = itertools.count(1)
truth = {}


def one(links):
    number = next(numbers)
    # The number of links may be odd for those inside; they are run from the outermost one.
    truth[number] = [name for link in reversed(links) for name in names[link]]
    chain = Chain(bytes(links), 0, len(links), number, callback)
    core.go(ctypes.byref(chain))


def chains(random):
    """Some short ones, and some whose stack is longer than any copy of it."""
    links = [link for link in names if link < SORT]
    for length in [random.randint(0, 8) for _ in range(300)] + [random.randint(30, 45) for _ in range(40)]:
        chain = random.choices(links, k=length)
        for link in random.choices([PYTHON, SORT], k=random.randint(0, 3)):
            chain.insert(random.randint(0, len(chain)), link)
        yield chain


def work(seed, events):
    own = random.Random(seed)
    known = list(chains(own))
    for _ in range(events):
        one(own.choice(known))


sys.setrecursionlimit(5000)
threading.stack_size(16 << 20)
print("ready", flush=True)
sys.stdin.readline()
threads = [threading.Thread(target=work, args=(seed, EVENTS // THREADS)) for seed in range(THREADS - 1)]
for thread in threads:
    thread.start()
work(THREADS, EVENTS // THREADS)
for thread in threads:
    thread.join()
with open(TRUTH, "w") as file:
    json.dump(truth, file)
print("done", len(truth), flush=True)
sys.stdin.readline()
