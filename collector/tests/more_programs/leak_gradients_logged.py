import os

import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# Leak: the gradients of every step are kept; autograd threads allocated them.
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).to(DEV)
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
log = []
for step in range(STEPS):
    x = torch.randn(32, 64, device=DEV)
    opt.zero_grad()
    model(x).square().mean().backward()
    opt.step()
    log.append([p.grad for p in model.parameters()])
