#!/usr/bin/python3
"""Numbered datagrams: counts what was lost, doubled or came in another order.

usage: datagrams.py receive PORT [--quiet SECONDS]      ends when nothing came for that long after the first one
       datagrams.py send HOST PORT COUNT [--size BYTES] [--interval SECONDS]
The receiver prints one JSON object: received, doubled, out_of_order, span_us, the time from the first arrival to the
last, and gap_us, the longest between two. The sender blocks while its socket is full, so what a shaper holds back is not lost at the sender.
"""
import argparse
import json
import socket
import time


def receive(port, quiet):
    receiver = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    # The receiver must not be the one that loses; root may go above the system's bound.
    so_rcvbufforce = 33
    try:
        receiver.setsockopt(socket.SOL_SOCKET, so_rcvbufforce, 64 << 20)
    except PermissionError:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    receiver.bind(("", port))
    receiver.settimeout(30)
    seen = set()
    highest = -1
    doubled = out_of_order = 0
    first = last = gap = 0.0
    try:
        while True:
            number = int.from_bytes(receiver.recv(65536)[:8], "big")
            now = time.monotonic()
            first = first or now
            gap = max(gap, now - (last or now))
            last = now
            receiver.settimeout(quiet)
            doubled += number in seen
            out_of_order += number < highest
            seen.add(number)
            highest = max(highest, number)
    except TimeoutError:
        pass
    print(json.dumps({"received": len(seen), "doubled": doubled, "out_of_order": out_of_order,
                      "span_us": round((last - first) * 1e6), "gap_us": round(gap * 1e6)}))


def send(host, port, count, size, interval):
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    sender = socket.socket(family, kind, protocol)
    sender.connect(address)
    due = time.monotonic()
    for number in range(count):
        sender.send(number.to_bytes(8, "big").ljust(size, b"\0"))
        due += interval
        time.sleep(max(0.0, due - time.monotonic()))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    receiver = commands.add_parser("receive")
    receiver.add_argument("port", type=int)
    receiver.add_argument("--quiet", type=float, default=2.0)
    sender = commands.add_parser("send")
    sender.add_argument("host")
    sender.add_argument("port", type=int)
    sender.add_argument("count", type=int)
    sender.add_argument("--size", type=int, default=500)
    sender.add_argument("--interval", type=float, default=0.0)
    arguments = parser.parse_args()
    if arguments.command == "receive":
        receive(arguments.port, arguments.quiet)
    else:
        send(arguments.host, arguments.port, arguments.count, arguments.size, arguments.interval)


main()
