"""Consumers of a load that keep up: of queues, of a topic by selectors, durable subscribers of a topic."""

from __future__ import annotations

import argparse
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

from tests.bench.connection import Reservoir, connect, disconnect, refuse_error

DECLARE_SECONDS = 0.4
"""One consumer after the other: RabbitMQ fails when two connections declare the same new quorum queue at once."""
QUIET_SECONDS_MAX = 60
"""Nothing came for so long: what is missing does not come any more."""
SAMPLE_EVERY = 20
"""Of the latencies; a power of two would meet the window's rhythm."""
CHUNK_OCTETS = 1 << 20
_ACK = re.compile(rb"\nack:([^\r\n]+)")
_SUBSCRIPTION = re.compile(rb"\nsubscription:(\d+)")


def client_id(o: argparse.Namespace, k: int) -> str:
    return f"bench{k}" if o.durable else ""


def subscriptions(o: argparse.Namespace, k: int) -> Iterator[tuple[int, str, str]]:
    """Of consumer k: number, destination, and header lines of its own."""
    if o.selectors:
        for number in range(k, o.selectors, o.consumers):
            yield number, o.dest, f"selector:{o.selector.format(n=number)}\n" + durable(o, f"bench{k}.{number}")
    elif o.queues:
        for number in range(k, o.queues, o.consumers):
            yield number // o.consumers, f"{o.dest}.{number}", ""
    else:  # RabbitMQ names a durable subscription by its id
        yield (k if o.durable else 0), o.dest, durable(o, f"bench{k}")


def durable(o: argparse.Namespace, name: str) -> str:
    """Ours and ActiveMQ's header, and RabbitMQ's."""
    if not o.durable:
        return ""
    return f"activemq.subscriptionName:{name}\ndurable-subscription-name:{name}\ndurable:true\nauto-delete:false\n"


def subscribe(o: argparse.Namespace, connection: socket.socket, k: int) -> None:
    fixed = f"ack:{o.ack}\nactivemq.prefetchSize:{o.prefetch}\nprefetch-count:{o.prefetch}\n".encode() + o.header
    for number, destination, own in subscriptions(o, k):
        connection.sendall(f"SUBSCRIBE\nid:{number}\ndestination:{destination}\n{own}".encode() + fixed + b"\n\0")


def consume(o: argparse.Namespace, k: int, results: Any, start: Any, counts: Any, expected: Any, seen: Any) -> None:
    """One of those that share the messages: each is marked by its number, whoever got it."""
    connection = connect(o, client_id(o, k))
    time.sleep(DECLARE_SECONDS * k)
    subscribe(o, connection, k)
    marks = memoryview(seen).cast("B")
    individual, explicit, many = o.ack == "client-individual", o.ack != "auto", bool(o.queues or o.selectors)
    stamp, number_at, number_end = -o.size, 17 - o.size, 25 - o.size
    priorities, priority = (o.priorities, o.priorities) if not o.producers else (0, 0)  # a drain: what is there leaves by priority
    latency, twice, risen, got, quiet, last = Reservoir(), 0, 0, 0, 0.0, 0.0
    since: dict[bytes, int] = {}
    pending: dict[bytes, bytes] = {}
    tail = b""
    start.wait()
    connection.settimeout(0.5)
    while sum(counts) < expected.value and quiet < (QUIET_SECONDS_MAX if o.exact else 5):
        try:
            octets = connection.recv(CHUNK_OCTETS)
        except TimeoutError:
            quiet += 0.5
            continue
        if not octets:
            raise SystemExit("consumer: the broker closed the connection")
        *frames, tail = (tail + octets).split(b"\0")
        quiet, acks, count, now, subscription = 0.0, [], 0, time.time_ns() // 1000, b"0"
        for frame in frames:
            if b"MESSAGE\n" not in frame[:12]:
                refuse_error(frame.lstrip())
                continue
            count += 1
            number = int(frame[number_at:number_end])
            twice += marks[number]
            marks[number] = 1
            if priorities:
                risen += number % priorities > priority
                priority = number % priorities
            if not (got + count) % SAMPLE_EVERY:
                latency.add((now - int(frame[stamp : stamp + 16])) / 1e3)
            if not explicit:
                continue
            ack = _ACK.search(frame)[1]  # type: ignore[index]
            if individual:
                acks.append(b"ACK\nid:%b\n\n\0" % ack)
                continue
            if many:
                subscription = _SUBSCRIPTION.search(frame)[1]  # type: ignore[index]
            run = since.get(subscription, 0) + 1
            if run >= o.ackevery:
                acks.append(b"ACK\nid:%b\n\n\0" % ack)
                pending.pop(subscription, None)
                run = 0
            else:
                pending[subscription] = ack
            since[subscription] = run
        if acks:
            connection.sendall(b"".join(acks))
        if count:
            got, last = got + count, time.time()
            counts[k] = got
    connection.sendall(b"".join(b"ACK\nid:%b\n\n\0" % ack for ack in pending.values()))
    disconnect(connection)
    results.put({"role": "consumer", "ended": last, "latency": latency.values, "sent": 0, "twice": twice, "risen": risen})


