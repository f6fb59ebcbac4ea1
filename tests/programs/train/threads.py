"""Three threads train models of their own at the same time."""
import threading

import torch
from torch import nn

from common import steps

kept = []


def train(width):
    model = nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 4)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in steps():
        loss = model(torch.randn(width, 32, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 9 == 0:
            kept.append(loss.detach())
    kept.append(model)


threads = [threading.Thread(target=train, args=(width,)) for width in (32, 64, 128)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
