"""PyTorch's profiler while another tool holds CUPTI's subscription.

2.15 reads records without subscribing and sees everything. 2.8 subscribes at its first use; where
that is refused it says so on stderr and shows no CUDA calls, then and later in the process.
"""

import ctypes
import json
import os
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile

torch.zeros(1, device="cuda")
path = next(line.split()[-1] for line in open("/proc/self/maps") if "libcupti" in line)
cupti = ctypes.CDLL(path)
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(lambda *_: None)
handle = ctypes.c_size_t()
assert cupti.cuptiSubscribe(ctypes.byref(handle), callback, None) == 0


def cuda_calls():
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        torch.ones(1000, device="cuda")
        torch.cuda.synchronize()
    file, name = tempfile.mkstemp(suffix=".json")
    os.close(file)
    profiler.export_chrome_trace(name)
    with open(name) as trace:
        events = json.load(trace)["traceEvents"]
    os.unlink(name)
    return sum(str(event.get("cat")).startswith("cuda_") for event in events)


needs_subscription = torch.version.cuda.startswith("12")
assert (cuda_calls() == 0) == needs_subscription
assert cupti.cuptiUnsubscribe(handle) == 0
assert (cuda_calls() == 0) == needs_subscription
