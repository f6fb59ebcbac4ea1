"""Captured graphs, with the private pools that they allocate from."""
import time

import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).cuda()
kept = []
for step in range(60):
    if step in (5, 30, 45):
        static = torch.randn(8 + step, 64, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            model(static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), torch.no_grad():
            output = model(static)
        kept.append((graph, static, output))
    for graph, _, _ in kept:
        graph.replay()
    torch.randn(16, 64, device="cuda")
    time.sleep(0.002)
