# injection: record.c
"""An injected library hooks the API and counts calls; this program asks it."""

import ctypes

import torch
from support import check_driver_agrees

torch.cuda.init()
# The driver has loaded the library; this finds the same copy.
path = next(line.split()[-1] for line in open("/proc/self/maps") if "libinjection" in line)
recorder = ctypes.CDLL(path)
calls = recorder.recorded_calls
calls.restype, calls.argtypes = ctypes.c_long, [ctypes.c_char_p, ctypes.c_int]
ENTER, EXIT = 0, 1

blocks = [torch.empty(30 << 20, dtype=torch.uint8, device="cuda") for _ in range(3)]
for name in (b"cudaMalloc", b"cuMemAlloc_v2"):
    assert calls(name, ENTER) == calls(name, EXIT) == 3, (name, calls(name, ENTER), calls(name, EXIT))
recorder.recorded_bytes.restype = ctypes.c_long
assert recorder.recorded_bytes() == 3 * (30 << 20)
assert recorder.correlation_mismatches() == 0, "a driver call must share its runtime call's number"
del blocks
torch.cuda.empty_cache()
assert calls(b"cudaFree", EXIT) == calls(b"cuMemFree_v2", EXIT) == 3
check_driver_agrees()
