"""Batches from two worker processes through pinned memory."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from common import steps

data = TensorDataset(torch.randn(256, 32), torch.randint(0, 4, (256,)))
loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=2, pin_memory=True)
model = nn.Linear(32, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches, kept = None, []
for step in steps():
    if step % 8 == 0:
        batches = iter(loader)
    x, y = next(batches)
    x = x.to("cuda", non_blocking=True)
    loss = nn.functional.cross_entropy(model(x), y.to("cuda", non_blocking=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        kept.append(x)
