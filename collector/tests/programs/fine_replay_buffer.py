import os
import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# No leak: a replay buffer of 40 transitions in which a random one is replaced.
import random

rng = random.Random(5)
policy = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 4)).to(DEV)
opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
buffer = []

for step in range(STEPS):
    state = torch.randn(64, 32, device=DEV)
    if len(buffer) < 40:
        buffer.append(state)
    else:
        buffer[rng.randrange(40)] = state
    batch = torch.cat([rng.choice(buffer) for _ in range(4)])
    opt.zero_grad()
    policy(batch).square().mean().backward()
    opt.step()
