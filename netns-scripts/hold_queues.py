#!/usr/bin/python3
"""Another program with packet queues: usage: hold_queues.py FIRST COUNT (until it is ended)

Its netlink port is not its process id: another socket of the process has that one. Prints a line when it has them all.
"""
import socket
import struct
import sys
import time

NETLINK_NETFILTER = 12
CONFIG = 3 << 8 | 2  # NFNL_SUBSYS_QUEUE, NFQNL_MSG_CONFIG
REQUEST, ACKNOWLEDGE = 1, 4
COMMAND, BIND = 1, 1  # NFQA_CFG_CMD, NFQNL_CFG_CMD_BIND


def open_socket():
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    opened.bind((0, 0))
    return opened


first, count = map(int, sys.argv[1:])
has_our_number = open_socket()
queues = open_socket()
for number in range(first, first + count):
    body = struct.pack("=BB", 0, 0) + struct.pack("!H", number)
    body += struct.pack("=HHBBH", 8, COMMAND, BIND, 0, 0)
    queues.send(struct.pack("=IHHII", 16 + len(body), CONFIG, REQUEST | ACKNOWLEDGE, 0, 0) + body)
    (error,) = struct.unpack_from("=i", queues.recv(4096), 16)
    assert error == 0, f"queue {number}: {error}"
print("bound", flush=True)
time.sleep(100)
