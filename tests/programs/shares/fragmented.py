"""Frees every other block, then asks for more than any gap holds."""
import time

import torch

MIB = 1 << 20
blocks = [torch.empty(6 * MIB, dtype=torch.uint8, device="cuda") for _ in range(12)]
kept = blocks[::2]
del blocks
time.sleep(0.01)
small = [torch.empty(1000, dtype=torch.uint8, device="cuda") for _ in range(50)]
large = torch.empty(18 * MIB, dtype=torch.uint8, device="cuda")
