#!/usr/bin/python3
"""Many short connections of one process, one after the other: as many bytes each, closed by the sender.

usage: short_connections.py NAME ADDRESS PORT CONNECTIONS BYTES
       short_connections.py serve PORT      (takes them, until killed)
Prints the seconds that they took.
"""
import ctypes
import socket
import sys
import threading
import time


def drain(connection):
    with connection:
        while connection.recv(65536):
            pass


if sys.argv[1] == "serve":
    with socket.create_server(("::", int(sys.argv[2])), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512) as server:
        while True:
            threading.Thread(target=drain, args=(server.accept()[0],), daemon=True).start()

name, address, port, connections, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME
begin = time.monotonic()
for _ in range(connections):
    with socket.create_connection((address, port)) as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        sender.sendall(bytes(size))
        sender.shutdown(socket.SHUT_WR)
        sender.recv(1)  # until the other side has all of it
print(time.monotonic() - begin)
