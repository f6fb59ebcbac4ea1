"""A forked child must be refused, as by the real driver, and the parent must not notice."""

import ctypes
import os

import torch
from support import check_driver_agrees

block = torch.ones(1 << 20, device="cuda")
NOT_INITIALIZED = 3
child = os.fork()
if child == 0:
    driver = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_int()
    os._exit(driver.cuDeviceGetCount(ctypes.byref(count)))
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == NOT_INITIALIZED
block += 1
check_driver_agrees()
