import os

import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# Leak: a hidden state is carried over with its graph.
rnn = nn.GRUCell(32, 64).to(DEV)
model = nn.Linear(32, 1).to(DEV)
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
h = torch.zeros(16, 64, device=DEV)
for step in range(STEPS):
    x = torch.randn(16, 32, device=DEV)
    opt.zero_grad()
    model(x).square().mean().backward()
    opt.step()
    h = torch.tanh(rnn(x, h))
