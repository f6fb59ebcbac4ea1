"""A training run as people write it, with a leak as people write it: see `smoothed`."""
import time

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU())
        self.head = nn.Linear(512, 10)

    def forward(self, x):
        return self.head(self.body(x))


def validation_loss(model):
    x = torch.randn(64, 128, device="cuda")
    y = torch.randint(0, 10, (64,), device="cuda")
    return F.cross_entropy(model(x), y)


def train():
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    smoothed = 0.0
    for step in range(1_000_000):
        x = torch.randn(256, 128, device="cuda")
        y = torch.randint(0, 10, (256,), device="cuda")
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        # A running mean of the validation loss, for the log. It is a tensor, and nothing ever runs backward
        # through it: it holds the graph of every step.
        smoothed = 0.99 * smoothed + 0.01 * validation_loss(model)
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f} memory {torch.cuda.memory_allocated() / 1e6:.1f} MB", flush=True)
        time.sleep(0.02)


train()
