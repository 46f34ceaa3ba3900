"""A connection between a scripted client and the real peer: octets arrive in order, later, in other pieces than they were sent."""

from __future__ import annotations

import asyncio
from collections import deque
from random import Random
from typing import Protocol

from broker_core.server.amqp_peer import AmqpPeer
from broker_core.server.listening import Node
from broker_core.server.stomp_peer import StompPeer

BUFFER_HIGH = 1500
"""Octets on their way to the client above which the peer must stop writing: a few messages."""
BUFFER_LOW = 500
LATENCY = 0.003
STALL_IN = 40
INSTANT = 1e-7
"""Between two pieces: timers due at the same time have no order."""
STALL = 0.080


class Reader(Protocol):
    def hears(self, octets: bytes) -> None: ...

    def missed(self, octets: bytes) -> None:
        """What was written and never arrived."""

    def missed_behind_a_body(self) -> None:
        """A large body was on its way from the store, and others waited for it."""

    def is_closing(self) -> None:
        """The broker has said its last word; what it says before that is still on its way."""

    def is_cut(self) -> None: ...


class Numbered:
    """A real peer; its place in a set depends on its number and not on an address in memory."""

    _number: int
    _reader: Reader

    def _tell_lost(self) -> None:
        """From now on the engine gives to others what this client held, though a body may still be on its way to it."""
        super()._tell_lost()  # type: ignore[misc]
        self._reader.is_closing()

    def __hash__(self) -> int:
        return self._number

    __eq__ = object.__eq__


class NumberedPeer(Numbered, StompPeer):
    def __init__(self, node: Node, reader: Reader) -> None:
        super().__init__(node)
        self._reader = reader

    @property
    def is_streaming(self) -> bool:
        return self._streaming is not None or bool(self._outgoing)


class NumberedAmqpPeer(Numbered, AmqpPeer):
    def __init__(self, node: Node, reader: Reader) -> None:
        super().__init__(node)
        self._reader = reader

    @property
    def is_streaming(self) -> bool:
        """Deliveries wait for the window of their session, or for a large body."""
        return self._streaming is not None or any(session.head is not None for session in self._connection.sessions.by_channel.values())


class Wire(asyncio.Transport):
    """The server's end; the client calls `say` and `cut`."""

    def __init__(
        self, node: Node, reader: Reader, random: Random, kind: type[NumberedPeer | NumberedAmqpPeer] = NumberedPeer
    ) -> None:  # fmt: skip
        """`kind`: of the peer, by the protocol that its client speaks."""
        super().__init__()
        self._reader, self._random = reader, random
        self._loop = asyncio.get_running_loop()
        self._to_server: deque[bytes] = deque()
        self._to_client: deque[bytes] = deque()
        self._buffered = 0
        self._paused = self._full = False
        self._closing = self.gone = False
        self._server_at = self._client_at = 0.0
        self.peer = kind(node, reader)
        self.peer.connection_made(self)

    # -- the client's end -----------------------------------------------------------------------------------------------------------------
    def say(self, octets: bytes) -> None:
        """In one piece or in several, wherever the random numbers cut."""
        cuts = self._random.choice((0, 0, 1, 3)) if len(octets) > 1 else 0
        ends = sorted({self._random.randrange(1, len(octets)) for _ in range(cuts)} | {len(octets)})
        start = 0
        for end in ends:
            self._server_at = max(self._server_at + INSTANT, self._loop.time() + self._random.random() * LATENCY)
            self._loop.call_at(self._server_at, self._arrive, octets[start:end])
            start = end

    def cut(self) -> None:
        """The client is gone; so is what was on its way in either direction."""
        if not self.gone:
            self._lose()
            self._loop.call_soon(self.peer.connection_lost, None)

    def kill(self) -> None:
        """The node is gone."""
        if not self.gone:
            self._lose()
            self._loop.call_soon(self._reader.is_cut)

    def _lose(self) -> None:
        self.gone = True
        missed, self._to_client = b"".join(self._to_client), deque()
        self._to_server.clear()
        self._reader.missed(missed)
        if self.peer.is_streaming:
            self._reader.missed_behind_a_body()

    def _arrive(self, octets: bytes) -> None:
        if self.gone or self._closing:
            return
        self._to_server.append(octets)
        self._feed()

    def _feed(self) -> None:
        while self._to_server and not (self._paused or self._closing or self.gone):
            self.peer.data_received(self._to_server.popleft())

    # -- the server's end -----------------------------------------------------------------------------------------------------------------
    def write(self, data: bytes) -> None:
        if self.gone:
            self._reader.missed(data)
            return
        latency = STALL if self._random.randrange(STALL_IN) == 0 else LATENCY
        self._to_client.append(data)
        self._buffered += len(data)
        self._client_at = max(self._client_at + INSTANT, self._loop.time() + self._random.random() * latency)
        self._loop.call_at(self._client_at, self._leave)
        if self._buffered > BUFFER_HIGH and not self._full:
            self._full = True
            self.peer.pause_writing()

    def _leave(self) -> None:
        if self.gone:
            return
        octets = self._to_client.popleft()
        self._buffered -= len(octets)
        self._reader.hears(octets)
        if self._full and self._buffered < BUFFER_LOW and not self.gone:
            self._full = False
            self.peer.resume_writing()
        self._end()

    def close(self) -> None:
        self._closing = True
        self._loop.call_soon(self._end)

    def _end(self) -> None:
        """Everything that was written before the close has arrived."""
        if self._closing and not self._to_client and not self.gone:
            self.gone = True
            self.peer.connection_lost(None)
            self._reader.is_cut()

    def abort(self) -> None:
        if not self.gone:
            self._lose()
            self._loop.call_soon(self.peer.connection_lost, None)
            self._loop.call_soon(self._reader.is_cut)

    def is_closing(self) -> bool:
        return self._closing or self.gone

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        self._paused = False
        self._loop.call_soon(self._feed)

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.1", 1) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass
