#!/usr/bin/python3
"""The judge: what really arrived at the receiving interfaces. Run it inside the receiver's namespace.

usage: judge.py SECONDS [--rate BITS_PER_SECOND] [--interface NAME ...]
prints four integers: mean rate in bit/s, the largest bytes - rate * t over all windows and over slices of 100 ms (both
0 without --rate), and the mean number of packets per second.

Counter and clock are read in one process, and the tightest of five reads counts at each end: two processes are wrong by
up to 4 %. The excess is a lower bound of the true one (a window is measured from before its first read to after its
last), so it is never a false alarm, and it is taken over every window that begins and ends at a poll. It is the depth
that the shaper really used. Slices are such windows too, one after the other.
"""
import argparse
import time

POLL = 0.0005
SLICE = 0.1


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", type=float)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--interface", nargs="+", default=["dn0"])
    return parser.parse_args()


class Counter:
    """Received bytes and packets of some interfaces together."""

    def __init__(self, interfaces):
        self.interfaces = set(interfaces)
        self.file = open("/proc/net/dev")

    def read(self):
        """(time before the read, bytes, packets, time after it)"""
        before = time.monotonic()
        self.file.seek(0)
        text = self.file.read()
        after = time.monotonic()
        received = packets = 0
        for line in text.splitlines()[2:]:
            name, columns = line.split(":", 1)
            if name.strip() in self.interfaces:
                fields = columns.split()
                received += int(fields[0])
                packets += int(fields[1])
        return before, received, packets, after

    def read_tightly(self):
        return min((self.read() for _ in range(5)), key=lambda read: read[3] - read[0])


def main():
    arguments = parse_arguments()
    counter = Counter(arguments.interface)
    rate = arguments.rate / 8

    first = counter.read_tightly()
    end = first[0] + arguments.seconds
    lowest = worst = worst_slice = 0.0
    slice_begin, slice_bytes = first[0], 0
    while rate and time.monotonic() < end - POLL:
        before, received, _, after = counter.read()
        received -= first[1]
        worst = max(worst, received - rate * (after - first[0]) - lowest)
        lowest = min(lowest, received - rate * (before - first[0]))
        if after - slice_begin >= SLICE:
            worst_slice = max(worst_slice, received - slice_bytes - rate * (after - slice_begin))
            slice_begin, slice_bytes = before, received
        time.sleep(POLL)
    time.sleep(max(0.0, end - time.monotonic()))
    last = counter.read_tightly()

    elapsed = (last[0] + last[3] - first[0] - first[3]) / 2
    bps = round((last[1] - first[1]) * 8 / elapsed)
    print(bps, round(worst), round(worst_slice), round((last[2] - first[2]) / elapsed))


main()
