#!/usr/bin/python3
"""Listens in the place of a daemon and passes everything on, but leaves a key out of its status, as a daemon would that
does not know it yet. usage: older_daemon.py LISTEN DAEMON KEY"""
import json
import socket
import sys


def read_message(stream):
    head = stream.readline()
    return head, stream.read(int(head.split()[-1])) if head else b""


def pass_on(client, daemon, key):
    requests, answers = client.makefile("rb"), daemon.makefile("rb")
    while True:
        head, body = read_message(requests)
        if not head:
            return
        daemon.sendall(head + body)
        answer, text = read_message(answers)
        if head.split()[1] == b"status":
            status = json.loads(text)
            del status[key]
            text = json.dumps(status).encode()
            answer = b"ok %d\n" % len(text)
        client.sendall(answer + text)


def main():
    listen, path, key = sys.argv[1:]
    server = socket.socket(socket.AF_UNIX)
    server.bind(listen)
    server.listen()
    while True:
        client, _ = server.accept()
        with client, socket.socket(socket.AF_UNIX) as daemon:
            daemon.connect(path)
            pass_on(client, daemon, key)


main()
