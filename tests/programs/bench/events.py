"""Times allocations and frees of the caching allocator below a given number of Python frames.

Reads commands from stdin: "measure FRAMES" answers "result ALLOC FREE" in ns an event (the lowest of
several rounds), "recorder python|all|off" switches PyTorch's own recorder (with Python stacks, or with C++ ones too)
and answers "ok".
"""
import sys
import time

import torch

BLOCKS = 2000
ROUNDS = 15
empty = torch.empty
device = torch.device("cuda")


def round_trip():
    kept = [None] * BLOCKS
    start = time.perf_counter_ns()
    for index in range(BLOCKS):
        kept[index] = empty(256, device=device)
    allocated = time.perf_counter_ns()
    kept.clear()
    freed = time.perf_counter_ns()
    return (allocated - start) / BLOCKS, (freed - allocated) / BLOCKS


def measure():
    rounds = [round_trip() for _ in range(ROUNDS)]
    return min(round[0] for round in rounds), min(round[1] for round in rounds)


def below(frames):
    """Calls `measure` with `frames` Python frames on the stack of an allocation."""
    if frames <= 1:
        return measure()
    return below(frames - 1)


round_trip()
print("ready", flush=True)
for line in sys.stdin:
    command, argument = line.split()
    if command == "recorder":
        if argument != "off":
            torch.cuda.memory._record_memory_history(
                enabled="all", context="all", stacks=argument, max_entries=100_000
            )
        else:
            torch.cuda.memory._record_memory_history(enabled=None)
        print("ok", flush=True)
    else:
        # <module>, measure and round_trip are on the stack as well.
        alloc, free = below(int(argument) - 2)
        print(f"result {alloc:.1f} {free:.1f}", flush=True)
