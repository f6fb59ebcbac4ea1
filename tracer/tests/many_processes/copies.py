"""Copies itself many times; each copy reports one event.

usage: copies.py FOLDER COPIES
Prints "ready" and waits for a line; makes the copies, prints "copied" and waits for another line, upon
which each copy reports an event with its process's number and goes on waiting. With a third line the
copies end, and it prints "done".
"""
import ctypes
import os
import sys

FOLDER, COPIES = sys.argv[1], int(sys.argv[2])
library = ctypes.CDLL(os.path.join(FOLDER, "libc10.so"))
report = library._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
report.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_uint]

print("ready", flush=True)
sys.stdin.readline()
begin, tell_begin = os.pipe()
end, tell_end = os.pipe()
done, is_done = os.pipe()
copies = []
for _ in range(COPIES):
    pid = os.fork()
    if pid == 0:
        os.close(tell_begin)
        os.close(tell_end)
        os.read(begin, 1)
        report(os.getpid(), 512, 512, 1024, 1)
        os.write(is_done, b"d")
        os.read(end, 1)
        os._exit(0)
    copies.append(pid)
print("copied", flush=True)
sys.stdin.readline()
os.close(tell_begin)
left = COPIES
while left:
    left -= len(os.read(done, left))
print("reported", flush=True)
sys.stdin.readline()
os.close(tell_end)
for pid in copies:
    assert os.waitpid(pid, 0)[1] == 0
print("done", flush=True)
