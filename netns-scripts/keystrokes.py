#!/usr/bin/python3
"""Types into a remote `cat`, one key at a time, and waits for each to come back.

usage: keystrokes.py COUNT INTERVAL READY COMMAND...
COMMAND is the way to the remote cat. When the first key has come back, the file READY is made; the keys that count are typed
from then on, once the file READY.go is there. Prints one JSON object: typed, lost (not back in 10 s) and max_ms.
"""
import json
import os
import pathlib
import select
import subprocess
import sys
import time


def main():
    count, interval, ready = int(sys.argv[1]), float(sys.argv[2]), pathlib.Path(sys.argv[3])
    remote = subprocess.Popen(sys.argv[4:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def type_one():
        begin = time.monotonic()
        os.write(remote.stdin.fileno(), b"x")
        if not select.select([remote.stdout], [], [], 10)[0] or not os.read(remote.stdout.fileno(), 1):
            return None
        return (time.monotonic() - begin) * 1000

    if type_one() is None:
        sys.exit("the session does not answer")
    ready.touch()
    while not pathlib.Path(f"{ready}.go").exists():
        time.sleep(0.02)
    times = []
    for _ in range(count):
        times.append(type_one())
        time.sleep(interval)
    remote.kill()
    back = [taken for taken in times if taken is not None]
    print(json.dumps({"typed": count, "lost": count - len(back), "max_ms": round(max(back, default=0), 1)}))


main()