def receive(o: argparse.Namespace, k: int, share: int, results: Any, start: Any, counts: Any, expected: Any) -> None:
    """A durable subscriber of a topic: every message once, each producer's in order, so that one number a producer is all to be remembered.
    Bodies are stepped over, not looked at: ten subscribers read ten times what is sent."""
    connection = connect(o, client_id(o, k))
    time.sleep(DECLARE_SECONDS * k)
    subscribe(o, connection, k)
    due = list(range(0, share * max(1, o.producers), share))
    explicit, individual = o.ack != "auto", o.ack == "client-individual"
    every = 1 if individual else o.ackevery
    buffer = bytearray(CHUNK_OCTETS)
    view, find = memoryview(buffer), buffer.find
    latency, twice, got, acknowledged, quiet, last, kept = Reservoir(), 0, 0, 0, 0.0, 0.0, 0
    ack = b""
    start.wait()
    connection.settimeout(0.5)
    while counts[k] < expected.value and quiet < QUIET_SECONDS_MAX:
        try:
            octets = connection.recv_into(view[kept:])
        except TimeoutError:
            quiet += 0.5
            continue
        if not octets:
            raise SystemExit("subscriber: the broker closed the connection")
        quiet, acks, now, position, end = 0.0, [], time.time_ns() // 1000, 0, kept + octets
        while (body := find(b"\n\n", position, end) + 2) > 1 and body + o.size < end:
            try:
                number = int(buffer[body + 17 : body + 25])
                producer = number // share
                fresh = number >= due[producer]
            except (ValueError, IndexError):
                refuse_error(bytes(buffer[position:end]).lstrip())
                raise
            if fresh:
                due[producer] = number + 1  # one that was left out is missed at the end: then too few came
                got += 1
                if not got % SAMPLE_EVERY:
                    latency.add((now - int(buffer[body : body + 16])) / 1e3)
            else:
                twice += 1
            if explicit and got - acknowledged >= every:
                acks.append(b"ACK\nid:%b\n\n\0" % _ACK.search(buffer, position, body)[1])  # type: ignore[index]
                acknowledged = got
            last_frame = position
            position = body + o.size + 1
        if position:
            if acknowledged < got:
                ack = _ACK.search(buffer, last_frame, position)[1] if explicit else b""  # type: ignore[index]
            if acks:
                connection.sendall(b"".join(acks))
            kept = end - position
            buffer[:kept] = buffer[position:end]
            last = time.time()
            counts[k] = got
        else:
            kept = end
            refuse_error(bytes(buffer[:end]).lstrip())
    if acknowledged < got and ack:
        connection.sendall(b"ACK\nid:%b\n\n\0" % bytes(ack))
    disconnect(connection)
    results.put({"role": "consumer", "ended": last, "latency": latency.values, "sent": 0, "twice": twice, "risen": 0})
