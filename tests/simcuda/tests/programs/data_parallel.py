# options: --devices 2
import torch
from support import batch, check_driver_agrees, mlp
from torch import nn

assert torch.cuda.device_count() == 2
first, second = (torch.cuda.get_device_properties(index) for index in range(2))
assert not hasattr(first, "uuid") or str(first.uuid) != str(second.uuid), first
model = nn.DataParallel(mlp())
for _ in range(3):
    inputs, _ = batch()
    output = model(inputs)
    assert output.shape == (32, 10)
    output.sum().backward()
check_driver_agrees(0)
check_driver_agrees(1)
assert torch.cuda.memory_reserved(1) > 0, "the second device must have taken part"

there = torch.arange(1000.0).to("cuda:1")
assert torch.equal(there.to("cuda:0").cpu(), torch.arange(1000.0)), "copies between devices are real"
