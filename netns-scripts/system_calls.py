#!/usr/bin/python3
"""What a thread asked of the kernel, from the output of `strace -T -yy -o FILE`.

usage: system_calls.py FILE
prints one JSON object: calls (how many, by name), waits (calls that may wait for something, other than epoll_wait, and
sockets that are made, other than of netlink), tcp (calls on a TCP socket), verdicts (sent by netlink), longest_us and
longest (the call apart from epoll_wait that took the longest, and its name).
"""
import collections
import json
import re
import sys

LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*) <(\d+\.\d+)>$")
MAY_WAIT = re.compile(r"^(socket|connect|p?poll|p?select6?|nanosleep|clock_nanosleep|flock|fsync|wait4|waitid)$")

calls = collections.Counter()
waits = tcp = verdicts = 0
longest_us, longest = 0, ""
with open(sys.argv[1]) as file:
    for line in file:
        match = LINE.match(line.rstrip())
        if not match:
            continue
        name, rest, seconds = match.groups()
        calls[name] += 1
        first = rest.split(", ")[0]
        waits += bool(MAY_WAIT.match(name)) and (name, first) != ("socket", "AF_NETLINK")
        tcp += "<TCP" in first
        verdicts += name.startswith("send") and "<NETLINK" in first
        if not name.startswith("epoll_") and float(seconds) * 1e6 > longest_us:
            longest_us, longest = round(float(seconds) * 1e6), name
print(json.dumps({"calls": calls, "waits": waits, "tcp": tcp, "verdicts": verdicts, "longest_us": longest_us, "longest": longest}))
