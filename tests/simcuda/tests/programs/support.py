"""Checks that the test programs share."""

import torch
from torch import nn


def driver_bytes(device=0):
    """What the driver has handed out of a device."""
    free, total = torch.cuda.mem_get_info(device)
    return total - free


def check_driver_agrees(device=0):
    """PyTorch's own accounting and the driver's say the same."""
    reserved = torch.cuda.memory_stats(device)["reserved_bytes.all.current"]
    assert reserved == driver_bytes(device), (reserved, driver_bytes(device))
    assert torch.cuda.memory_allocated(device) <= reserved


def mlp(device="cuda"):
    layers = [nn.Linear(64, 256), nn.LayerNorm(256), nn.GELU(), nn.Dropout(0.1), nn.Linear(256, 10)]
    return nn.Sequential(*layers).to(device)


def batch(device="cuda"):
    return torch.randn(32, 64, device=device), torch.randint(0, 10, (32,), device=device)


def train(model, optimizer, make_batch=batch, steps=20, loss=nn.functional.cross_entropy, **autocast):
    """Trains, and checks that the memory in use does not change from step to step."""
    scaler = torch.amp.GradScaler("cuda", enabled=autocast.get("dtype") == torch.float16)
    allocated = []
    for _ in range(steps):
        inputs, target = make_batch()
        with torch.autocast("cuda", enabled=bool(autocast), **autocast):
            value = loss(model(inputs), target)
        optimizer.zero_grad()
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()
        assert value.item() == 0.0, "an unknown scalar must read as zero"
        del inputs, target, value
        allocated.append(torch.cuda.memory_allocated())
    assert len(set(allocated[2:])) == 1, allocated
    check_driver_agrees()
    return allocated[-1]
