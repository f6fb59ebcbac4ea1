import collections
import os
import random

import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# No leak: a window of outputs of changing size, and running averages that are made anew.
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).to(DEV)
ema = [p.detach().clone() for p in model.parameters()]
opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
win = collections.deque(maxlen=12)
for step in range(STEPS):
    x = torch.randn(random.randint(8, 64), 64, device=DEV)
    opt.zero_grad()
    y = model(x)
    y.square().mean().backward()
    opt.step()
    if step % 3:
        win.append(y.detach())
    ema = [e * 0.9 + p.detach() * 0.1 for e, p in zip(ema, model.parameters())]
