"""Ranks that need each other for nothing: when one of them ends, the others go on.

usage: torchrun ... lone.py FOLDER
Each rank prints "rank R pid P" after its first step and "step N of rank R" each 20. torchrun asks the others to
end when one has failed: they print "asked R", and go on until there is a file "end" in FOLDER. At its end
each prints "left R pid P allocated A reserved S", without tidying up.
"""
import os
import signal
import sys
import time

import torch
from torch import nn

rank = int(os.environ["RANK"])
end = os.path.join(sys.argv[1], "end")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
model = nn.Linear(256, 64).to(device)
kept = []
step = 0


def say(line):
    """A line in one piece: torchrun starts ranks with `-u`, where print() writes a line's end by itself."""
    os.write(1, f"{line}\n".encode())


signal.signal(signal.SIGTERM, lambda *_: say(f"asked {rank}"))
while not os.path.exists(end):
    batch = torch.randn(64 + rank, 256, device=device)
    loss = model(batch).sum()
    loss.backward()
    if len(kept) < 16 * (rank + 1):
        kept.append(batch)
    step += 1
    if step == 1:
        say(f"rank {rank} pid {os.getpid()}")
    if step % 20 == 0:
        say(f"step {step} of rank {rank}")
    time.sleep(0.01)
say(
    f"left {rank} pid {os.getpid()} allocated {torch.cuda.memory_allocated(device)}"
    f" reserved {torch.cuda.memory_reserved(device)}"
)
os._exit(0)
