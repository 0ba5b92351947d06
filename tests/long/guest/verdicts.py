#!/usr/bin/python3
"""What a verdict costs while many packets are held in one queue, by the order of the verdicts.

usage: verdicts.py ADDRESS PORT QUEUE HELD ORDER     ORDER: oldest (first), newest (first), random
Binds the queue, sends HELD datagrams there (a rule must lead them into it), reads them all, accepts them in packs of 64,
and prints the nanoseconds of one verdict: the time of the sending calls alone, in which the kernel does it all.
"""
import random
import socket
import struct
import sys
import time

QUEUE_PACKET, QUEUE_VERDICT, QUEUE_CONFIG = 0x300, 0x301, 0x302
REQUEST, ACK = 1, 4
PACKET_HEADER, VERDICT_HEADER = 1, 2
CONFIG_COMMAND, CONFIG_PARAMETERS, CONFIG_LENGTH = 1, 2, 3
ACCEPT = 1
PACK = 64
SNDBUFFORCE, RCVBUFFORCE, SOL_NETLINK, NO_ENOBUFS = 32, 33, 270, 5
BUFFER = 512 << 20


def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def message(kind, flags, queue, *attributes):
    body = struct.pack(">BBH", 0, 0, queue) + b"".join(attributes)
    return struct.pack("=IHHII", 16 + len(body), kind, REQUEST | flags, 0, 0) + body


def bind(queue, length):
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
    netlink.bind((0, 0))
    netlink.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, BUFFER)
    netlink.setsockopt(SOL_NETLINK, NO_ENOBUFS, 1)
    netlink.send(message(QUEUE_CONFIG, ACK, queue, attribute(CONFIG_COMMAND, struct.pack(">BBH", 1, 0, 0)),
                         attribute(CONFIG_PARAMETERS, struct.pack(">IB", 128, 2)),
                         attribute(CONFIG_LENGTH, struct.pack(">I", length))))
    error, = struct.unpack_from("=i", netlink.recv(4096), 16)
    if error:
        sys.exit(f"verdicts.py: the queue cannot be bound: error {-error}")
    return netlink


def held_ids(netlink, count):
    netlink.settimeout(5)
    ids = []
    while len(ids) < count:
        datagram = netlink.recv(4096)
        at = 20
        while at + 4 <= len(datagram):
            length, kind = struct.unpack_from("=HH", datagram, at)
            if kind == PACKET_HEADER:
                ids.append(struct.unpack_from(">I", datagram, at + 4)[0])
                break
            at += (length + 3) & ~3
    return ids


def main():
    address, port, queue, count, order = sys.argv[1:]
    queue, count = int(queue), int(count)
    netlink = bind(queue, count + 1000)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.setsockopt(socket.SOL_SOCKET, SNDBUFFORCE, BUFFER)
    sender.connect((address, int(port)))
    for _ in range(count):
        sender.send(b"x")
    ids = held_ids(netlink, count)
    if order == "newest":
        ids.reverse()
    elif order == "random":
        random.Random(1).shuffle(ids)
    packs = [b"".join(message(QUEUE_VERDICT, 0, queue, attribute(VERDICT_HEADER, struct.pack(">II", ACCEPT, packet)))
                      for packet in ids[i:i + PACK]) for i in range(0, count, PACK)]
    begin = time.monotonic_ns()
    for pack in packs:
        netlink.send(pack)
    print((time.monotonic_ns() - begin) // count)


main()
