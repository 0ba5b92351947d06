#!/usr/bin/python3
"""A bad way to Redis: passes bytes on between clients and a server, late, and spoils some of the replies.

usage: redis_proxy.py LISTEN_PORT SERVER_PORT MODE_FILE
The file has words like `delay=75 lose=0.1 double=0.1 swap=0.1` and is read again whenever it changes: milliseconds for
each direction, and the share of replies that never arrive, arrive twice, or arrive behind the next one. `clock=5` sets the
time that ends a reply of the script, in microseconds of Redis, so many seconds ahead.
"""
import asyncio
import os
import random
import re
import sys

random.seed(7)


class Mode:
    def __init__(self, path):
        self.path = path
        self.changed = None
        self.values = {}

    def __getitem__(self, name):
        changed = os.stat(self.path).st_mtime_ns
        if changed != self.changed:
            self.changed = changed
            with open(self.path) as file:
                self.values = dict(word.split("=") for word in file.read().split())
        return float(self.values.get(name, 0))


class Way:
    """One direction of one connection; what is read at once counts as one message."""

    def __init__(self, reader, writer, mode, spoils):
        self.reader, self.writer, self.mode, self.spoils = reader, writer, mode, spoils
        self.held = b""

    def messages(self, data):
        if not self.spoils:
            return [data]
        if self.mode["clock"]:
            data = re.sub(rb"(?<=:)\d{16}(?=\r\n\Z)", self.later, data)
        if random.random() < self.mode["lose"]:
            return []
        if random.random() < self.mode["double"]:
            return [data, data]
        if random.random() < self.mode["swap"]:
            self.held += data
            return []
        held, self.held = self.held, b""
        return [data, held]

    def later(self, match):
        return b"%d" % (int(match[0]) + int(self.mode["clock"] * 1e6))

    def send(self, data):
        if not self.writer.is_closing():
            self.writer.write(data)

    async def run(self):
        loop = asyncio.get_running_loop()
        try:
            while data := await self.reader.read(65536):
                for message in self.messages(data):
                    loop.call_later(self.mode["delay"] / 1000, self.send, message)
        except ConnectionError:
            pass
        loop.call_later(self.mode["delay"] / 1000, self.writer.close)


async def main():
    listen_port, server_port, mode = int(sys.argv[1]), int(sys.argv[2]), Mode(sys.argv[3])

    async def on_client(reader, writer):
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", server_port)
        except OSError:
            return writer.close()
        await asyncio.gather(Way(reader, server_writer, mode, False).run(), Way(server_reader, writer, mode, True).run())

    server = await asyncio.start_server(on_client, "0.0.0.0", listen_port)
    await server.serve_forever()


asyncio.run(main())
