"""A list and a dictionary of very many small objects, with tensors at their ends.

usage: many.py OBJECTS TENSORS
Prints "blocks FILE" (addresses, a line each: half of them in the list, half in the dictionary), then
"ready"; waits for a line; prints its memory in kB before and at most since ("memory BEFORE PEAK"),
then "end".
"""
import gc
import sys
import tempfile

import torch

objects, tensors = int(sys.argv[1]), int(sys.argv[2])
gc.disable()
listed = [[number] for number in range(objects // 2)]
keyed = {f"key{number}": [number] for number in range(objects // 2)}
for number in range(tensors // 2):
    listed.append(torch.empty(128, device="cuda"))
    keyed[f"tensor{number}"] = torch.empty(128, device="cuda")
gc.enable()
with tempfile.NamedTemporaryFile("w", delete=False) as file:
    for kept in (listed[objects // 2:], list(keyed.values())[objects // 2:]):
        for tensor in kept:
            print(hex(tensor.data_ptr()), file=file)
del kept, tensor


def resident(field):
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))


def forget_peak():
    with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
        refs.write("5")


forget_peak()
before = resident("VmRSS")
print("blocks", file.name, flush=True)
print("ready", flush=True)
sys.stdin.readline()
print("memory", before, resident("VmHWM"), flush=True)
print("end", flush=True)
