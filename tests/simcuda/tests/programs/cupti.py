"""The simulated CUPTI by its C interface: subscribers, callbacks, records, and the end of it."""

import ctypes as c
import json
import os
import subprocess
import sys

import torch

DRIVER, RUNTIME = 1, 2
ENTER, EXIT = 0, 1
CUDA_MALLOC, CUDA_FREE, CU_MEM_ALLOC, CU_MEM_FREE = 20, 22, 243, 245
HELD = 39
MEMORY2, MEMORY_POOL = 49, 50
IS_13 = torch.version.cuda.startswith("13")


class CallbackData(c.Structure):
    _fields_ = [
        ("site", c.c_int),
        ("name", c.c_char_p),
        ("params", c.POINTER(c.c_uint64)),
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


def loaded(name):
    return c.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if name in line))


torch.cuda.init()
cupti, cudart = loaded("libcupti"), loaded("libcudart")
seen = []
at_exit = []


@Callback
def callback(_user, domain, function, data):
    data = data.contents
    if data.site == ENTER:
        data.data[0] = 7 * data.correlation
    kept = data.data[0] == 7 * data.correlation
    result = data.result[0] if data.site == EXIT else None
    seen.append((domain, function, data.site, data.correlation, data.name.decode(), data.params[1], result, kept))
    if data.site == EXIT and at_exit and domain == RUNTIME:
        at_exit.pop()()


def subscribe():
    handle = c.c_size_t()
    return cupti.cuptiSubscribe(c.byref(handle), callback, None), handle


def subscribe_v2(name, shared, size=c.sizeof(Parameters)):
    handle, holder = c.c_size_t(), c.create_string_buffer(64)
    parameters = Parameters(size, name, c.cast(holder, c.c_char_p), 64, shared)
    code = cupti.cuptiSubscribe_v2(c.byref(handle), callback, None, c.byref(parameters))
    return code, handle, holder.value


def malloc(size):
    address = c.c_size_t()
    assert cudart.cudaMalloc(c.byref(address), c.c_size_t(size)) == 0
    return address


def free(address):
    assert cudart.cudaFree(address) == 0


def version():
    number = c.c_uint32()
    assert cupti.cuptiGetVersion(c.byref(number)) == 0
    return number.value


def callbacks():
    code, handle = subscribe()
    assert code == 0 and subscribe()[0] == HELD
    for domain, function in ((RUNTIME, CUDA_MALLOC), (DRIVER, CU_MEM_ALLOC)):
        assert cupti.cuptiEnableCallback(1, handle, domain, function) == 0
    seen.clear()
    free(malloc(5000))
    order = [(domain, function, site) for domain, function, site, *_ in seen]
    assert order == [(2, 20, 0), (1, 243, 0), (1, 243, 1), (2, 20, 1)], order
    assert len({entry[3] for entry in seen}) == 1, "a driver call has its runtime call's number"
    assert [entry[4] for entry in seen] == ["cudaMalloc", "cuMemAlloc_v2"] + ["cuMemAlloc_v2", "cudaMalloc"]
    assert all(entry[5] == 5000 for entry in seen) and [entry[6] for entry in seen] == [None, None, 0, 0]
    assert all(entry[7] for entry in seen), "8 bytes are kept from enter to exit, for each call its own"
    state = c.c_uint32(9)
    assert cupti.cuptiGetCallbackState(c.byref(state), handle, DRIVER, CU_MEM_ALLOC) == 0 and state.value == 1
    assert cupti.cuptiEnableCallback(0, handle, DRIVER, CU_MEM_ALLOC) == 0
    seen.clear()
    free(malloc(5000))
    assert len(seen) == 2
    assert cupti.cuptiUnsubscribe(handle) == 0 and cupti.cuptiUnsubscribe(handle) == 1
    free(malloc(5000))
    assert len(seen) == 2
    assert cupti.cuptiGetCallbackState(c.byref(state), handle, DRIVER, CU_MEM_ALLOC) == 1, "the handle is gone"


def finalize_at_exit():
    code, handle = subscribe()
    assert code == 0 and cupti.cuptiEnableDomain(1, handle, RUNTIME) == 0
    at_exit.append(cupti.cuptiFinalize)
    address = malloc(5000)
    seen.clear()
    free(address)
    assert not seen and cupti.cuptiUnsubscribe(handle) == 1
    code, handle = subscribe()
    assert code == 0, "after a finalize somebody else may come"
    assert cupti.cuptiUnsubscribe(handle) == 0


def names():
    """CUDA 13: who holds the subscription, and several at once."""
    code, first, _ = subscribe_v2(b"first", 0)
    assert code == 0 and subscribe_v2(b"second", 1)[::2] == (HELD, b"CUPTI for first")
    assert cupti.cuptiUnsubscribe(first) == 0
    assert subscribe_v2(b"short", 0, size=8)[0] == 1
    code, first, _ = subscribe_v2(b"first", 1)
    code, second, holder = subscribe_v2(b"second", 1)
    assert (code, holder) == (0 if version() >= 130200 else HELD, b"CUPTI for first")
    assert subscribe()[0] == HELD, "the first version knows one subscriber"
    for handle in (first, second)[: 2 if code == 0 else 1]:
        assert cupti.cuptiUnsubscribe(handle) == 0


def records():
    """What an allocation and a free of 5,000 bytes leave: (operation, address, bytes, size of a record)."""
    buffers, found = [], []

    @Request
    def request(buffer, size, most):
        buffers.append(c.create_string_buffer(4096))
        buffer[0], size[0], most[0] = c.addressof(buffers[-1]), 4096, 0

    @Complete
    def complete(_context, _stream, buffer, _size, valid):
        record, places = c.c_void_p(), []
        while cupti.cuptiActivityGetNextRecord(c.c_void_p(buffer), c.c_size_t(valid), c.byref(record)) == 0:
            places.append(record.value)
        ends = [*places[1:], buffer + valid]
        for place, end in zip(places, ends):
            kind, operation = (c.c_uint32 * 2).from_address(place)
            address, size = (c.c_uint64 * 2).from_address(place + 16)
            found.append((kind, operation, address, size, end - place))

    assert cupti.cuptiActivityFlushAll(0) == 7, "nobody said where records go"
    assert cupti.cuptiActivityRegisterCallbacks(request, complete) == 0
    assert cupti.cuptiActivityEnable(MEMORY2) == 0 and cupti.cuptiActivityEnable(1000) == 21
    address = malloc(5000)
    free(address)
    assert cupti.cuptiActivityFlushAll(0) == 0
    assert cupti.cuptiFinalize() == 0
    assert [entry[:4] for entry in found] == [(MEMORY2, operation, address.value, 5000) for operation in (1, 2)], found
    return found[0][4]


def child(environment):
    """This program's other half, with another CUPTI."""
    command = [sys.executable, __file__, "child"]
    done = subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


if sys.argv[1:] == ["child"]:
    if version() >= 130000:
        names()
    print(json.dumps([version(), records()]))
else:
    assert version() == (130200 if IS_13 else 26)
    callbacks()
    finalize_at_exit()
    assert hasattr(cupti, "cuptiSubscribe_v2") == IS_13
    if IS_13:
        names()
    assert records() == 128
    callbacks()
    for number, size in ((130000, 128), (130501, 128)) if IS_13 else ((15, 112), (18, 120), (24, 128)):
        assert child({"SIMCUDA_CUPTI_VERSION": str(number)}) == [number, size]
