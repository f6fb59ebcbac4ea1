"""Asks for more than there is, frees its cache, tries again with less, and goes on."""
import time

import torch

kept, failures = [], 0
for step in range(60):
    try:
        kept.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        failures += 1
        del kept[: len(kept) // 2]
        kept.append(torch.empty(32 << 20, dtype=torch.uint8, device="cuda"))
    time.sleep(0.002)
print("failures", failures, flush=True)
