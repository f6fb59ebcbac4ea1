import os

import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# Leak: every fifteenth step a new optimizer for the same model; the old ones are kept with their
# state.
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).to(DEV)
scheds = []
for step in range(STEPS):
    if step % 15 == 0:
        opt = torch.optim.Adam(model.parameters(), lr=1e-3)
        scheds.append(opt)
    x = torch.randn(32, 64, device=DEV)
    opt.zero_grad()
    model(x).square().mean().backward()
    opt.step()
