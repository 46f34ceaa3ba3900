"""How much is read from a client's socket and how much the engine delivers to it: every bound on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from broker_core.engine.commands import Command, Start, Stop
from broker_core.engine.outputs import Output
from broker_core.engine.producers import Producers

from .backlog import Backlog
from .intake import Intake
from .listening import Node

UNREAD_OCTETS_MAX = 4 << 20
"""Written behind a full send buffer, deliveries aside: receipts, outcomes and credit. Beyond, the peer is not read from: it would make us keep ever more
of them. More than the receipts of 65,535 ACKs, the largest prefetch, so that a client that reads and acknowledges in turn always gets on."""
COMMAND_EFFORT = 2
"""Microseconds that every command takes."""


class Machine(Protocol):
    """A connection of one protocol, as its socket sees it."""

    effort: int
    unfinished: bool
    listening: bool
    wants_close: bool
    close_reason: str
    producers: Producers

    @property
    def subscribed(self) -> bool: ...
    @property
    def wants_pause(self) -> bool: ...
    @property
    def is_leaving(self) -> bool: ...
    def receive_data(self, data: bytes, now: int, /) -> list[Any]: ...
    def receive_eof(self, now: int, /) -> list[Any]: ...
    def send(self, outputs: list[Output], now: int, /) -> None: ...
    def tick(self, now: int, /) -> object: ...
    def next_deadline(self) -> int | None: ...
    def reject(self, sentence: str, /) -> None: ...
    def refuse(self, sentence: str, /) -> None: ...


MachineT = TypeVar("MachineT", bound=Machine)


class FlowControl(asyncio.Protocol, Generic[MachineT]):
    """Of one connection."""

    _connection: MachineT
    _intake: Intake[Any, Any]

    def __init__(self, node: Node) -> None:
        self._node = node
        self._number = node.number_peer()
        self._transport: asyncio.Transport | None = None
        self._backlog = Backlog(self._parse, self._submit, lambda: not self._intake.busy, lambda: not self._congested, self._after_turn)
        self._streaming: asyncio.Task[None] | None = None
        """Of large bodies, out."""
        self._writable = asyncio.Event()
        self._writable.set()
        self._reading = True
        self._congested = False
        self._held = False
        self._starved = False
        """An operator drains the node: nothing more is delivered."""
        self._greedy = False
        """Too much that was delivered is unsettled (R20)."""
        self._stopped = False
        """The engine was told to deliver nothing."""
        self._unread = 0

    # -- the peer's own -----------------------------------------------------------------------------------------------------------------
    def _parse(self, data: bytes) -> int:
        """About how long it took, in microseconds."""
        raise NotImplementedError

    def _after_turn(self) -> None:
        """The backlog has done its part for now."""
        raise NotImplementedError

    def deliver(self, outputs: list[Output]) -> None:
        """What the engine says to this connection."""
        raise NotImplementedError

    def _refuse_for_space(self, sentence: str) -> None:
        """End the connection, as the broker has no disk space."""
        self._connection.refuse(sentence)

    def _behind_bodies(self, commands: Sequence[Command]) -> Sequence[Command]:
        """While a body is streamed: those that need not wait until it has left."""
        return commands

    @property
    def _is_choked(self) -> bool:
        """What is delivered could not leave, for a reason other than the socket's."""
        return self._streaming is not None

    @property
    def _wants_pause(self) -> bool:
        """The machine can take in nothing more."""
        return self._connection.wants_pause

    @property
    def _is_backed_up(self) -> bool:
        """While a body is streamed: as much waits for it as may."""
        return False

    # -- to the client ------------------------------------------------------------------------------------------------------------------
    def pause_writing(self) -> None:
        self._writable.clear()
        self._stop_or_start()

    def resume_writing(self) -> None:
        self._writable.set()
        self._unread = 0
        self._stop_or_start()
        self._regulate()

    def bound_unsettled(self, most: int) -> None:
        unsettled = self._node.host.unsettled(self._number)
        self._greedy = unsettled > most - max(most // 4, 1) if self._greedy else unsettled >= most
        self._stop_or_start()

    def _stop_or_start(self) -> None:
        """What the engine delivers while nothing can leave would only wait here, beyond every bound that links have."""
        stopped = self._greedy or self._starved or self._is_choked or not self._writable.is_set()
        if stopped != self._stopped and self._transport is not None:
            self._stopped = stopped
            self._node.host.submit([Stop(self._number) if stopped else Start(self._number)])

    # -- to the engine ------------------------------------------------------------------------------------------------------------------
    def _submit(self, commands: Sequence[Command]) -> int:
        """As much as others may wait for; the rest later. About how long it took, in microseconds."""
        if self._backlog.has_commands:
            self._backlog.append(commands)
            return 0
        host = self._node.host
        if self._streaming is not None and self._transport is not None:
            commands = self._behind_bodies(commands)
        left = host.submit_slice(commands)
        if left:
            self._backlog.put_back(left)
        held = host.held_octets(self._number)
        if held and self._connection.subscribed:
            self._limit_held(held)
        elif (held or host.congested) and not self._congested and self._transport is not None:
            self._congested = True
            host.wait_for_flush(self._number, self)
        return host.effort + COMMAND_EFFORT * (len(commands) - len(left))

    def _limit_held(self, octets: int) -> None:
        """A connection with consumers is read on, for what they settle; its sends may wait for disk space up to a limit (R20)."""
        limit = self._node.config.unconfirmed_octets_max
        if octets > limit:
            self._refuse_for_space(f"the broker has no disk space and keeps no more than {limit} octets of this connection waiting")

    def resume(self) -> None:
        self._congested = False
        self._backlog.go_on()
        self._regulate()

    # -- from the client ----------------------------------------------------------------------------------------------------------------
    def _regulate(self) -> None:
        """Read only while what is read can be taken in."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        waiting = bool(self._backlog) or self._held or self._congested or self._intake.busy or self._unread > UNREAD_OCTETS_MAX
        if self._streaming is not None:
            waiting = waiting or self._is_backed_up
        reading = not (waiting or self._wants_pause)
        if reading != self._reading:
            self._reading = self._connection.listening = reading
            if reading:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def hold(self, held: bool = True) -> None:
        self._held = held
        self._regulate()

    def starve(self, starved: bool) -> None:
        self._starved = starved
        self._stop_or_start()

    @property
    def number(self) -> int:
        return self._number

    @property
    def is_client(self) -> bool:
        return True

    @property
    def is_busy(self) -> bool:
        return bool(self._backlog) or self._intake.busy or self._intake.amid_body or self._streaming is not None or self._congested
