"""Segments that grow: virtual memory. Run with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."""
import time

import torch

kept = []
for step in range(60):
    kept.append(torch.empty((step % 7 + 1) << 20, dtype=torch.uint8, device="cuda"))
    if step % 3 == 0:
        kept.pop(0)
    if step % 20 == 19:
        torch.cuda.empty_cache()
    time.sleep(0.002)
