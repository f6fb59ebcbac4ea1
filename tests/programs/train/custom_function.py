"""A differentiable function in Python: its backward allocates on an autograd thread, from Python."""
import torch
from torch import nn

from common import steps

stash = []


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        noise = torch.rand_like(x)
        if len(stash) < 25:
            stash.append(noise)
        return gradient * 3 + noise * 0


model = nn.Linear(32, 32).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in steps():
    optimizer.zero_grad()
    Scale.apply(model(torch.randn(16, 32, device="cuda"))).square().mean().backward()
    optimizer.step()
