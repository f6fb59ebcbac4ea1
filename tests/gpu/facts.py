"""What CUDA and CUPTI do on this machine, where their documentation does not say it.

usage: facts.py addresses|callbacks|holders|records|stale

Prints one JSON object: fact -> value. Each part belongs into a process of its own: CUPTI has one
subscriber a process, and `stale` may crash.
"""

import ctypes as c
import json
import sys

import torch

DRIVER, RUNTIME = 1, 2
ENTER, EXIT = 0, 1
CUDA_MALLOC, CU_MEM_ALLOC = 20, 243
MEMORY2 = 49
PAGE = 2 << 20
# A function as cuGetProcAddress names it, and the name under which the library exports it.
FUNCTIONS = [
    ("cuMemAlloc", "cuMemAlloc_v2"),
    ("cuMemFree", "cuMemFree_v2"),
    ("cuMemAllocAsync", "cuMemAllocAsync"),
    ("cuMemFreeAsync", "cuMemFreeAsync"),
    ("cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync"),
    ("cuMemAllocManaged", "cuMemAllocManaged"),
    ("cuMemAllocPitch", "cuMemAllocPitch_v2"),
    ("cuMemHostAlloc", "cuMemHostAlloc"),
    ("cuMemAllocHost", "cuMemAllocHost_v2"),
    ("cuMemFreeHost", "cuMemFreeHost"),
    ("cuMemCreate", "cuMemCreate"),
    ("cuMemRelease", "cuMemRelease"),
    ("cuMemMap", "cuMemMap"),
    ("cuMemUnmap", "cuMemUnmap"),
    ("cuMemRetainAllocationHandle", "cuMemRetainAllocationHandle"),
]


class CallbackData(c.Structure):
    _fields_ = [
        ("site", c.c_int),
        ("name", c.c_char_p),
        ("params", c.c_void_p),
        ("result", c.POINTER(c.c_int)),
        ("symbol", c.c_char_p),
        ("context", c.c_void_p),
        ("context_uid", c.c_uint32),
        ("data", c.POINTER(c.c_uint64)),
        ("correlation", c.c_uint32),
    ]


class Parameters(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("holder", c.c_char_p),
        ("holder_size", c.c_size_t),
        ("shared", c.c_uint8),
        ("padding", c.c_uint8 * 7),
    ]


Callback = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_uint32, c.POINTER(CallbackData))
Request = c.CFUNCTYPE(None, c.POINTER(c.c_void_p), c.POINTER(c.c_size_t), c.POINTER(c.c_size_t))
Complete = c.CFUNCTYPE(None, c.c_void_p, c.c_uint32, c.c_void_p, c.c_size_t, c.c_size_t)


def mapped(name):
    lines = (line.split() for line in open("/proc/self/maps"))
    return c.CDLL(next(fields[-1] for fields in lines if len(fields) > 5 and f"/{name}" in fields[-1]))


torch.zeros(1, device="cuda")
cuda, cudart, cupti = mapped("libcuda.so"), mapped("libcudart"), mapped("libcupti")
visits = []


@Callback
def callback(_user, domain, function, data):
    data = data.contents
    visits.append((domain, function, data.site, data.correlation, data.data[0] if data.data else None))
    if data.site == EXIT and at_exit:
        at_exit.pop()()


at_exit = []


def subscribe():
    handle = c.c_size_t()
    return cupti.cuptiSubscribe(c.byref(handle), callback, None), handle


def subscribe_v2(name, shared):
    handle, holder = c.c_size_t(), c.create_string_buffer(128)
    size = c.sizeof(Parameters) if version() >= 130200 else Parameters.shared.offset
    parameters = Parameters(size, name, c.cast(holder, c.c_char_p), 128, shared)
    code = cupti.cuptiSubscribe_v2(c.byref(handle), callback, None, c.byref(parameters))
    return code, handle, holder.value.decode(errors="replace")


def version():
    number = c.c_uint32()
    cupti.cuptiGetVersion(c.byref(number))
    return number.value


def stored(library, function, *arguments):
    """A call that stores its result through its first argument."""
    result = c.c_size_t()
    code = getattr(library, function)(c.byref(result), *arguments)
    if code != 0:
        raise SystemExit(f"{function}: error {code}")
    return result.value


def addresses():
    """Whether a probe on an exported function sees the calls of those who asked for its address."""
    different, missing = [], []
    number, status = c.c_int(), c.c_int()
    cuda.cuDriverGetVersion(c.byref(number))
    for name, exported in FUNCTIONS:
        address = c.c_void_p()
        cuda.cuGetProcAddress_v2(name.encode(), c.byref(address), number, c.c_uint64(0), c.byref(status))
        if not address.value or not hasattr(cuda, exported):
            missing.append(name)
        elif c.cast(getattr(cuda, exported), c.c_void_p).value != address.value:
            different.append(name)
    return {"driver": number.value, "addresses that differ": different, "functions missing": missing}


