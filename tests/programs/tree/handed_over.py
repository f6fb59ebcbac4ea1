"""Hands tensors to a process of its own through a queue, and says what each of the two has.

usage: handed_over.py
Prints "ready" and waits for a line. The consumer keeps one tensor of the producer's and gives another
back; each has tensors of its own. Then each prints "process PID consumer 0|1 allocated A reserved S used U"
(PyTorch's figures, and what NVML says of the process). Then comes "quiet"; after another line both end at
once, so that nothing is freed any more.
"""
import ctypes
import gc
import os
import sys
from queue import Empty

import torch
import torch.multiprocessing as mp

MIB = 1 << 20
KEPT = 44 * MIB
GIVEN_BACK = 26 * MIB


class Use(ctypes.Structure):
    """nvmlProcessInfo_t"""

    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("instances", ctypes.c_uint * 2)]


def told_by_nvml():
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device, count, uses = ctypes.c_void_p(), ctypes.c_uint(128), (Use * 128)()
    assert nvml.nvmlInit_v2() == 0
    assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), uses) == 0
    return {use.pid: use.used for use in uses[: count.value]}.get(os.getpid(), 0)


def say_figures(consumer):
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    figures = f"allocated {allocated} reserved {reserved} used {told_by_nvml()}"
    os.write(1, f"process {os.getpid()} consumer {consumer} {figures}\n".encode())


def consume(tensors, replies):
    own = [torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")]
    kept, given_back = tensors.get()
    assert kept.numel() == KEPT and given_back.numel() == GIVEN_BACK
    assert kept[KEPT // 2 :].cpu().eq(5).all(), "the producer's bytes"
    own.append(kept[: 7 * MIB].clone())
    replies.put("copied")
    again = tensors.get()
    own.append(torch.empty(1000, device="cuda"))
    del given_back, again
    gc.collect()
    replies.put("given back")
    assert tensors.get() == "look"
    say_figures(1)
    replies.put("quiet")
    assert tensors.get() == "end"
    assert kept.numel() == KEPT and len(own) == 3
    os._exit(0)


def main():
    context = mp.get_context("spawn")
    tensors, replies = context.Queue(), context.Queue()
    print("ready", flush=True)
    sys.stdin.readline()
    consumer = context.Process(target=consume, args=(tensors, replies))
    consumer.start()

    def heard():
        while consumer.is_alive():
            try:
                return replies.get(timeout=1)
            except Empty:
                continue
        raise SystemExit(f"the consumer ended: {consumer.exitcode}")

    kept = torch.full((KEPT,), 0, dtype=torch.uint8, device="cuda")
    kept.copy_(torch.full((KEPT,), 5, dtype=torch.uint8))
    given_back = torch.empty(GIVEN_BACK, dtype=torch.uint8, device="cuda")
    tensors.put((kept, given_back))
    assert heard() == "copied"
    # Handed over once more, it is still the same memory.
    tensors.put(kept)
    assert heard() == "given back"
    del given_back
    torch.cuda.ipc_collect()
    torch.cuda.empty_cache()
    tensors.put("look")
    assert heard() == "quiet"
    assert torch.cuda.memory_allocated() == KEPT
    say_figures(0)
    print("quiet", flush=True)
    sys.stdin.readline()
    tensors.put("end")
    consumer.join()
    os._exit(consumer.exitcode)


if __name__ == "__main__":
    main()
