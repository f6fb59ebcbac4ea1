"""How long the training programs run."""
import os
import time

STEPS = int(os.environ.get("STEPS", "80"))
SLEEP = float(os.environ.get("SLEEP", "0.01"))


def steps():
    for step in range(STEPS):
        yield step
        time.sleep(SLEEP)
