"""PyTorch's own profiler sees the calls, twice in one process, and gets its CUPTI subscription."""

import json
import os
import tempfile

import torch
from support import check_driver_agrees
from torch.profiler import ProfilerActivity, profile


def profiled():
    """How often each CUDA function was called, as the trace of a small program says."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        block = torch.ones(3000, 3000, device="cuda")
        block = block + 1
        torch.cuda.synchronize()
    del block
    torch.cuda.empty_cache()
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    profiler.export_chrome_trace(path)
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    os.unlink(path)
    names = [event["name"] for event in events if str(event.get("cat")).startswith("cuda_")]
    return {name: names.count(name) for name in names}


torch.zeros(1, device="cuda")
for _ in range(2):
    calls = profiled()
    assert calls.get("cudaMalloc") == 2, calls
    assert sum(count for name, count in calls.items() if "LaunchKernel" in name) == 2, calls
check_driver_agrees()
