"""Ranks of a distributed run in step with each other (gloo, each on its own device); one of them keeps the
graph of a loss.

usage: torchrun ... ranks.py [LEAKING RANK]
Rank 0 prints "ready" after 5 steps and then "step N" each 10; all end when a line comes on its standard
input, or after STEPS. Each prints "rank R pid P allocated A reserved S" at its end, which is without
tidying up.
"""
import os
import select
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

rank = int(os.environ["RANK"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
leaking = int(sys.argv[1]) if len(sys.argv) > 1 else -1
steps = int(os.environ.get("STEPS", "1000000"))
pause = float(os.environ.get("SLEEP", "0.01"))

dist.init_process_group("gloo")
torch.cuda.set_device(device)
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 16)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
probe = torch.randn(64, 256, device=device)
kept = []
step = 0


def say(line):
    """A line in one piece: torchrun starts ranks with `-u`, where print() writes a line's end by itself."""
    os.write(1, f"{line}\n".encode())


while step < steps:
    batch = torch.randn(64, 256, device=device)
    loss = model(batch).sum()
    if rank == leaking:
        kept.append(model(probe).mean())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    # All go on together, or none does.
    stop = torch.tensor(float(rank == 0 and bool(select.select([sys.stdin], [], [], 0)[0])))
    dist.all_reduce(stop)
    if rank == 0:
        if step == 5:
            say("ready")
        if step % 10 == 0:
            say(f"step {step}")
    if stop.item():
        break
    time.sleep(pause)
say(
    f"rank {rank} pid {os.getpid()} allocated {torch.cuda.memory_allocated(device)}"
    f" reserved {torch.cuda.memory_reserved(device)}"
)
# Nothing is freed any more: what was said is what is left.
os._exit(0)
