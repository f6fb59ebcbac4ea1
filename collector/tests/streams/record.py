"""Record what PyTorch's allocator does while a program runs, as a small file for the tests.

    python record.py PROGRAM.py OUT.json.gz

Needs torch and a CUDA device (a simulated one will do); the program learns the number of steps
from LEAKCASE_STEPS. Calls of backward() are marked in the allocator's own history by blocks of two
sizes that nothing else uses, so their order among the allocations is exact.

The file is one JSON object:
  files, functions: strings
  frames: [file, function, line]
  stacks: lists of frames, innermost first; frame -1 stands for "allocated on an autograd thread
          for the backward() that the rest of the stack called"
  events: flat list of integers, by kind
          0 address/512 size/512 stack   allocation
          1 address/512                  free
          2 stack                        backward() is called
          3 bytes/512                    a segment is taken from the driver
          4 bytes/512                    a segment is given back
"""

import gzip
import json
import runpy
import sys

import torch

ENTER, LEAVE = 123 * 512, 125 * 512
calls = []


def caller_stack():
    frames = []
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        frames.append((code.co_filename, code.co_name, frame.f_lineno or 0))
        frame = frame.f_back
    return frames


def mark(size):
    torch.empty(size, dtype=torch.uint8, device="cuda")


def watch_backward():
    run = torch.autograd.graph._engine_run_backward

    def watched(*args, **kwargs):
        calls.append(caller_stack())
        mark(ENTER)
        try:
            return run(*args, **kwargs)
        finally:
            mark(LEAVE)

    torch.autograd.graph._engine_run_backward = watched
    torch.autograd._engine_run_backward = watched


class Table(dict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]


def shorten(path):
    """Paths as on any machine: installed packages below one root, the program by its name."""
    for root in ("site-packages", "lib/python3"):
        at = path.find(root)
        if at >= 0:
            return "/usr/lib/python3.12/" + path[at:] if root[0] == "s" else "/usr/" + path[at:]
    return path if path.startswith("<") else "/home/user/" + path.rsplit("/", 1)[-1]


def convert(trace):
    files, functions, frames, stacks, events = Table(), Table(), Table(), Table(), []
    waiting = iter(calls)
    inside = None
    marks = {}

    def stack_of(raw):
        return tuple(
            frames[files[shorten(file)], functions[function], line]
            for file, function, line in raw
            if "record.py" not in file and "runpy" not in file
        )

    for entry in trace:
        action, address, size = entry["action"], entry["addr"], entry["size"]
        if action == "alloc" and size in (ENTER, LEAVE):
            marks[address] = size
            if size == ENTER:
                inside = stack_of(next(waiting))
                events += [2, stacks[inside]]
            else:
                inside = None
            continue
        if action in ("free_requested", "free_completed") and address in marks:
            if action == "free_completed":
                del marks[address]
            continue
        if action == "alloc":
            raw = [(f["filename"], f["name"], f["line"]) for f in entry["frames"]]
            stack = stack_of(raw)
            if not stack and inside is not None:
                stack = (-1, *inside)
            events += [0, address // 512, (size + 511) // 512, stacks[stack]]
        elif action == "free_completed":
            events += [1, address // 512]
        elif action == "segment_alloc":
            events += [3, size // 512]
        elif action == "segment_free":
            events += [4, size // 512]
    return {
        "files": list(files),
        "functions": list(functions),
        "frames": list(frames),
        "stacks": list(stacks),
        "events": events,
    }


def main():
    program, out = sys.argv[1:3]
    torch.empty(1, device="cuda")
    torch.cuda.memory._record_memory_history(
        enabled="all", context="alloc", stacks="python", max_entries=10_000_000
    )
    watch_backward()
    sys.argv = [program]
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        snapshot = torch.cuda.memory._snapshot()
    traces = max(snapshot["device_traces"], key=len)
    data = json.dumps(convert(traces), separators=(",", ":")).encode()
    with open(out, "wb") as file:
        file.write(gzip.compress(data, 9, mtime=0))
    print(f"{out}: {len(traces)} entries, torch {torch.__version__}")


main()
