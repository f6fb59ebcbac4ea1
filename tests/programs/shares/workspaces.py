"""Trains a little with matrix products, so that cuBLAS takes what it takes for itself."""
import time

import torch

for device in range(torch.cuda.device_count()):
    with torch.cuda.device(device):
        model = torch.nn.Linear(256, 256, device="cuda")
        for step in range(5):
            model(torch.randn(64, 256, device="cuda")).sum().backward()
            time.sleep(0.002)
torch.cuda.synchronize()
