"""Twelve threads train while signals arrive and threads are born and die.

usage: busy.py
Prints "ready PID", then "step N" as they go. A line on stdin ends it; it then says what must be right
whoever watched: how many steps each thread made of those it was to make, and what went wrong (nothing).
"""
import itertools
import os
import signal
import sys
import threading
import time

import torch
from torch import nn

THREADS = 12
stop = threading.Event()
errors = []
alarms = itertools.count()
made = [0] * THREADS
sums = [0.0] * THREADS


def on_alarm(_signal, _frame):
    next(alarms)


def train(index):
    try:
        torch.manual_seed(index)
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        while not stop.is_set():
            loss = model(torch.randn(8, 16, device="cuda")).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            # Floating-point state that a careless visitor would spoil.
            value = 1.0
            for _ in range(20):
                value = value * 1.0000001 + 1e-9
            sums[index] = value
            made[index] += 1
            time.sleep(0.001)
    except Exception as error:  # said at the end, where the test looks
        errors.append(repr(error))


def short_lived():
    block = torch.empty(128, device="cuda")
    del block


signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
threads = [threading.Thread(target=train, args=(index,)) for index in range(THREADS)]
for thread in threads:
    thread.start()


def listen():
    sys.stdin.readline()
    stop.set()


threading.Thread(target=listen, daemon=True).start()
while 0 in made and not errors:
    time.sleep(0.01)
print("ready", os.getpid(), flush=True)
last, last_time = 0, time.monotonic()
while not stop.is_set():
    brief = threading.Thread(target=short_lived)
    brief.start()
    brief.join()
    time.sleep(0.01)
    now = time.monotonic()
    if now - last_time > 0.1:
        total = sum(made)
        print(f"step {total} {(now - last_time) / max(1, total - last) * 1e6:.1f}", flush=True)
        last, last_time = total, now
for thread in threads:
    thread.join()
signal.setitimer(signal.ITIMER_REAL, 0)
value = 1.0
for _ in range(20):
    value = value * 1.0000001 + 1e-9
wrong = sum(one != value for one in sums)
print(f"end threads {len(made)} idle {made.count(0)} wrong {wrong} errors {errors}", flush=True)
