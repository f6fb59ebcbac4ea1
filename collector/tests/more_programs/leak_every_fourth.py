import os

import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# Leak: every fourth batch is kept with its output.
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).to(DEV)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
bad = {}
for step in range(STEPS):
    x = torch.randn(32, 32, device=DEV)
    opt.zero_grad()
    out = model(x)
    loss = out.square().mean()
    loss.backward()
    opt.step()
    if step % 4 == 3:
        bad[step] = (x, out)
