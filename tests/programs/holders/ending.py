"""An interpreter that is ending, for as long as its input is open: prints "ready" from there."""
import os


class Last:
    def __del__(self, write=os.write, read=os.read):
        write(1, b"ready\n")
        read(0, 1)
        write(1, b"end\n")


# What a module holds is let go when the interpreter ends, and that no code of its own goes on.
last = Last()
