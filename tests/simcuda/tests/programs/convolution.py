import torch
from support import train
from torch import nn


def model():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10),
    ).cuda()  # fmt: skip


def batch():
    return torch.randn(8, 3, 32, 32, device="cuda"), torch.randint(0, 10, (8,), device="cuda")


for enabled in (True, False):
    with torch.backends.cudnn.flags(enabled=enabled):
        for autocast in ({}, {"dtype": torch.float16}):
            network = model()
            train(network, torch.optim.SGD(network.parameters(), 0.1), batch, steps=8, **autocast)
