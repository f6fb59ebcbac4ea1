"""An allocator in Python that keeps what is given back, as CuPy's does: it takes memory from the CUDA
runtime by ctypes, and PyTorch is nowhere.

usage: pool.py LEDGER
"""
import ctypes
import os
import sys

driver = ctypes.CDLL("libcuda.so.1")
runtime = ctypes.CDLL("libcudart.so.13")
MIB = 1 << 20


class Pool:
    """Blocks by size, rounded up to 512 bytes; nothing goes back to the driver."""

    def __init__(self):
        self.free = {}

    def malloc(self, size):
        size = (size + 511) // 512 * 512
        if self.free.get(size):
            return self.free[size].pop(), size
        address = ctypes.c_void_p()
        code = runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size))
        assert code == 0, code
        return address.value, size

    def give_back(self, block):
        address, size = block
        self.free.setdefault(size, []).append(address)


print("ready", os.getpid(), flush=True)
sys.stdin.readline()
pool = Pool()
kept = [pool.malloc(2 * MIB) for _ in range(4)]
for step in range(20):
    temporary = pool.malloc(6 * MIB)
    scratch = pool.malloc(1000)
    pool.give_back(temporary)
    pool.give_back(scratch)
assert driver.simcuda_write_ledger(sys.argv[1].encode()) == 0
print("quiet", flush=True)
sys.stdin.readline()
