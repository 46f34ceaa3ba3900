"""Very large messages, one after the other through a queue of their own; counts those that arrived whole."""

from __future__ import annotations

import multiprocessing as mp
import time
from multiprocessing.sharedctypes import Synchronized
from typing import Any

from tests.support.clients import encode, open_socket

QUEUE = "/queue/bench.large"
BODY_OCTETS = 100 * (1 << 20) - 4096
"""100 MiB is the most a message may have, its headers included."""
MESSAGE_SECONDS_MAX = 120


def _login(port: int) -> Any:
    connection = open_socket(port, MESSAGE_SECONDS_MAX)
    connection.sendall(encode("CONNECT", {"accept-version": "1.2", "host": "/", "login": "guest", "passcode": "guest"}))
    assert connection.recv(4096).startswith(b"CONNECTED")
    return connection


def _send(port: int, running: Any) -> None:
    connection = _login(port)
    frame = encode("SEND", {"destination": QUEUE, "persistent": "true", "receipt": "r"}, b"L" * BODY_OCTETS)
    while running.value:
        connection.sendall(frame)
        answer = b""
        while b"\0" not in answer:
            octets = connection.recv(4096)
            assert octets, "the broker closed the connection"
            answer += octets
        assert b"RECEIPT" in answer, answer


def _receive(port: int, running: Any, arrived: Synchronized[int]) -> None:
    connection = _login(port)
    connection.sendall(encode("SUBSCRIBE", {"id": "0", "destination": QUEUE, "ack": "client-individual", "prefetch-count": "1"}))
    head, wanted = b"", 0
    while running.value:
        octets = connection.recv(1 << 20)
        assert octets, "the broker closed the connection"
        if wanted == 0:
            head += octets
            at = head.find(b"\n\n")
            if at < 0:
                continue
            assert b"MESSAGE" in head[:at], head[:1000]
            ack = head[:at].partition(b"\nack:")[2].partition(b"\n")[0]
            wanted, octets, head = BODY_OCTETS + 1, head[at + 2 :], b""  # the body and its NUL
        wanted -= len(octets)
        if wanted <= 0:
            assert wanted == 0 or octets[wanted:].strip() == b"", "more came than the message"
            wanted = 0
            connection.sendall(b"ACK\nid:" + ack + b"\n\n\0")
            arrived.value += 1


class Large:
    """Sender and receiver, a process each."""

    def __init__(self, port: int) -> None:
        self._running = mp.Value("b", 1)
        self._arrived: Any = mp.Value("q", 0)
        self._processes = [
            mp.Process(target=_receive, args=(port, self._running, self._arrived), daemon=True),
            mp.Process(target=_send, args=(port, self._running), daemon=True),
        ]

    def start(self) -> None:
        for process in self._processes:
            process.start()
            time.sleep(0.5)

    def stop(self) -> int:
        """The messages that arrived. Raises RuntimeError if a process failed or none arrived."""
        failed = [process.name for process in self._processes if process.exitcode]
        self._running.value = 0
        for process in self._processes:
            process.join(1)
            process.kill()
            process.join()
        if failed or not self._arrived.value:
            raise RuntimeError(f"large messages did not pass: {failed or 'none arrived'}")
        return self._arrived.value
