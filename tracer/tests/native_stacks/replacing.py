"""Maps code over other code, and reports events from what lies there then.

usage: replacing.py FOLDER TRUTH.json
Prints "ready" and waits for a line. For each change it prints "changed NAME" and reports events of the
changed code until it is given a line, then 400 others, whose truth it writes down: the functions' names,
innermost first; it then prints "last NUMBER" and waits for another line. `?` is a function that nobody has a name for, and nothing can be told of who called it.
Prints "done N" at the end and waits again.
"""
import ctypes
import itertools
import json
import mmap
import os
import random
import select
import sys

FOLDER, TRUTH = sys.argv[1], sys.argv[2]
MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS = 2, 0x10, 0x20
READ, WRITE, EXECUTE = 1, 2, 4


class Chain(ctypes.Structure):
    _fields_ = [
        ("links", ctypes.c_char_p),
        ("at", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("number", ctypes.c_uint64),
        ("python", ctypes.c_void_p),
    ]


libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
core = ctypes.CDLL(os.path.join(FOLDER, "libcore.so"), mode=ctypes.RTLD_GLOBAL)
core.go.argtypes = [ctypes.POINTER(Chain)]
core.go.restype = None
core.add.argtypes = [ctypes.c_void_p, ctypes.c_uint]
numbers = itertools.count(1)
truth = {}


def one(links, names):
    number = next(numbers)
    if names is not None:
        truth[number] = [names[link] for link in reversed(links)]
    core.go(ctypes.byref(Chain(bytes(links), 0, len(links), number, None)))


def mapped(at, length, protection, flags, file=-1, offset=0):
    got = libc.mmap(at, length, protection, flags, file, offset)
    assert got == at or (at is None and got != 2**64 - 1), os.strerror(ctypes.get_errno())
    return got


def parts(prefix):
    """Where a library lies: start, end, rights, offset in the file."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            if line.rstrip().endswith(f"/libchain_{prefix}.so"):
                addresses, rights, offset = line.split()[:3]
                start, end = (int(word, 16) for word in addresses.split("-"))
                yield start, end, rights, int(offset, 16)


def code(functions, prefix):
    """The part that a library's functions lie in."""
    for start, end, rights, offset in parts(prefix):
        if start <= functions[0] < end and "x" in rights:
            return start, end, offset
    raise LookupError(prefix)


def file_of(prefix):
    return os.open(os.path.join(FOLDER, f"libchain_{prefix}.so"), os.O_RDONLY)


def load(prefix):
    library = ctypes.CDLL(os.path.join(FOLDER, f"libchain_{prefix}.so"))
    return (ctypes.c_void_p * 8).in_dll(library, "functions_of_it")


def twice(prefix):
    """The whole library once more, at another address; its functions there."""
    all_parts = list(parts(prefix))
    low, high = all_parts[0][0], max(end for _, end, _, _ in all_parts)
    base = mapped(None, high - low, 0, MAP_PRIVATE | MAP_ANONYMOUS)
    file = file_of(prefix)
    for start, end, rights, offset in all_parts:
        at, length = start - low + base, end - start
        if "x" in rights:
            mapped(at, length, READ | EXECUTE, MAP_PRIVATE | MAP_FIXED, file, offset)
        else:
            # As the loader has left it.
            mapped(at, length, READ | WRITE, MAP_PRIVATE | MAP_FIXED, file, offset)
            ctypes.memmove(at, start, length)
    return (ctypes.c_void_p * 8)(*(function - low + base for function in load(prefix)))


def cover_by_file(place, other):
    """The code of a library over that of another one of the same layout."""
    start, end, offset = place
    file = file_of(other)
    mapped(start, end - start, READ | EXECUTE, MAP_PRIVATE | MAP_FIXED, file, offset)


def cover_by_memory(place):
    """The same code in memory that is no file's, as programs do for huge pages."""
    start, end, _ = place
    kept = ctypes.string_at(start, end - start)
    mapped(start, end - start, READ | WRITE | EXECUTE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS)
    ctypes.memmove(start, kept, len(kept))


steady, covered, remade = load("fp"), load("nofp"), load("plain")
covered_code, remade_code = code(covered, "nofp"), code(remade, "plain")
again = twice("nofp")
STEADY, COVERED, REMADE, AGAIN = (core.add(ctypes.addressof(f), 8) for f in (steady, covered, remade, again))
names = {}
for first, prefix in [(STEADY, "fp"), (COVERED, "nofp"), (REMADE, "plain"), (AGAIN, "nofp")]:
    names.update({first + index: f"{prefix}_{index}" for index in range(8)})


def chains(change):
    """Of all libraries, and of those alone that nobody touches."""
    firsts = [STEADY] if random.random() < 0.4 else [STEADY, COVERED, AGAIN]
    which = [random.randrange(8) for _ in range(random.randint(1, 5))]
    # Of the widest frames (the last function's) two at most: more than three do not fit in the copy of
    # the stack that is made where a function is met for the first time.
    while which.count(7) > 2:
        which[which.index(7)] = random.randrange(7)
    links = [random.choice(firsts) + index for index in which]
    if change in ("memory", "back") and random.random() < 0.4:
        # Innermost, so that it is met first.
        links.append(REMADE + random.randrange(8 if which.count(7) < 2 else 7))
    return links


def phase(name):
    print("changed", name, flush=True)
    inner = {"twice": AGAIN, "file": COVERED, "memory": REMADE, "back": REMADE}[name]
    while not select.select([sys.stdin], [], [], 0.002)[0]:
        one([STEADY + 1, inner + 3], None)
    sys.stdin.readline()
    for _ in range(400):
        one(chains(name), names)
    print("last", max(truth), flush=True)
    sys.stdin.readline()


print("ready", flush=True)
sys.stdin.readline()
phase("twice")
cover_by_file(covered_code, "deleted")
names.update({COVERED + index: f"deleted_{index}" for index in range(8)})
phase("file")
cover_by_memory(remade_code)
names.update({REMADE + index: "?" for index in range(8)})
phase("memory")
cover_by_file(remade_code, "plain")
names.update({REMADE + index: f"plain_{index}" for index in range(8)})
phase("back")
with open(TRUTH, "w") as file:
    json.dump(truth, file)
print("done", len(truth), flush=True)
sys.stdin.readline()
