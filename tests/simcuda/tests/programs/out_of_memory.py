# options: --mem 512M
import torch
from support import check_driver_agrees, driver_bytes

MIB = 1 << 20
total = torch.cuda.mem_get_info()[1]
assert total == 512 * MIB == torch.cuda.get_device_properties(0).total_memory
kept = []
try:
    while len(kept) < 20:
        kept.append(torch.empty(64 * MIB, dtype=torch.uint8, device="cuda"))
    raise SystemExit("no OutOfMemoryError on a device of 512 MiB")
except torch.OutOfMemoryError as error:
    assert len(kept) == 8 and "512.00 MiB" in str(error), (len(kept), str(error))
assert torch.cuda.memory_stats()["num_ooms"] == 1
assert driver_bytes() == 512 * MIB

# What the cache holds is given back when a request of another size needs it.
kept.clear()
large = torch.empty(400 * MIB, dtype=torch.uint8, device="cuda")
stats = torch.cuda.memory_stats()
assert stats["num_alloc_retries"] == 2 and stats["num_ooms"] == 1, stats
check_driver_agrees()
