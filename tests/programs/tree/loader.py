"""A DataLoader whose workers put their samples on the GPU: each takes a context there, and keeps what it
made.

usage: loader.py [spawn|fork]
Prints "ready" when batches come and then "batch N" each 10; ends when a line comes on its standard input.
"""
import os
import select
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

cache = []


class OnDevice(Dataset):
    """Samples that are made on the device."""

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        sample = torch.full((64, 1024), float(index % 7), device="cuda")
        cache.append(sample)
        time.sleep(0.01)
        return sample.sum().cpu()


def main():
    """The training, which itself has nothing on the GPU: a forked worker could not use it otherwise."""
    way = sys.argv[1] if len(sys.argv) > 1 else "fork"
    loader = DataLoader(OnDevice(), batch_size=2, num_workers=2, multiprocessing_context=way)
    for number, _ in enumerate(loader):
        if number == 5:
            print("ready", os.getpid(), flush=True)
        if number % 10 == 0:
            print("batch", number, flush=True)
        if select.select([sys.stdin], [], [], 0)[0]:
            break


if __name__ == "__main__":
    main()
