"""Runs a script, then stands still and writes down what PyTorch says of its memory.

usage: quiet.py TRUTH.json --from-start|--mid-run SCRIPT [ARGUMENTS...]

With --from-start it prints "ready" before the script's first allocation, waits for a line on stdin and
records PyTorch's own history with Python stacks. With --mid-run it prints "ready" after some steps
(scripts sleep once a step) and goes on; some steps later it waits for a line, so that an attach falls
between the two. It prints "quiet" when the script is done and its variables are still alive, waits for a
line and ends; if the line says "die", at once, so that nothing is freed any more.

Where QUIET_LEDGER names a file, the simulated driver writes its own ledger there, and PyTorch's segments
go into TRUTH.json.
"""
import ctypes
import itertools
import json
import os
import signal
import sys
import time

READY_AFTER = 20
WAIT_AFTER = 40

truth_file = sys.argv.pop(1)
from_start = sys.argv.pop(1) == "--from-start"
script = sys.argv.pop(1)
sys.argv[0] = script
sys.path[0] = os.path.dirname(script)

import torch

torch.cuda.init()
sleep, sleeps = time.sleep, itertools.count(1)


def counting_sleep(seconds):
    count = next(sleeps)
    if count == READY_AFTER:
        print("ready", os.getpid(), flush=True)
    if count == WAIT_AFTER:
        sys.stdin.readline()
    sleep(seconds)


if not from_start:
    time.sleep = counting_sleep
else:
    print("ready", os.getpid(), flush=True)
    sys.stdin.readline()
    # The driver's own allocator has no history.
    if torch.cuda.get_allocator_backend() == "native":
        torch.cuda.memory._record_memory_history(
            enabled="all", context="all", stacks="python", max_entries=1_000_000
        )

with open(script, encoding="utf-8") as file:
    code = compile(file.read(), script, "exec")
names = {"__name__": "__main__", "__file__": script, "__builtins__": __builtins__}
exec(code, names)

torch.cuda.synchronize()
devices = {}
for device in range(torch.cuda.device_count()):
    stats = torch.cuda.memory_stats(device)
    devices[device] = {
        "allocated": stats.get("allocated_bytes.all.current", 0),
        "reserved": stats.get("reserved_bytes.all.current", 0),
        "blocks": stats.get("allocation.all.current", 0),
        "allocations": stats.get("allocation.all.allocated", 0),
        "out_of_memory": stats.get("num_ooms", 0),
        "survivors": [],
    }
# The driver's own allocator has no snapshot.
is_native = torch.cuda.get_allocator_backend() == "native"
for segment in torch.cuda.memory._snapshot()["segments"] if is_native else []:
    for block in segment["blocks"]:
        if block["state"] == "active_allocated":
            devices[segment["device"]]["survivors"].append(
                {
                    "address": block["address"],
                    "size": block["size"],
                    "frames": [
                        [frame["filename"], frame["line"], frame["name"]]
                        for frame in block.get("frames", [])
                    ],
                }
            )
ledger = os.environ.get("QUIET_LEDGER")
if ledger:
    for segment in torch.cuda.memory._snapshot()["segments"] if is_native else []:
        devices[segment["device"]].setdefault("segments", []).append(
            {
                "size": segment["total_size"],
                "small": segment["segment_type"] == "small",
                "private": tuple(segment["segment_pool_id"]) != (0, 0),
                "blocks": [[block["size"], block["state"]] for block in segment["blocks"]],
            }
        )
    assert ctypes.CDLL("libcuda.so.1").simcuda_write_ledger(ledger.encode()) == 0
with open(truth_file, "w", encoding="utf-8") as file:
    json.dump(devices, file)
print("quiet", flush=True)
if sys.stdin.readline().strip() == "die":
    os.kill(os.getpid(), signal.SIGKILL)
