"""Trains and prints a line every ten steps: what it prints must not depend on who is watching.

usage: counting.py STEPS
Ends by itself; says the checksum of all that it has seen of its own memory.
"""
import sys
import time
import zlib

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
checksum, kept = 0, []
print("ready", flush=True)
for step in range(int(sys.argv[1])):
    loss = model(torch.randn(16, 32, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        kept.append(loss.detach())
        state = f"{step} {torch.cuda.memory_allocated()} {torch.cuda.memory_reserved()}"
        checksum = zlib.crc32(state.encode(), checksum)
        print("step", state, flush=True)
    time.sleep(0.001)
print("checksum", checksum, flush=True)
