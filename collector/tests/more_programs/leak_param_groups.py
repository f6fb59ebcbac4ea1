import os

import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# Leak: every fourth step a new parameter is added to the optimizer, which keeps the old ones and
# their state.
model = nn.Linear(64, 64).to(DEV)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
prompt = None
for step in range(STEPS):
    if step % 4 == 0:
        prompt = nn.Parameter(torch.zeros(32, 64, device=DEV))
        opt.add_param_group({"params": [prompt]})
    x = torch.randn(32, 64, device=DEV)
    opt.zero_grad()
    model(x + prompt).square().mean().backward()
    opt.step()
