#!/usr/bin/python3
"""Prints the number of this network namespace (SO_NETNS_COOKIE), which names the shaper's run-time folder."""
import socket
import struct

SO_NETNS_COOKIE = 71
print(struct.unpack("=Q", socket.socket(socket.AF_UNIX).getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8))[0])
