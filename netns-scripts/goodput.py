#!/usr/bin/python3
"""Payload that each TCP receiver really got, and how evenly. Run it inside the receiver's namespace.

usage: goodput.py [--at TIME] SECONDS PORT...
begins at TIME (seconds since 1970, as $EPOCHREALTIME has it; default: at once) and prints one JSON object: bps (by port, in the order given, all connections of a port together), total_bps and jain,
Jain's index of the ports: (sum x)^2 / (n * sum x^2), 1 is perfectly even. Read from the kernel (ss, bytes_received) twice.
"""
import argparse
import json
import re
import subprocess
import time


def received_bytes(ports):
    before = time.monotonic()
    text = subprocess.run(["ss", "-tinHO", "state", "established"], check=True, capture_output=True, text=True).stdout
    moment = (before + time.monotonic()) / 2
    total = dict.fromkeys(ports, 0)
    for line in text.splitlines():
        local = re.search(r":(\d+)\s", line)
        count = re.search(r"bytes_received:(\d+)", line)
        if local and count and int(local.group(1)) in total:
            total[int(local.group(1))] += int(count.group(1))
    return moment, total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--at", type=float, default=0)
    parser.add_argument("seconds", type=float)
    parser.add_argument("ports", type=int, nargs="+")
    arguments = parser.parse_args()
    ports = arguments.ports
    time.sleep(max(0.0, arguments.at - time.time()))
    begin, first = received_bytes(ports)
    time.sleep(arguments.seconds)
    end, last = received_bytes(ports)
    rates = [round((last[port] - first[port]) * 8 / (end - begin)) for port in ports]
    squares = sum(rate * rate for rate in rates)
    jain = sum(rates) ** 2 / (len(rates) * squares) if squares else 0
    print(json.dumps({"bps": rates, "total_bps": sum(rates), "jain": round(jain, 4)}))


main()
