# -*- coding: utf-8 -*-
"""Threads that each block deep in some kind of Python code.

Prints one line of JSON with what Python itself says of every thread's stack
at that point, and waits for the end of its standard input. Must run on every
Python from 3.8 on, so newer syntax is kept out.
"""
import asyncio
import contextlib
import functools
import gc
import importlib.abc
import importlib.util
import io
import json
import os
import sys
import threading
import traceback

HAS_QUALNAME = sys.version_info >= (3, 11)
ready_out, ready_in = os.pipe()
hold_out, hold_in = os.pipe()
scenes = []
native_ids = {}


def stop(*_ignored):
    # One line, so that it does not matter how far the thread has come in it.
    return os.write(ready_in, b".") and os.read(hold_out, 1)


def scene(function):
    scenes.append(function)
    return function


@scene
def plain():
    def inner():
        x = 1
        stop()
        return x

    return inner()


@scene
def deep():
    def down(n):
        return stop() if n == 0 else down(n - 1)

    return down(300)


@scene
def lambdas():
    return (lambda f: (lambda: f())())(
        lambda: stop()
    )


@scene
def decorated():
    def outer(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            finally:
                pass

        return wrapper

    @outer
    @functools.lru_cache(maxsize=None)
    @outer
    def leaf(a, b=2, *c, **d):
        return functools.partial(stop, a)()

    return leaf(1)


@scene
def class_body():
    class Meta(type):
        def __new__(mcs, name, bases, space):
            return super().__new__(mcs, name, bases, space)

    class Body(metaclass=Meta):
        x = [
            1,
            2,
        ]

        stop()


class Things:
    def __init__(self, stops=False):
        if stops:
            self.method()

    def method(self):
        return self[3]

    def __getitem__(self, key):
        return self.prop

    @property
    def prop(self):
        return self.cm()

    @classmethod
    def cm(cls):
        return cls.sm()

    @staticmethod
    def sm():
        with Things.manager():
            return Things()(5)

    @contextlib.contextmanager
    def manager():
        yield

    def __call__(self, n):
        return self < n

    def __lt__(self, other):
        return sorted([2, 1], key=stop)


@scene
def methods():
    return Things(stops=True)


@scene
def finalizer():
    class Dying:
        def __del__(self):
            stop()

    dying = Dying()
    del dying


@scene
def context_exit():
    class Context:
        def __enter__(self):
            return self

        def __exit__(self, *exc):
            stop()

    with Context(), \
            contextlib.suppress(KeyError):
        pass


@scene
def comprehensions():
    return [
        {k: v for k, v in zip(range(1), (stop() for _ in range(1)))}
        for i in range(2)
    ]


def counting(n):
    for i in range(n):
        if i == 1:
            stop()
        yield i


@scene
def generators():
    def outer():
        got = yield from counting(3)
        return got

    def sender():
        while True:
            value = yield
            list(map(lambda x: list(outer()), [value]))

    g = sender()
    next(g)
    g.send(1)


@scene
def coroutines():
    async def leaf():
        await asyncio.sleep(0)
        stop()

    async def agen():
        yield 1
        await leaf()
        yield 2

    async def main():
        return await asyncio.gather(
            collect(),
        )

    async def collect():
        return [x async for x in agen()]

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


@scene
def exceptions():
    try:
        try:
            raise ValueError(1)
        except ValueError:
            raise KeyError(2)
        finally:
            len("x")
    except KeyError as error:
        print(
            error,
            stop(
                1,
                2,
            ),
            file=io.StringIO(),
        )


@scene
def executed():
    source = "\n" * 70000 + "def far():\n" + "\n" * 300 + "    x = (1,\n\n  stop())\nfar()\n"
    exec(compile(source, "<made up>", "exec"), {"stop": stop})


@scene
def evaluated():
    return eval("(lambda a: [stop() for _ in a])('x')")


@scene
def named_in_one_byte():
    def grün():
        stop()

    grün()


def many_names(name, file):
    source = "class {0}:\n  def {0}(self):\n    return stop()\n{0}().{0}()\n".format(name)
    exec(compile(source, file, "exec"), {"stop": stop})


@scene
def named_in_two_bytes():
    many_names("\u95a2\u6570", "/tmp/\u95a2.py")


@scene
def named_in_four_bytes():
    many_names("\U00020bb7\u91ce\u5bb6", "/tmp/\U00020bb7.py")


@scene
def named_with_a_surrogate():
    many_names("plain_name", "/tmp/not utf-8 \udc80\udcff.py")


@scene
def named_at_length():
    many_names("x" * 5000, "/" + "long/" * 2000 + "name.py")


@scene
def imported():
    class Loader(importlib.abc.Loader):
        def create_module(self, spec):
            return None

        def exec_module(self, module):
            exec("import sys\nfrom functools import *\nstop()\n", {"stop": stop})

    spec = importlib.util.spec_from_loader("made_up", Loader())
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


@scene
def traced():
    def tracer(frame, event, arg):
        return tracer

    def under():
        x = 1
        x += 1
        stop()

    sys.settrace(tracer)
    try:
        under()
    finally:
        sys.settrace(None)


@scene
def setting_up():
    # Python 3.11 makes the cells of a call in bytecode before its first line,
    # in a frame that it hides until then; making one can start the collector.
    def callback(phase, info):
        if threading.get_ident() == me and phase == "start":
            gc.callbacks.remove(callback)
            gc.set_threshold(*threshold)
            stop()

    def many(a, b, c, d):
        return lambda: (a, b, c, d)

    me = threading.get_ident()
    threshold = gc.get_threshold()
    gc.callbacks.append(callback)
    gc.set_threshold(1)
    many(1, 2, 3, 4)
    if callback in gc.callbacks:
        gc.callbacks.remove(callback)
        gc.set_threshold(*threshold)
        stop()


@scene
def one_liners():
    x = 1; y = 2; stop(); z = 3
    return x, y, z


@scene
def loops():
    for i in range(3):
        while True:
            if i:
                stop()
            break
    else:
        pass


def run(function):
    native_ids[threading.get_ident()] = threading.get_native_id()
    function()


def text(value):
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def frames(frame):
    summary = traceback.extract_stack(frame)
    summary.reverse()
    names = []
    while frame is not None:
        code = frame.f_code
        names.append(code.co_qualname if HAS_QUALNAME else code.co_name)
        frame = frame.f_back
    assert len(names) == len(summary)
    return [[text(s.filename), s.lineno, text(name)] for s, name in zip(summary, names)]


def truth(mine):
    stacks = sys._current_frames()
    stacks[threading.get_ident()] = mine
    native_ids[threading.get_ident()] = threading.get_native_id()
    answer = [
        {"pthread": ident, "native_id": native_ids[ident], "frames": frames(frame)}
        for ident, frame in stacks.items()
    ]
    return (json.dumps(answer) + "\n").encode()


def main():
    threads = [threading.Thread(target=run, args=(s,), name=s.__name__) for s in scenes]
    for thread in threads:
        thread.start()
    waiting = len(threads)
    while waiting:
        waiting -= len(os.read(ready_out, waiting))
    # One line again: it is being executed both when the truth is taken and
    # when the process is looked at.
    os.write(1, truth(sys._getframe())) and os.read(0, 1)
    os.close(hold_in)
    for thread in threads:
        thread.join()


main()
