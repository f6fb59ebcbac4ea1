# options: --devices 2 --mem 1G
# environment: SIMCUDA_GROUP=management-test
"""NVML, in another process, sees what this one uses."""

import ctypes
import os
import subprocess
import sys

READ = """
import ctypes
nvml = ctypes.CDLL("libnvidia-ml.so.1")
class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]
class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]
assert nvml.nvmlInit_v2() == 0
for index in range(2):
    device, count, list_, memory = ctypes.c_void_p(), ctypes.c_uint(8), (Process * 8)(), Memory()
    assert nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) == 0
    assert nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), list_) == 0
    assert nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
    print(index, memory.total, memory.used, [(p.pid, p.used) for p in list_[: count.value]])
"""


def nvml():
    return subprocess.run([sys.executable, "-c", READ], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    import torch

    block = torch.empty(100 << 20, dtype=torch.uint8, device="cuda:1")
    used = 100 << 20
    total = 1 << 30
    assert nvml() == f"0 {total} 0 []\n1 {total} {used} [({os.getpid()}, {used})]\n", nvml()
    del block
    torch.cuda.empty_cache()
    assert nvml() == f"0 {total} 0 []\n1 {total} 0 []\n", nvml()

    # Within a group the capacity is shared: what another process takes is missing here.
    take = "import torch, sys; x = torch.empty(600 << 20, dtype=torch.uint8, device='cuda'); print(flush=True); sys.stdin.read()"
    other = subprocess.Popen([sys.executable, "-c", take], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    other.stdout.readline()
    assert torch.cuda.mem_get_info(0)[0] == (1024 - 600) << 20
    try:
        torch.empty(600 << 20, dtype=torch.uint8, device="cuda")
        raise SystemExit("600 MiB were there twice on a device of 1 GiB")
    except torch.OutOfMemoryError:
        pass
    other.communicate()
    assert torch.cuda.mem_get_info(0)[0] == total
