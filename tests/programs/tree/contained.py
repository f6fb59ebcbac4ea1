"""A training that keeps the graph of a loss, wherever it runs.

Prints "ready PID" (its number where it runs) after 5 steps and then "step N" each 10; ends when a line comes on
its standard input, saying "allocated A reserved S", without tidying up.
"""
import os
import select
import sys
import time

import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 16)).cuda()
probe = torch.randn(64, 256, device="cuda")
kept = []
step = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    model(torch.randn(64, 256, device="cuda")).sum().backward()
    kept.append(model(probe).mean())
    model.zero_grad()
    step += 1
    if step == 5:
        print("ready", os.getpid(), flush=True)
    if step % 10 == 0:
        print("step", step, flush=True)
    time.sleep(0.01)
print("allocated", torch.cuda.memory_allocated(), "reserved", torch.cuda.memory_reserved(), flush=True)
os._exit(0)
