#!/usr/bin/python3
"""Puts a running program into an endless loop: usage: endless_loop.py PID

In that process alone, the first instruction of libc's epoll_wait becomes a jump to itself. The program is at its own code
and stays at it, on a CPU, for ever; no debugger and nothing in the program itself takes part.
"""
import ctypes
import platform
import sys

JUMP_TO_ITSELF = {"x86_64": b"\xeb\xfe", "aarch64": b"\x00\x00\x00\x14"}


def start_of_libc(pid):
    with open(f"/proc/{pid}/maps") as maps:
        return next(int(line.split("-")[0], 16) for line in maps if "/libc.so.6" in line)


pid = int(sys.argv[1])
libc = ctypes.CDLL("libc.so.6")
offset = ctypes.cast(libc.epoll_wait, ctypes.c_void_p).value - start_of_libc("self")
with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
    memory.seek(start_of_libc(pid) + offset)
    memory.write(JUMP_TO_ITSELF[platform.machine()])
