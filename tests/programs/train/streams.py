"""Work on side streams; blocks are handed from one to another."""
import torch
from torch import nn

from common import steps

model = nn.Linear(128, 128).cuda()
side = [torch.cuda.Stream() for _ in range(3)]
kept = []
for step in steps():
    stream = side[step % len(side)]
    with torch.cuda.stream(stream):
        x = torch.randn(64, 128, device="cuda")
        y = model(x)
    torch.cuda.current_stream().wait_stream(stream)
    y.record_stream(torch.cuda.current_stream())
    z = (y * 2).sum()
    z.backward()
    del x, y
    if step % 6 == 0:
        kept.append(z.detach())
