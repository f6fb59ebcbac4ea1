"""Reports events from every kind of Python code and writes down where each came from.

usage: workload.py LIBRARY EVENTS THREADS TRUTH.json
Prints "ready", waits for a line on stdin, works, writes the truth, prints "done N", waits again.
The truth of an event: what traceback would print for its thread, innermost frame first.
"""
import asyncio
import contextlib
import ctypes
import functools
import itertools
import json
import random
import sys
import threading
import traceback

LIBRARY, EVENTS, THREADS, TRUTH = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
HAS_QUALNAME = sys.version_info >= (3, 11)

without_gil = ctypes.CDLL(LIBRARY)
with_gil = ctypes.PyDLL(LIBRARY)
for library in (without_gil, with_gil):
    for function in (library.report, library.report_from_bare_thread):
        function.argtypes = [ctypes.c_uint64]
        function.restype = None

truth = {}
numbers = itertools.count(1)


def here(shift=0):
    """Writes down the caller's stack under a new number.

    `shift`: lines from this call to the call that reports, where they are not on one line.
    """
    number = next(numbers)
    frame = sys._getframe(1)
    summary = traceback.StackSummary.extract(traceback.walk_stack(frame), lookup_lines=False)
    names = []
    while frame is not None:
        code = frame.f_code
        names.append(code.co_qualname if HAS_QUALNAME else code.co_name)
        frame = frame.f_back
    assert len(names) == len(summary)
    truth[number] = [[entry.filename, entry.lineno, name] for entry, name in zip(summary, names)]
    truth[number][0][1] += shift
    return number


free = without_gil.report
held = with_gil.report


def plain():
    free(here())
    held(here())


def several_lines():
    free(
        here(-1)
    )
    return [
        held(here())
        for _ in range(2)
    ]


def recursive(depth, leaf):
    if depth == 0:
        return leaf()
    return recursive(depth - 1, leaf)


def made_wide(locals_):
    """A function whose frames have room for so many locals, which calls one with another number of them."""
    names = " = ".join(f"a{number}" for number in range(locals_))
    source = (
        f"def wide_{locals_}(depth, order, leaf):\n"
        f"    {names} = depth\n"
        f"    if depth == 0:\n"
        f"        return leaf()\n"
        f"    return WIDE[depth * order % len(WIDE)](depth - 1, order, leaf)\n"
    )
    exec(compile(source, __file__, "exec"), globals())
    return globals()[f"wide_{locals_}"]


# Python stacks lie in pieces of 16 KiB, as much as is copied at once. A very large frame gets a larger piece;
# what is above it in there crosses the edge of the copy, all ways.
VERY_WIDE = made_wide(4200)
WIDE = [made_wide(locals_) for locals_ in range(1, 62)]


def generator(count):
    for value in range(count):
        free(here())
        yield value
    held(here())


def delegating(count):
    yield from generator(count)


def generators():
    for _ in delegating(3):
        held(here())
    half_done = generator(5)
    next(half_done)
    free(here())
    half_done.close()
    sum(free(here()) or 1 for _ in range(2))


class Thing:
    def method(self):
        free(here())
        return (lambda value: held(here()))(1)

    @property
    def value(self):
        free(here())
        return 1

    @staticmethod
    def static():
        held(here())

    @classmethod
    def of_class(cls):
        free(here())

    def __del__(self):
        free(here())

    def __lt__(self, other):
        held(here())
        return id(self) < id(other)

    def __call__(self, *args, **kwargs):
        free(here())

    def __getitem__(self, key):
        return held(here())


def objects():
    thing = Thing()
    thing.method()
    thing.value
    Thing.static()
    Thing.of_class()
    thing(1, key=2)
    thing["key"]
    sorted([Thing(), Thing(), Thing()])


def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        finally:
            held(here())

    return wrapper


@contextlib.contextmanager
def managed():
    free(here())
    yield
    held(here())


@traced
@traced
def decorated():
    with managed():
        free(here())


def exceptions():
    try:
        try:
            raise ValueError
        except ValueError:
            free(here())
            raise KeyError
    except KeyError:
        held(here())
    finally:
        free(here())


def größe():
    def 関数():
        def 𠀀𠀁():
            free(here())

        𠀀𠀁()
        held(here())

    関数()


async def leaf(count):
    free(here())
    await asyncio.sleep(0)
    held(here())
    return count


async def asynchronous_generator(count):
    for value in range(count):
        free(here())
        yield value


async def many():
    await asyncio.gather(*[leaf(value) for value in range(3)])
    async for _ in asynchronous_generator(2):
        held(here())
    return [value async for value in asynchronous_generator(2)]


def coroutines():
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(many())
    finally:
        loop.close()


def made_at_run_time():
    """Code objects that are gone a moment later, and whose memory others take over."""
    number = random.randrange(10**6)
    lines = "\n" * random.randrange(60)
    source = f"{lines}def made_{number}():\n    free(here())\n    return 1\nmade_{number}()\nfree(here())\n"
    exec(compile(source, f"<made {number}>", "exec"), {"free": free, "here": here})
    eval(compile("free(here())", f"<evaluated {number}>", "eval"))


def callbacks():
    list(map(lambda value: free(here()), range(2)))
    sorted([3, 1, 2], key=lambda value: held(here()) or value)
    functools.reduce(lambda left, right: free(here()) or left, [1, 2, 3])
    max([1, 2], key=functools.partial(lambda extra, value: held(here()) or value, 5))
    without_gil.call_on_bare_thread(CALLBACK)


def from_a_bare_thread():
    free(here())


CALLBACK = ctypes.CFUNCTYPE(None)(from_a_bare_thread)


@functools.lru_cache(None)
def oversized():
    """Names and line tables too long for one record."""
    body = "".join(f"    x{line} = {line} + 1\n" for line in range(4000))
    name = "long_" * 80
    source = f"def {name}():\n{body}    free(here())\n{body}    held(here())\n"
    scope = {"free": free, "held": held, "here": here}
    exec(compile(source, "/" + "long path/" * 80 + "file.py", "exec"), scope)
    return scope[name]


SHAPES = [
    plain, plain, several_lines, generators, objects, decorated, exceptions, größe, coroutines,
    made_at_run_time, callbacks,
]


def worker(seed):
    choose = random.Random(seed)
    while len(truth) < EVENTS:
        if choose.random() < 0.002:
            oversized()()
        if choose.random() < 0.1:
            begin = choose.choice([VERY_WIDE, WIDE[0]])
            begin(choose.randrange(40, 90), choose.randrange(1, 61), choose.choice(SHAPES))
        recursive(choose.choice([0, 1, 3, 10, 30, 60]), choose.choice(SHAPES))


print("ready", flush=True)
sys.stdin.readline()
threads = [threading.Thread(target=worker, args=(seed,)) for seed in range(THREADS)]
for thread in threads:
    thread.start()
worker(99)
for thread in threads:
    thread.join()
# A thread without Python has no Python stack; nobody else's is put in its place.
nobody = next(numbers)
truth[nobody] = []
without_gil.report_from_bare_thread(nobody)
with open(TRUTH, "w", encoding="utf-8") as file:
    json.dump(truth, file)
print("done", len(truth), flush=True)
sys.stdin.readline()
