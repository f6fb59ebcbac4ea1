"""Holds one block in each of many ways. Prints "block NAME ADDRESS" for each, then "ready"; goes on
computing until its input ends, and prints what it computed and what it held."""
import collections
import dataclasses
import functools
import gc
import hashlib
import sys
import threading

import torch

DEV = "cuda"
blocks = []


def block(name, tensor=None):
    tensor = torch.ones(1000, device=DEV) if tensor is None else tensor
    blocks.append((name, tensor.untyped_storage().data_ptr()))
    return tensor


variable = block("variable")
history = {"logits": [block("dict of list")]}
replay = collections.deque([block("deque")], maxlen=120)
view = block("view")[:3]


def closure():
    inside = block("closure")
    return lambda: inside


read_inside = closure()


def with_default(value, buffer=block("default argument")):
    return value, buffer


class Registry:
    shared = block("class attribute")

    def __init__(self):
        self.own = block("attribute")


class Slotted:
    __slots__ = ("other", "kept")


@dataclasses.dataclass
class Sample:
    data: torch.Tensor


registry = Registry()
slotted = Slotted()
slotted.kept = block("slot")
sample = Sample(block("dataclass"))


@functools.lru_cache
def cached(number):
    return block("lru_cache")


cached(1)
local = threading.local()
local.scratch = block("thread-local")


def counting():
    inside = block("generator")
    yield inside.shape


generator = counting()
next(generator)


class Forever:
    def __await__(self):
        yield


async def waiting():
    inside = block("coroutine")
    await Forever()
    return inside


coroutine = waiting()
coroutine.send(None)


def failing():
    inside = block("traceback")
    raise ValueError(inside.shape)


try:
    failing()
except ValueError as error:
    last_error = error

model = torch.nn.Sequential(torch.nn.Linear(8, 8)).to(DEV)


def register(layer):
    reference = block("hook")
    layer.register_forward_hook(lambda module, inputs, output: None if reference is None else None)


register(model[0])
weight = model[0].weight
(model(torch.ones(4, 8, device=DEV)).sum()).backward()
block("gradient", weight.grad)
saved = block("graph", torch.ones(4, 8, device=DEV))
outcome = model(saved).square().mean()
del saved


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


intermediate = block("custom function", model(torch.ones(4, 8, device=DEV)))
custom = Squared.apply(intermediate).sum()
del intermediate


class Node:
    pass


def cycle():
    node = Node()
    node.itself = node
    node.tensor = block("cycle")


gc.disable()
cycle()
leaf = torch.ones(4, 8, device=DEV, requires_grad=True)
block("native cycle", leaf)
leaf.square().sum().backward(create_graph=True)
del leaf


def running():
    mine = block("frame")
    started.set()
    digest = hashlib.sha256()
    steps = 0
    while not stop.is_set():
        text = " ".join(str(number * steps % 97) for number in range(200))
        digest.update(text.encode())
        steps += 1
    done.append((mine.sum().item(), steps))


started, stop, done = threading.Event(), threading.Event(), []
threads = [threading.Thread(target=running) for _ in range(4)]
for thread in threads:
    thread.start()
    started.wait()
    started.clear()

counts = [sys.getrefcount(value) for value in (variable, history, replay, registry, model, weight, cached)]
memory = torch.cuda.memory_stats()["allocation.all.allocated"]
tracked = len(gc.get_objects())
for name, address in blocks:
    print("block", name.replace(" ", "-"), hex(address), flush=True)
print("ready", flush=True)
sys.stdin.readline()
again = [sys.getrefcount(value) for value in (variable, history, replay, registry, model, weight, cached)]
print("references", "same" if counts == again else f"{counts} {again}", flush=True)
same = memory == torch.cuda.memory_stats()["allocation.all.allocated"]
print("memory", "same" if same else "changed", flush=True)
print("objects", len(gc.get_objects()) - tracked, "collector", gc.isenabled(), flush=True)
stop.set()
for thread in threads:
    thread.join()
print("end", len(done), flush=True)
