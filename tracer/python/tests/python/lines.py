"""Every code object of many source files, with the line of every instruction.

Prints a line of JSON for each code object, then an empty list, and waits for
the end of its standard input with all of them alive. The lines are those that
`PyCode_Addr2Line` gives, the function that tracebacks are made with, after a
check that Python's own libraries agree with it. Runs on Python 3.8 and later.
"""
import ctypes
import dis
import json
import os
import sys
import types

FILES = """
abc argparse ast asyncio/base_events asyncio/tasks base64 calendar cmd codecs
collections/__init__ concurrent/futures/thread configparser contextlib copy csv
ctypes/__init__ dataclasses datetime decimal difflib dis doctest email/message
enum fractions functools gettext heapq http/client inspect json/decoder
logging/__init__ multiprocessing/pool ntpath pdb pickle pickletools platform
random re sre_compile statistics subprocess tarfile textwrap threading tokenize
traceback turtle typing unittest/mock urllib/parse uuid xml/dom/minidom zipfile
""".split()

# What ordinary files lack: long jumps between lines, in both directions, long
# runs of bytecode on one line, and code that belongs to no line.
MADE_UP = (
    "def far():\n"
    + "    a = 1\n"
    + "\n" * 40000
    + "    b = 2\n"
    + "\n" * 200
    + "    return a\n"
    + "def back(f):\n    return f(\n"
    + "\n" * 300
    + "        1,\n\n        f(2)\n    )\n"
    + "def wide(a):\n    return ["
    + ", ".join("a.b.c[%d]" % i for i in range(400))
    + "]\n"
    + "def hidden(a):\n"
    + "    with a as b, b as c:\n"
    + "        try:\n            return c\n        finally:\n            del a\n"
    + "    for x in b:\n        if x and a or b:\n            continue\n        break\n"
    + "    else:\n        pass\n"
    + "class Caf\u00e9:\n    '''Doc.'''\n    x: int = 1\n    async def m(self):\n"
    + "        async with self as z:\n            yield [y async for y in z if await y]\n"
)

addr2line = ctypes.pythonapi.PyCode_Addr2Line
addr2line.argtypes = [ctypes.py_object, ctypes.c_int]
addr2line.restype = ctypes.c_int


def codes(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            for inner in codes(const):
                yield inner


def lines_of(code):
    """The line of every second byte; None where there is none."""
    size = len(code.co_code)
    lines = [addr2line(code, offset) for offset in range(0, size, 2)]
    lines = [None if line < 0 else line for line in lines]
    assert lines == lines_of_library(code, size), code
    return lines


def lines_of_library(code, size):
    if hasattr(code, "co_positions"):
        return [position[0] for position in code.co_positions()]
    lines = []
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            lines += [line] * ((end - start) // 2)
        return lines
    starts = list(dis.findlinestarts(code))
    for index, (start, line) in enumerate(starts):
        end = starts[index + 1][0] if index + 1 < len(starts) else size
        if start < size:
            lines += [line] * ((min(end, size) - start) // 2)
    return lines


def runs(lines):
    """Run-length encoded: [count, line]."""
    out = []
    for line in lines:
        if out and out[-1][1] == line:
            out[-1][0] += 1
        else:
            out.append([1, line])
    return out


def table_of(code):
    return code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab


def main():
    library = os.path.dirname(os.__file__)
    sources = [("<made up>", MADE_UP)]
    for name in FILES:
        path = os.path.join(library, name + ".py")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                sources.append((path, file.read()))
    alive = []
    for path, source in sources:
        alive += codes(compile(source, path, "exec", dont_inherit=True))
    has_qualname = sys.version_info >= (3, 11)
    for code in alive:
        answer = {
            "address": id(code),
            "file": code.co_filename,
            "name": code.co_qualname if has_qualname else code.co_name,
            "first_line": code.co_firstlineno,
            "table": list(table_of(code)),
            "runs": runs(lines_of(code)),
        }
        sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.write("null\n")
    sys.stdout.flush()
    sys.stdin.read()


main()
