"""Half precision with a gradient scaler."""
import torch
from torch import nn

from common import steps

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)).cuda()
optimizer = torch.optim.Adam(model.parameters())
scaler = torch.amp.GradScaler("cuda")
outputs = []
for _ in steps():
    x = torch.randn(32, 64, device="cuda")
    with torch.amp.autocast("cuda", dtype=torch.float16):
        output = model(x)
        loss = output.square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    outputs.append(output.float().detach())
