"""Convolutions with batch normalisation; every feature map of the last batches is kept."""
import collections

import torch
from torch import nn

from common import steps

features = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)).cuda()
classify = nn.Linear(32, 10).cuda()
optimizer = torch.optim.SGD([*features.parameters(), *classify.parameters()], lr=0.1, momentum=0.9)
recent = collections.deque(maxlen=5)
for _ in steps():
    images = torch.randn(8, 3, 32, 32, device="cuda")
    labels = torch.randint(0, 10, (8,), device="cuda")
    maps = features(images)
    loss = nn.functional.cross_entropy(classify(maps.flatten(1)), labels)
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
    recent.append(maps.detach())
