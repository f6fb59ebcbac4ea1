import os

import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# No leak: the outputs of an epoch are kept until its end.
model = nn.Linear(64, 64).to(DEV)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
outs = []
for step in range(STEPS):
    x = torch.randn(32, 64, device=DEV)
    opt.zero_grad()
    y = model(x)
    y.square().mean().backward()
    opt.step()
    outs.append(y.detach())
    if step % 60 == 59:
        m = torch.cat(outs).mean()
        outs.clear()
