import os
import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# No leak: eight micro-batches a step.
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).to(DEV)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

for step in range(STEPS):
    for micro in range(8):
        x = torch.randn(32, 64, device=DEV)
        (model(x).square().mean() / 8).backward()
    opt.step()
    opt.zero_grad()
