# options: --mem 1G
# environment: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
import torch
from support import check_driver_agrees, driver_bytes, mlp, train

MIB = 1 << 20
model = mlp()
train(model, torch.optim.AdamW(model.parameters()))
segments = torch.cuda.memory_snapshot()
assert segments and all(segment["is_expandable"] for segment in segments)

small = driver_bytes()
blocks = [torch.empty(30 * MIB, dtype=torch.uint8, device="cuda") for _ in range(10)]
blocks[3].copy_(torch.arange(30 * MIB) % 251)
assert torch.equal(blocks[3].cpu(), (torch.arange(30 * MIB) % 251).byte())
grown = driver_bytes()
assert grown - small >= 280 * MIB, (small, grown)
check_driver_agrees()
del blocks
torch.cuda.empty_cache()
assert driver_bytes() <= small, "unmapped memory must go back to the device"
check_driver_agrees()

kept = []
try:
    while len(kept) < 40:
        kept.append(torch.empty(30 * MIB, dtype=torch.uint8, device="cuda"))
    raise SystemExit("no OutOfMemoryError on a device of 1 GiB")
except torch.OutOfMemoryError:
    assert 30 <= len(kept) <= 34, len(kept)
check_driver_agrees()
