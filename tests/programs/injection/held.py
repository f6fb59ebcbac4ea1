"""Takes CUPTI's one subscription by its C interface, as another tool would, then allocates on request.

Prints "ready PID" and waits for a line, allocates, prints "quiet ALLOCATED" and waits for another one.
"""
import ctypes
import os
import sys

import torch

torch.cuda.init()
path = next(line.split()[-1] for line in open("/proc/self/maps") if "libcupti" in line)
cupti = ctypes.CDLL(path)
Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
callback = Callback(lambda *_: None)


class Parameters(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("holder", ctypes.c_char_p),
        ("holder_size", ctypes.c_size_t),
        ("shared", ctypes.c_uint8),
        ("padding", ctypes.c_uint8 * 7),
    ]


subscriber = ctypes.c_void_p()
if hasattr(cupti, "cuptiSubscribe_v2"):
    named = Parameters(size=ctypes.sizeof(Parameters), name=b"another tool")
    result = cupti.cuptiSubscribe_v2(ctypes.byref(subscriber), callback, None, ctypes.byref(named))
else:
    result = cupti.cuptiSubscribe(ctypes.byref(subscriber), callback, None)
assert result == 0, result
print("ready", os.getpid(), flush=True)
sys.stdin.readline()
kept = [torch.empty(1000 * index, device="cuda") for index in range(1, 100)]
print("quiet", torch.cuda.memory_allocated(), flush=True)
sys.stdin.readline()
