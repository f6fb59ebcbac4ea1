import os
import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# No leak: the schedule makes the batch larger every step.
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).to(DEV)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(STEPS):
    x = torch.randn(16 + 4 * step, 64, device=DEV)
    opt.zero_grad()
    loss = (model(x) - x).square().mean()
    loss.backward()
    opt.step()
