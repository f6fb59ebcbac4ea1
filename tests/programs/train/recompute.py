"""Activation checkpointing, in both of its forms."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from common import steps

first = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).cuda()
second = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).cuda()
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
kept = []
for step in steps():
    x = torch.randn(32, 64, device="cuda", requires_grad=True)
    hidden = checkpoint(first, x, use_reentrant=False)
    output = checkpoint(second, hidden, use_reentrant=True)
    optimizer.zero_grad()
    output.square().mean().backward()
    optimizer.step()
    if step % 3 == 0:
        kept.append(x.grad)
