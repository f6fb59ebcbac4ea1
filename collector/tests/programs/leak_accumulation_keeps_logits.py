import os
import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# Leak: eight micro-batches a step; the logits of the last one are kept for a plot.
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).to(DEV)
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
plots = []

for step in range(STEPS):
    for micro in range(8):
        x = torch.randn(32, 64, device=DEV)
        logits = model(x)
        (logits.square().mean() / 8).backward()
    opt.step()
    opt.zero_grad()
    plots.append(logits.detach())
