#!/usr/bin/env python3
"""Runs a command that may not call perf_event_open(2), as under a container's seccomp profile.

usage: without_perf.py COMMAND [ARGUMENT...]
"""
import ctypes
import os
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
PERF_EVENT_OPEN, EPERM = 298, 1  # x86-64


class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_uint16), ("filter", ctypes.POINTER(Filter))]


filters = (Filter * 4)(
    Filter(LOAD, 0, 0, 0),  # seccomp_data.nr
    Filter(JUMP_IF_EQUAL, 0, 1, PERF_EVENT_OPEN),
    Filter(RETURN, 0, 0, ERRNO | EPERM),
    Filter(RETURN, 0, 0, ALLOW),
)
program = Program(len(filters), filters)
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
    PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
):
    sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
