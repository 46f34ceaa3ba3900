"""Consumers of a load that do not keep up, and durable subscriptions that nobody uses: what the others must not feel."""

from __future__ import annotations

import argparse
import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

from tests.bench.connection import connect, disconnect, refuse_error
from tests.bench.consumer import DECLARE_SECONDS, client_id, durable, subscribe, subscriptions

CLIENTS = 10
"""That inactive subscriptions belong to."""
ACKNOWLEDGE_SECONDS = 1.0
RECEIPTS_SECONDS_MAX = 300


def is_deaf(o: argparse.Namespace, k: int) -> bool:
    return k >= o.consumers - o.deaf


def is_slow(o: argparse.Namespace, k: int) -> bool:
    return not is_deaf(o, k) and k >= o.consumers - o.deaf - o.slow


def usual(o: argparse.Namespace) -> int:
    """Consumers that keep up: the first ones."""
    return o.consumers - o.deaf - o.slow


def deaf(o: argparse.Namespace, k: int, results: Any, sending: Any) -> None:
    """Subscribes and never reads; when everything is sent it is gone without a word, and what it held is the others'."""
    connection = connect(o, client_id(o, k))
    time.sleep(DECLARE_SECONDS * k)
    subscribe(o, connection, k)
    while sending.value:
        time.sleep(0.1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    if o.durable:
        end(o, k)
    results.put({"role": "dawdler", "ended": time.time(), "latency": [], "sent": 0, "twice": 0, "risen": 0})


def slow(o: argparse.Namespace, k: int, results: Any, start: Any, sending: Any, counts: Any, expected: Any, seen: Any) -> None:
    """Reads what comes and acknowledges all of it once a second."""
    connection = connect(o, client_id(o, k))
    time.sleep(DECLARE_SECONDS * k)
    subscribe(o, connection, k)
    marks = memoryview(seen).cast("B")
    number_at, number_end = 17 - o.size, 25 - o.size
    tail = ack = b""
    twice, due = 0, time.monotonic() + ACKNOWLEDGE_SECONDS
    start.wait()
    connection.settimeout(0.1)
    while sending.value if o.durable else sum(counts) < expected.value:
        with contextlib.suppress(TimeoutError):
            octets = connection.recv(1 << 18)
            if not octets:
                raise SystemExit("slow consumer: the broker closed the connection")
            *frames, tail = (tail + octets).split(b"\0")
            for frame in frames:
                refuse_error(frame.lstrip())
                ack = frame.partition(b"\nack:")[2].partition(b"\n")[0].rstrip(b"\r")
                if not o.durable:
                    number = int(frame[number_at:number_end])
                    twice += marks[number]
                    marks[number] = 1
                    counts[k] += 1
        if ack and time.monotonic() >= due:
            connection.sendall(b"ACK\nid:%b\n\n\0" % ack)
            ack, due = b"", time.monotonic() + ACKNOWLEDGE_SECONDS
    if ack:
        connection.sendall(b"ACK\nid:%b\n\n\0" % ack)
    disconnect(connection)
    if o.durable:
        end(o, k)
    results.put({"role": "dawdler", "ended": time.time(), "latency": [], "sent": 0, "twice": twice, "risen": 0})


def end(o: argparse.Namespace, k: int) -> None:
    """Its durable subscription is over, and with it what the subscriber left behind."""
    connection = connect(o, client_id(o, k))
    _told(connection, [_frame("UNSUBSCRIBE", number, destination, own) for number, destination, own in subscriptions(o, k)])
    disconnect(connection)


@contextlib.contextmanager
def inactive(o: argparse.Namespace) -> Iterator[None]:
    """So many durable subscriptions of the topic whose subscribers are away."""
    asked: list[list[tuple[int, str]]] = [[] for _ in range(CLIENTS)]
    for number in range(o.inactive):
        asked[number % CLIENTS].append((100_000 + number, durable(o, f"away{number}")))
    _each(o, "SUBSCRIBE", asked)
    yield
    _each(o, "UNSUBSCRIBE", asked)


def _each(o: argparse.Namespace, command: str, asked: list[list[tuple[int, str]]]) -> None:
    for client, mine in enumerate(asked):
        if mine:
            connection = connect(o, f"away{client}")
            _told(connection, [_frame(command, number, o.dest, own) for number, own in mine])
            disconnect(connection)


def _frame(command: str, number: int, destination: str, own: str) -> bytes:
    return f"{command}\nid:{number}\ndestination:{destination}\n{own}receipt:{number}\n\n\0".encode()


def _told(connection: socket.socket, frames: list[bytes]) -> None:
    """Send, and wait for as many receipts."""
    connection.settimeout(RECEIPTS_SECONDS_MAX)
    for at in range(0, len(frames), 100):
        some = frames[at : at + 100]
        connection.sendall(b"".join(some))
        answer = b""
        while answer.count(b"\0") < len(some):
            octets = connection.recv(65536)
            if not octets:
                raise SystemExit("the broker closed the connection")
            answer += octets
            refuse_error(answer)
