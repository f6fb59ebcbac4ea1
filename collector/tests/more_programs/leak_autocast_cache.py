import os

import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# Leak: fresh weights every step stay in autocast's cache for as long as the scope is open.
gen = nn.Linear(8, 64 * 64).to(DEV)
opt = torch.optim.SGD(gen.parameters(), lr=1e-3)
head = nn.Linear(64, 8).to(DEV)
with torch.autocast("cuda", dtype=torch.bfloat16):
    for step in range(STEPS):
        x = torch.randn(16, 64, device=DEV)
        adapter = torch.randn(64, 64, device=DEV, requires_grad=True)
        y = nn.functional.linear(x, adapter)
        loss = head(y).float().square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
