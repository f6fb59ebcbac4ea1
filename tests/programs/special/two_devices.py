"""A model on each of two devices, by turns and with copies between them."""
import time

import torch
from torch import nn

models = [nn.Linear(64, 64).to(f"cuda:{device}") for device in range(2)]
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
kept = []
for step in range(80):
    device = step % 2
    x = torch.randn(32, 64, device=f"cuda:{device}")
    loss = models[device](x).square().mean()
    optimizers[device].zero_grad()
    loss.backward()
    optimizers[device].step()
    if step % 5 == 0:
        kept.append(x.to(f"cuda:{1 - device}"))
    time.sleep(0.002)
