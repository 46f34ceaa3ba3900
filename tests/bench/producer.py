"""A producer of a load: numbered messages, singly or in transactions, at most a window of them unconfirmed."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from typing import Any

from tests.bench.connection import STAMP_OCTETS, Reservoir, connect, disconnect, refuse_error

_RECEIPT = re.compile(rb"RECEIPT\r?\n(?:[^\n]+\n)*?receipt-id:(\d+)")

Frames = Callable[[int, int], bytes]
"""The frames of `count` messages from `number` on, both of this producer."""


def heads(o: argparse.Namespace) -> list[bytes]:
    """How SEND frames begin, taken in turn by number, so that the number tells destination, priority and selected part; the stray one last."""
    fixed = (b"persistent:true\n" if o.persistent else b"") + o.header + b"content-length:%d\n" % o.size
    plain = f"SEND\ndestination:{o.dest}\n".encode()
    if o.queues:
        usual = [b"SEND\ndestination:%b.%d\n" % (o.dest.encode(), number) for number in range(o.queues)]
    elif o.priorities:
        usual = [b"%bpriority:%d\n" % (plain, number) for number in range(o.priorities)]
    elif o.selectors:
        usual = [b"%bpart:p%d\nweight:%d\n" % (plain, number, number) for number in range(o.selectors)]
    else:
        usual = [plain]
    return [head + fixed for head in [*usual, f"SEND\ndestination:{o.dest}.stray\n".encode()]]


def singly(o: argparse.Namespace, first: int) -> Frames:
    """Each message by itself, its receipt named by its number."""
    *usual, stray = heads(o)
    padding = b"x" * (o.size - STAMP_OCTETS) + b"\0"

    def frames(start: int, count: int) -> bytes:
        made, micros = [], time.time_ns() // 1000
        for number in range(start, start + count):
            head = stray if o.stray and number % o.stray == o.stray - 1 else usual[(first + number) % len(usual)]
            receipt = b"receipt:%d\n\n" % number if o.receipt else b"\n"
            made.append(b"%b%b%016d %08d %b" % (head, receipt, micros, first + number, padding))
        return b"".join(made)

    return frames


def transacted(o: argparse.Namespace, first: int) -> Frames:
    """So many at a time: the receipt is the commit's, named by the number of its first message."""
    usual = heads(o)[:-1]
    padding = b"x" * (o.size - STAMP_OCTETS) + b"\0"

    def frames(start: int, count: int) -> bytes:
        made, micros = [], time.time_ns() // 1000
        for begun in range(start, start + count, o.transaction):
            made.append(b"BEGIN\ntransaction:%d\n\n\0" % begun)
            made += [
                b"%btransaction:%d\n\n%016d %08d %b" % (usual[number % len(usual)], begun, micros, number, padding)
                for number in range(first + begun, first + begun + o.transaction)
            ]
            made.append(b"COMMIT\ntransaction:%d\nreceipt:%d\n\n\0" % (begun, begun))
        return b"".join(made)

    return frames


def produce(o: argparse.Namespace, first: int, count: int, results: Any, start: Any, running: Any) -> None:
    connection = connect(o)
    at_once = o.transaction or 1
    frames = transacted(o, first) if o.transaction else singly(o, first)
    pace = o.rate / max(1, o.producers)
    latency, sent_at = Reservoir(), {}
    sent = confirmed = 0
    tail = b""
    start.wait()
    began = time.perf_counter()
    # One call of our own a chunk, none a message: at 60,000 messages a second every microsecond here is 6% of a core taken from the broker.
    while confirmed < count:
        room = min(count - sent, o.window - (sent - confirmed))
        if pace:
            room = min(room, int((time.perf_counter() - began) * pace) + 1 - sent)
        room -= room % at_once
        if room > 0:
            if not running.value:
                count = sent + room
            octets, now = frames(sent, room), time.perf_counter_ns()
            if o.receipt:
                sent_at.update(dict.fromkeys(range(sent, sent + room, at_once), now))
            sent += room
            connection.sendall(octets)
        if not o.receipt:
            confirmed = sent
            if room <= 0:
                time.sleep(0.002)
            continue
        if sent == confirmed:
            time.sleep(0.002)
            continue
        octets = connection.recv(262144)
        if not octets:
            raise SystemExit("producer: the broker closed the connection")
        now = time.perf_counter_ns()
        whole, nul, tail = (tail + octets).rpartition(b"\0")
        if not nul:
            continue
        refuse_error(whole)
        for receipt in _RECEIPT.findall(whole):
            latency.add((now - sent_at.pop(int(receipt))) / 1e6)
            confirmed += at_once
    ended = time.time()
    disconnect(connection)
    results.put({"role": "producer", "ended": ended, "latency": latency.values, "sent": count, "twice": 0, "risen": 0})
