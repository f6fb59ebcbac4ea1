import os

import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# No leak: reference cycles that the collector finds now and then.
class Holder:
    pass


model = nn.Linear(64, 64).to(DEV)
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(STEPS):
    x = torch.randn(32, 64, device=DEV)
    opt.zero_grad()
    y = model(x)
    h = Holder()
    h.me, h.y = h, y
    junk = [[] for _ in range(40)]
    for j in junk:
        j.append(junk)
    y.square().mean().backward()
    opt.step()
