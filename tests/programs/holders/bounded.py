"""A training that keeps its last batches: whether that leaks, only who holds them can tell.

HOLDER says what keeps them: deque (default) or lru_cache.
"""
import collections
import functools
import os

import torch

STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
DEV = "cuda"
replay = collections.deque(maxlen=400)
model = torch.nn.Linear(64, 64).to(DEV)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


@functools.lru_cache(maxsize=400)
def batch_of(number):
    return torch.full((32, 64), number / STEPS, device=DEV)


for step in range(STEPS):
    if os.environ.get("HOLDER") == "lru_cache":
        batch = batch_of(step)
    else:
        batch = torch.ones(32, 64, device=DEV)
        replay.append(batch)
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
