"""Holds the GIL until a byte comes, in C, as an extension may that forgot to let it go; then prints
"free", waits for a line without it, and ends. "two" as an argument: with a second interpreter."""
import ctypes
import sys

if "two" in sys.argv:
    import _xxsubinterpreters

    other = _xxsubinterpreters.create()
else:
    print("ready", flush=True)
    ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)
    print("free", flush=True)
print("ready", flush=True)
sys.stdin.readline()
print("end", flush=True)
