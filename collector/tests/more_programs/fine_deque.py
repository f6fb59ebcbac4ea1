import collections
import os

import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# No leak: the last 120 outputs are kept.
model = nn.Linear(64, 64).to(DEV)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
outs = collections.deque(maxlen=120)
for step in range(STEPS):
    x = torch.randn(32, 64, device=DEV)
    opt.zero_grad()
    y = model(x)
    y.square().mean().backward()
    opt.step()
    outs.append(y.detach())
