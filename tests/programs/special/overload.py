"""Allocates and frees as fast as Python can, on several threads, then says how often.

usage: overload.py THREADS SECONDS
"""
import sys
import threading
import time

import torch

threads, seconds = int(sys.argv[1]), float(sys.argv[2])
empty, device = torch.empty, torch.device("cuda")
empty(1024, device=device)
before = torch.cuda.memory_stats()
print("ready", flush=True)
sys.stdin.readline()
start = time.monotonic()
until = start + seconds


def loop():
    while time.monotonic() < until:
        for _ in range(5000):
            empty(1024, device=device)


workers = [threading.Thread(target=loop) for _ in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
elapsed = time.monotonic() - start
after = torch.cuda.memory_stats()
events = sum(after[f"allocation.all.{what}"] - before[f"allocation.all.{what}"] for what in ("allocated", "freed"))
print("events", events, int(events / elapsed), flush=True)
sys.stdin.readline()
