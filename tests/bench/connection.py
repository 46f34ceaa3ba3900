"""A load's connections: logged in, left in an orderly way, and what they remember of latencies. Blocking, with as few calls as may be."""

from __future__ import annotations

import argparse
import random
import socket

SAMPLE = 20_000
"""Latencies kept of each connection."""
STAMP_OCTETS = 26
"""`<microseconds, 16 digits> <number, 8 digits> ` opens every body."""
GOODBYE_SECONDS = 15


class Reservoir:
    """A bounded, uniform sample of an unbounded stream (algorithm R)."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self._seen = 0

    def add(self, value: float) -> None:
        self._seen += 1
        if len(self.values) < SAMPLE:
            self.values.append(value)
        elif (place := random.randrange(self._seen)) < SAMPLE:
            self.values[place] = value


def connect(o: argparse.Namespace, client_id: str = "") -> socket.socket:
    connection = socket.create_connection((o.host, o.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    extra = f"client-id:{client_id}\n" if client_id else ""
    connection.sendall(f"CONNECT\naccept-version:1.2\nhost:{o.vhost}\nlogin:{o.user}\npasscode:{o.password}\n{extra}\n\0".encode())
    answer = b""
    while b"\0" not in answer:
        octets = connection.recv(65536)
        if not octets:
            raise SystemExit("the broker closed the connection before CONNECTED")
        answer += octets
    if not answer.lstrip().startswith(b"CONNECTED"):
        raise SystemExit(answer.decode(errors="replace"))
    return connection


def disconnect(connection: socket.socket) -> None:
    """When the receipt comes the broker has read everything sent before (STOMP 1.2, DISCONNECT)."""
    connection.settimeout(GOODBYE_SECONDS)
    connection.sendall(b"DISCONNECT\nreceipt:goodbye\n\n\0")
    tail = b""
    while b"receipt-id:goodbye" not in tail:
        octets = connection.recv(65536)
        if not octets:
            raise SystemExit("the broker closed the connection without a receipt for DISCONNECT")
        refuse_error(octets)
        tail = tail[-64:] + octets
    connection.close()


def refuse_error(octets: bytes) -> None:
    """End the process with what the broker says if there is an ERROR frame among the octets."""
    at = octets.find(b"ERROR\n")
    if at >= 0 and (at == 0 or octets[at - 1 : at] in (b"\0", b"\n")):
        raise SystemExit(octets[at : at + 2000].decode(errors="replace"))
