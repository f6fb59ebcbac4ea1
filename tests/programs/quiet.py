"""Runs a script, then stands still and writes down what PyTorch says of its memory.

usage: quiet.py TRUTH.json [--from-start] SCRIPT [ARGUMENTS...]

Prints "ready" before the script's first allocation (with --from-start it then waits for a line on
stdin and records PyTorch's own history with Python stacks), "quiet" when the script is done and
its variables are still alive, then waits for a line and ends.
"""
import json
import os
import sys

truth_file = sys.argv.pop(1)
from_start = sys.argv[1] == "--from-start"
if from_start:
    del sys.argv[1]
script = sys.argv.pop(1)
sys.argv[0] = script
sys.path[0] = os.path.dirname(script)

import torch

torch.cuda.init()
print("ready", os.getpid(), flush=True)
if from_start:
    sys.stdin.readline()
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
for segment in torch.cuda.memory._snapshot()["segments"]:
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
with open(truth_file, "w", encoding="utf-8") as file:
    json.dump(devices, file)
print("quiet", flush=True)
sys.stdin.readline()
