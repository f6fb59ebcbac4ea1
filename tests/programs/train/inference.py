"""A server without training: a bounded cache of results, cleared now and then."""
import torch
from torch import nn

from common import steps

model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64)).cuda().eval()
cache = {}
with torch.inference_mode():
    for step in steps():
        batch = torch.randn(1 + step % 9, 64, device="cuda")
        cache[step % 20] = model(batch)
        if step % 30 == 29:
            torch.cuda.empty_cache()
