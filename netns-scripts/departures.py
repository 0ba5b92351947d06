#!/usr/bin/python3
"""Compares when packets left in two event logs, each counted from its first arrival.

usage: departures.py LOG LOG PROTOCOL
Prints the number of departures, and the median and the largest difference in microseconds.
"""
import sys


def departures(path, protocol):
    begin = None
    ours = set()
    left = []
    for line in open(path, encoding="utf-8", errors="replace"):
        words = line.split()
        if len(words) < 3 or not words[0].isdigit():
            continue
        time = int(words[0])
        if words[1] == "arrive" and f" {protocol} " in line:
            begin = time if begin is None else begin
            ours.add(words[2])
        elif words[1] == "accept" and words[2] in ours:
            left.append(time - begin)
    return left


def main():
    live, virtual = (departures(path, sys.argv[3]) for path in sys.argv[1:3])
    if len(live) != len(virtual):
        sys.exit(f"{len(live)} departures in one log, {len(virtual)} in the other")
    differences = sorted(abs(a - b) // 1000 for a, b in zip(live, virtual))
    print(len(differences), differences[len(differences) // 2], differences[-1])


if __name__ == "__main__":
    main()
