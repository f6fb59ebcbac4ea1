"""Gradients of four small batches make one update."""
import torch
from torch import nn

from common import steps

model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1)).cuda()
optimizer = torch.optim.RMSprop(model.parameters())
totals = []
for _ in steps():
    optimizer.zero_grad()
    total = torch.zeros((), device="cuda")
    for _ in range(4):
        loss = model(torch.randn(16, 32, device="cuda")).square().mean() / 4
        loss.backward()
        total += loss.detach()
    optimizer.step()
    totals.append(total)
