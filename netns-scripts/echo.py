#!/usr/bin/python3
"""A small request and its answer, many times: how long a packet waits next to bulk traffic.

usage: echo.py serve PORT                       answers on TCP and UDP, IPv4 and IPv6, until it is ended
       echo.py ask HOST PORT [--udp] [--count N] [--interval SECONDS] [--size BYTES] [--at-most SECONDS]
asks until it has COUNT answers or time is up, and prints one JSON object: samples, lost, p50_us, p99_us, max_us. Requests go one at a time, so an answer that
is late delays the next request and hides nothing: every wait is one sample. Exit status 1 when no answer came.
"""
import argparse
import json
import selectors
import socket
import sys
import time

ANSWER_TIMEOUT = 20.0


def serve(port):
    selector = selectors.DefaultSelector()
    listener = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    datagrams = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    datagrams.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    datagrams.bind(("", port))
    for each in (listener, datagrams):
        selector.register(each, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                selector.register(connection, selectors.EVENT_READ)
            elif key.fileobj is datagrams:
                request, sender = datagrams.recvfrom(65536)
                datagrams.sendto(request, sender)
            else:
                answer(selector, key.fileobj)


def answer(selector, connection):
    try:
        request = connection.recv(65536)
        if request:
            connection.sendall(request)
            return
    except OSError:
        pass
    selector.unregister(connection)
    connection.close()


def connect(host, port, udp):
    kind = socket.SOCK_DGRAM if udp else socket.SOCK_STREAM
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=kind)[0]
    connection = socket.socket(family, kind, protocol)
    connection.settimeout(ANSWER_TIMEOUT)
    connection.connect(address)
    if not udp:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def ask_once(connection, number, size):
    """Seconds until the whole answer to this request was there."""
    request = number.to_bytes(8, "big").ljust(size, b"\0")
    begin = time.monotonic()
    connection.send(request)
    received = b""
    while len(received) < size or not received.startswith(request[:8]):
        if len(received) >= size:
            received = b""  # a late answer to an earlier datagram
        piece = connection.recv(65536)
        if not piece:
            raise OSError("the server closed the connection")
        received += piece
    return time.monotonic() - begin


def ask(arguments):
    samples = []
    lost = 0
    try:
        connection = connect(arguments.host, arguments.port, arguments.udp)
        end = time.monotonic() + arguments.at_most
        for number in range(arguments.count):
            if time.monotonic() > end:
                break
            try:
                samples.append(ask_once(connection, number, arguments.size))
            except TimeoutError:
                lost += 1
                if not arguments.udp:
                    break
            time.sleep(arguments.interval)
    except OSError as error:
        print(f"echo: {arguments.host} port {arguments.port}: {error}", file=sys.stderr)
    if not samples:
        sys.exit("echo: no answer came")
    samples.sort()

    def microseconds(fraction):
        return round(samples[min(len(samples) - 1, int(len(samples) * fraction))] * 1e6)

    print(json.dumps({"samples": len(samples), "lost": lost, "p50_us": microseconds(0.5), "p99_us": microseconds(0.99),
                      "max_us": microseconds(1)}))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    server = commands.add_parser("serve")
    server.add_argument("port", type=int)
    client = commands.add_parser("ask")
    client.add_argument("host")
    client.add_argument("port", type=int)
    client.add_argument("--udp", action="store_true")
    client.add_argument("--count", type=int, default=1000)
    client.add_argument("--interval", type=float, default=0.003)
    client.add_argument("--size", type=int, default=64)
    client.add_argument("--at-most", type=float, default=80)
    arguments = parser.parse_args()
    if arguments.command == "serve":
        serve(arguments.port)
    else:
        ask(arguments)


main()
