"""Inference with NVTX ranges: forty steps of three requests each, and no backward at all."""
import sys

import torch
from torch import nn

STEPS = 40

model = nn.Linear(32, 32).cuda().eval()
nvtx = torch.cuda.nvtx
print("ready", flush=True)
sys.stdin.readline()
with torch.inference_mode():
    for step in range(STEPS):
        nvtx.range_push("step")
        x = torch.randn(8, 32, device="cuda")
        for request in range(3):
            nvtx.range_push("request")
            y = model(x)
            nvtx.range_pop()
        nvtx.range_pop()
print("done", flush=True)
sys.stdin.readline()
