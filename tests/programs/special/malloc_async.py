"""The driver's own pool allocator. Run with PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync."""
import time

import torch

kept = []
for step in range(80):
    temporary = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
    if step % 4 == 0:
        kept.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
    time.sleep(0.002)
