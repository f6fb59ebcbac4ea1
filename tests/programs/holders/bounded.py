"""A training that keeps its last batches: whether that leaks, only who holds them can tell."""
import collections
import os

import torch

STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
DEV = "cuda"
replay = collections.deque(maxlen=400)
model = torch.nn.Linear(64, 64).to(DEV)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(STEPS):
    batch = torch.ones(32, 64, device=DEV)
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    replay.append(batch)
