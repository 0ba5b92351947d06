#!/usr/bin/python3
"""One small datagram for each of many flows: from four ports, always the same, to as many ports of HOST as that takes.

usage: many_flows.py HOST FLOWS
"""
import socket
import sys

SOURCES = 4
FIRST_SOURCE = 9000
FIRST_PORT = 10000


def main():
    host, flows = sys.argv[1], int(sys.argv[2])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    senders = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(SOURCES)]
    for number, sender in enumerate(senders):
        sender.bind(("", FIRST_SOURCE + number))
    for number in range(flows):
        senders[number % SOURCES].sendto(b"shaper", (host, FIRST_PORT + number // SOURCES))


main()
