"""A parent with CUDA, a child of a fork, a child of spawn and one of exec; each says how it ended."""
import multiprocessing
import os
import subprocess
import sys

import torch


def work(count):
    kept = [torch.empty(256 * (index + 1), device="cuda") for index in range(count)]
    return len(kept)


if __name__ == "__main__":
    kept = [torch.empty(1024, device="cuda") for _ in range(3)]
    pid = os.fork()
    if pid == 0:
        # CUDA cannot be used here; everything else can, and this way out runs no handlers.
        sum(range(10_000))
        os._exit(5)
    print("forked", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print("spawned", pool.apply(work, (4,)), flush=True)
    code = "import torch; kept = torch.empty(4096, device='cuda'); print('executed', flush=True)"
    print("exit", subprocess.run([sys.executable, "-c", code]).returncode, flush=True)
    print("allocated", torch.cuda.memory_allocated(), flush=True)
    sys.exit(7)
