# options: --devices 2
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from support import batch, check_driver_agrees, mlp
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def worker(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model = DistributedDataParallel(mlp(f"cuda:{rank}"), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(5):
        inputs, target = batch(f"cuda:{rank}")
        optimizer.zero_grad()
        cross_entropy(model(inputs), target).backward()
        optimizer.step()
    ranks = torch.tensor([float(rank + 1)], device="cuda")
    dist.all_reduce(ranks)
    assert ranks.item() == 3.0, "gloo reduces on the host, so its result is real"
    check_driver_agrees(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(worker, (port,), nprocs=2)
