"""Captures of any length, and what it takes to replay them.

A capture holds FLOWS flows of UDP over two classes, 100 000 packets per second of its own time, so that a longer one
differs in length alone: as many flows, as much of an overload.
"""
import os
import random
import re
import struct
import subprocess
import sys
import time

FLOWS = 1000
GAP_NS = 10_000
SNAP = 64
POLICY = """version = 1
[[link]]
name = "up"
interface = "eth0"
rate = "500mbit"
[[class]]
name = "policed"
link = "up"
match = { protocol = "udp", remote = "10.1.0.0/24" }
rate = "50mbit"
burst = "50ms"
over = "drop"
"""


def frames():
    """One for each flow: its captured bytes and its length on the wire."""
    chance = random.Random(1)
    for flow in range(FLOWS):
        size = chance.randint(100, 1500)
        head = struct.pack(">12xHBBHHHBBHII", 0x0800, 0x45, 0, size, 1, 0, 64, 17, 0, 0x0A000001, 0x0A010000 + flow)
        yield (head + struct.pack(">HHHH", 40000, 9, size - 20, 0)).ljust(SNAP, b"\0"), size + 14


def write_capture(path, packets):
    """A pcap file with nanoseconds, little-endian."""
    chance = random.Random(packets)
    flows = list(frames())
    with open(path, "wb", buffering=1 << 20) as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAP, 1))
        for number in range(packets):
            seconds, nanos = divmod(number * GAP_NS, 1_000_000_000)
            captured, length = flows[int(chance.random() * FLOWS)]
            file.write(struct.pack("<IIII", 1_700_000_000 + seconds, nanos, SNAP, length) + captured)


def replay(program, folder, packets, options=(), stderr=None):
    """Makes the capture, replays it; returns the seconds that took, and the peak of memory in MB."""
    capture, policy = os.path.join(folder, "capture"), os.path.join(folder, "policy.toml")
    write_capture(capture, packets)
    with open(policy, "w", encoding="ascii") as file:
        file.write(POLICY)
    start = time.monotonic()
    with subprocess.Popen([program, "replay", capture, "--policy", policy, *options], stdout=subprocess.PIPE,
                          stderr=stderr, text=True) as child:
        output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    os.remove(capture)
    if child.returncode != 0 or not re.match(f"{packets} packets replayed\n", output):
        sys.exit(f"shaper replay failed, or did not replay {packets} packets:\n{output}")
    return seconds, usage.ru_maxrss / 1024
