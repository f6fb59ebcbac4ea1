import os
import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# Leak: now and then a batch is rejected by an exception, and the list of errors keeps the
# traceback, whose frame keeps the batch and the output.
import random

rng = random.Random(3)
model = nn.Linear(64, 64).to(DEV)
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
errors = []


def train(bad):
    x = torch.randn(64, 64, device=DEV)
    y = model(x)
    if bad:
        raise ValueError("rejected")
    opt.zero_grad()
    y.square().mean().backward()
    opt.step()


for step in range(STEPS):
    train(False)
    if rng.random() < 0.35:
        try:
            train(True)
        except ValueError as error:
            errors.append(error)
