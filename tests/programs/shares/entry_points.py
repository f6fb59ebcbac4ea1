"""Compares what cuGetProcAddress hands out with what libcuda exports, for every function that takes device
memory or gives it back. Prints, as JSON, what is handed out and has none of the names in its argument:
a probe on the exported functions would miss that. Needs a driver, simulated or not, and no device memory.

usage: entry_points.py NAME...   (the exported names that are probed)
"""
import ctypes
import json
import sys

BASES = """cuMemAlloc cuMemAllocPitch cuMemAllocManaged cuMemAllocAsync cuMemAllocFromPoolAsync cuMemAllocHost
cuMemHostAlloc cuMemCreate cuMemMap cuMemUnmap cuMemRelease cuMemRetainAllocationHandle cuMemFree
cuMemFreeAsync cuMemFreeHost cuMemPoolCreate cuMemPoolDestroy cuMemPoolTrimTo cuMemPoolSetAttribute
cuStreamBeginCapture cuStreamBeginCaptureToGraph cuStreamEndCapture cuCtxSetCurrent cuCtxPushCurrent
cuCtxPopCurrent cuDevicePrimaryCtxRetain cuCtxCreate""".split()
# CUDA 4.0 is the first with 64-bit addresses everywhere; the newest is far in the future.
VERSIONS = [4000, 10000, 11020, 11040, 12000, 12030, 12050, 13000, 99000]
# CU_GET_PROC_ADDRESS_DEFAULT, _LEGACY_STREAM, _PER_THREAD_DEFAULT_STREAM
FLAGS = [0, 1, 2]

driver = ctypes.CDLL("libcuda.so.1")
assert driver.cuInit(0) == 0
probed = {}
for name in sys.argv[1:]:
    try:
        probed[ctypes.cast(getattr(driver, name), ctypes.c_void_p).value] = name
    except AttributeError:
        pass  # of another version of the driver
handed_out, missed = 0, []
for base in BASES:
    for version in VERSIONS:
        for flags in FLAGS:
            address = ctypes.c_void_p()
            driver.cuGetProcAddress_v2(
                base.encode(), ctypes.byref(address), version, ctypes.c_uint64(flags), ctypes.byref(ctypes.c_int())
            )
            if address.value:
                handed_out += 1
                if address.value not in probed:
                    missed.append([base, version, flags])
print("quiet", json.dumps({"handed_out": handed_out, "missed": missed}), flush=True)
