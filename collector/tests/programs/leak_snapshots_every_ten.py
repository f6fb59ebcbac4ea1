import os
import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# Leak: every tenth step the weights are copied for averaging, and the copies stay on the device.
import copy

model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 128)).to(DEV)
opt = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
snapshots = []

for step in range(STEPS):
    x = torch.randn(32, 128, device=DEV)
    opt.zero_grad()
    (model(x) - x).square().mean().backward()
    opt.step()
    if step % 10 == 9:
        snapshots.append(copy.deepcopy(model))