def callbacks():
    """Whether driver calls beneath runtime calls are told, and under which number."""
    code, handle = subscribe()
    for domain, function in ((RUNTIME, CUDA_MALLOC), (DRIVER, CU_MEM_ALLOC)):
        cupti.cuptiEnableCallback(1, handle, domain, function)
    block = stored(cudart, "cudaMalloc", c.c_size_t(5 << 20))
    cudart.cudaFree(c.c_void_p(block))
    nested = [visit for visit in visits if visit[0] == DRIVER]
    fresh = [visit[4] for visit in visits if visit[2] == ENTER]
    facts = {
        "subscribe": code,
        "visits of one cudaMalloc": [visit[:3] for visit in visits],
        "driver call beneath it is told": bool(nested),
        "one number for both": len({visit[3] for visit in visits}) == 1,
        "the call's own word at its beginning": fresh,
    }
    cupti.cuptiUnsubscribe(handle)
    return facts


def holders():
    """What a second subscriber is told."""
    code, first = subscribe()
    facts = {"version": version(), "second by the first function": subscribe()[0]}
    if hasattr(cupti, "cuptiSubscribe_v2"):
        facts["second by the second function"], _, facts["name of one without a name"] = subscribe_v2(b"second", 0)
        cupti.cuptiUnsubscribe(first)
        code, first, _ = subscribe_v2(b"first", 0)
        _, _, facts["name of one called first"] = subscribe_v2(b"second", 0)
        cupti.cuptiUnsubscribe(first)
        code, first, _ = subscribe_v2(b"first", 1)
        second_code, second, name = subscribe_v2(b"second", 1)
        facts["two who allow each other"] = [code, second_code, name]
        if second_code == 0:
            cupti.cuptiUnsubscribe(second)
    cupti.cuptiUnsubscribe(first)
    facts["free again"] = subscribe()[0]
    return facts


def records():
    """Which memory operations leave activity records."""
    buffers, found = [], []

    @Request
    def request(buffer, size, most):
        buffers.append(c.create_string_buffer(1 << 20))
        buffer[0], size[0], most[0] = c.addressof(buffers[-1]), 1 << 20, 0

    @Complete
    def complete(_context, _stream, buffer, _size, valid):
        record, places = c.c_void_p(), []
        while cupti.cuptiActivityGetNextRecord(c.c_void_p(buffer), c.c_size_t(valid), c.byref(record)) == 0:
            places.append(record.value)
        for place, end in zip(places, [*places[1:], buffer + valid]):
            kind, operation, memory = (c.c_uint32 * 3).from_address(place)
            size = c.c_uint64.from_address(place + 24).value
            found.append({"kind": kind, "operation": operation, "memory": memory, "bytes": size, "record": end - place})

    codes = [cupti.cuptiActivityRegisterCallbacks(request, complete), cupti.cuptiActivityEnable(MEMORY2)]

    def after(step):
        cuda.cuCtxSynchronize()
        cupti.cuptiActivityFlushAll(0)
        facts[step] = list(found)
        found.clear()

    facts = {"version": version(), "enable": codes}
    block = stored(cudart, "cudaMalloc", c.c_size_t(5 << 20))
    cudart.cudaFree(c.c_void_p(block))
    after("cudaMalloc and cudaFree")
    block = stored(cuda, "cuMemAllocAsync", c.c_size_t(5 << 20), None)
    cuda.cuMemFreeAsync(c.c_size_t(block), None)
    after("cuMemAllocAsync and cuMemFreeAsync")
    place = stored(cuda, "cuMemAddressReserve", c.c_size_t(PAGE), c.c_size_t(0), c.c_size_t(0), c.c_uint64(0))
    # CUmemAllocationProp: pinned memory on device 0.
    properties = (c.c_uint32 * 8)(1, 0, 1, 0)
    handle = stored(cuda, "cuMemCreate", c.c_size_t(PAGE), properties, c.c_uint64(0))
    codes = [
        cuda.cuMemMap(c.c_size_t(place), c.c_size_t(PAGE), c.c_size_t(0), c.c_size_t(handle), c.c_uint64(0)),
        cuda.cuMemUnmap(c.c_size_t(place), c.c_size_t(PAGE)),
        cuda.cuMemRelease(c.c_size_t(handle)),
        cuda.cuMemAddressFree(c.c_size_t(place), c.c_size_t(PAGE)),
    ]
    after("virtual memory")
    facts["virtual memory: codes"] = codes
    return facts


def stale():
    """What CUPTI says of a handle after somebody else's finalize, at the end of a call."""
    code, handle = subscribe()
    cupti.cuptiEnableDomain(1, handle, RUNTIME)
    at_exit.append(cupti.cuptiFinalize)
    cudart.cudaDeviceSynchronize()
    visits.clear()
    cudart.cudaDeviceSynchronize()
    state = c.c_uint32(9)
    facts = {"visits after a finalize": len(visits)}
    code = cupti.cuptiGetCallbackState(c.byref(state), handle, RUNTIME, CUDA_MALLOC)
    facts["state of the old handle"] = [code, state.value]
    facts["subscribe again"] = subscribe()[0]
    return facts


parts = [addresses, callbacks, holders, records, stale]
print(json.dumps({part.__name__: part for part in parts}[sys.argv[1]]()))
