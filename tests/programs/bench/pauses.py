"""Twelve threads train and one only looks at the clock: how long does a thread of Python wait for its
turn, with and without questions about holders?

usage: pauses.py [THREADS]
Prints "block ADDRESS" of something that is kept, then "ready". At each line on its input it prints
"pauses {json}" of the time since the line before: how many waits above 1 ms, their percentiles and the
longest in microseconds, the share of the time that they took. "end" ends it.
"""
import json
import sys
import threading
import time

import torch

DEV = "cuda"
stop = threading.Event()
lock = threading.Lock()
waits = []
kept = [torch.ones(1000, device=DEV) for _ in range(200)]
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))


def train(number):
    own = torch.nn.Linear(16, 16).to(DEV)
    data = torch.randn(32, 16)
    while not stop.is_set():
        own(data.to(DEV)).square().mean().backward()
        own.zero_grad()
        # The device is simulated and computes nothing: some work for the processor.
        for _ in range(200):
            number = (number * 1103515245 + 12345) % (1 << 31)


def look():
    clock = time.perf_counter_ns
    last = clock()
    while not stop.is_set():
        now = clock()
        if now - last > 1_000_000:
            with lock:
                waits.append(now - last)
            now = clock()
        last = now


def report(since):
    global waits
    with lock:
        found, waits = sorted(waits), []
    seconds = time.perf_counter() - since

    def at(share):
        return found[min(len(found) - 1, int(share * len(found)))] // 1000 if found else 0

    print("pauses", json.dumps({
        "waits": len(found), "seconds": round(seconds, 2), "p50": at(0.5), "p90": at(0.9),
        "p99": at(0.99), "longest": at(1), "share": round(sum(found) / 1e9 / seconds, 3),
    }), flush=True)


torch.set_num_threads(1)
count = int(sys.argv[1]) if len(sys.argv) > 1 else 12
threads = [threading.Thread(target=train, args=(number,), daemon=True) for number in range(count)]
threads.append(threading.Thread(target=look, daemon=True))
for thread in threads:
    thread.start()
print("block", hex(kept[0].data_ptr()), flush=True)
print("ready", flush=True)
since = time.perf_counter()
for line in sys.stdin:
    if line.strip() == "end":
        break
    report(since)
    since = time.perf_counter()
stop.set()
for thread in threads:
    thread.join()
print("end", flush=True)
