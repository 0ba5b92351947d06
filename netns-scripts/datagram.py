#!/usr/bin/python3
"""One datagram from a port of one's choice.

usage: datagram.py FROM_PORT ADDRESS PORT
"""
import socket
import sys

from_port, address, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
family = socket.AF_INET6 if ":" in address else socket.AF_INET
with socket.socket(family, socket.SOCK_DGRAM) as sender:
    sender.bind(("", from_port))
    sender.sendto(b"here I am", (address, port))
