#!/usr/bin/python3
"""One datagram from each of many source addresses, all of them local here.

usage: from_many.py FIRST_SOURCE COUNT DESTINATION
"""
import ipaddress
import socket
import sys

first, count, destination = ipaddress.ip_address(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for i in range(count):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind((str(first + i), 0))
        sender.sendto(b"x", (destination, 9))
