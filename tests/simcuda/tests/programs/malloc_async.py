# options: --mem 1G
# environment: PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
import torch
from support import driver_bytes, mlp

MIB = 1 << 20
assert torch.cuda.get_allocator_backend() == "cudaMallocAsync"
model = mlp()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(32, 64, device="cuda")).sum().backward()
    optimizer.step()

blocks = [torch.empty(30 * MIB, dtype=torch.uint8, device="cuda") for _ in range(10)]
blocks[3].copy_(torch.arange(30 * MIB) % 251)
assert torch.equal(blocks[3].cpu(), (torch.arange(30 * MIB) % 251).byte())
# A pool takes memory from the device in larger pieces, so the driver's use is not less.
assert 300 * MIB <= torch.cuda.memory_allocated() <= driver_bytes()
assert torch.cuda.memory_reserved() == driver_bytes()
del blocks
torch.cuda.synchronize()
torch.cuda.empty_cache()
assert driver_bytes() < 100 * MIB, driver_bytes()

kept = []
try:
    while len(kept) < 40:
        kept.append(torch.empty(30 * MIB, dtype=torch.uint8, device="cuda"))
    raise SystemExit("no OutOfMemoryError on a device of 1 GiB")
except torch.OutOfMemoryError:
    assert 30 <= len(kept) <= 34, len(kept)
