import torch
from support import batch, check_driver_agrees, mlp
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

model = mlp()
for use_reentrant in (False, True):
    for _ in range(5):
        inputs, target = batch()
        inputs.requires_grad_()
        cross_entropy(checkpoint(model, inputs, use_reentrant=use_reentrant), target).backward()
        assert inputs.grad is not None and inputs.grad.shape == inputs.shape
check_driver_agrees()
