"""Whose turn it is, from what the engine is asked and what it hands out: while a queue or a subscription has exclusive consumers, one receives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from broker_core.engine.commands import Attach, Command, Detach, Open, PeerLost
from broker_core.engine.effects import Delivered, Detached, Output, Refused

from .audit import Broken


@dataclass(eq=False)
class Consumer:
    link: int
    peer: int
    place: tuple[str, str]
    """Address and name of the subscription."""
    exclusive: bool
    priority: int


class Turns:
    """Of one term."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._peers: dict[int, None] = {}
        """Connected: what one asked for before it was lost may come after that, and is nobody's."""
        self._consumers: dict[int, Consumer] = {}
        """By link, in order of registration."""
        self._served: dict[tuple[str, str], int] = {}
        """The exclusive consumer that received last."""

    def sees(self, command: Command) -> None:
        if isinstance(command, Open):
            self._peers[command.peer] = None
        elif isinstance(command, Attach) and command.peer in self._peers and command.link not in self._consumers:
            place = command.address, command.name
            self._consumers[command.link] = Consumer(command.link, command.peer, place, command.exclusive, command.priority)
        elif isinstance(command, Detach):
            self._consumers.pop(command.link, None)
        elif isinstance(command, PeerLost):
            self._peers.pop(command.peer, None)
            self._consumers = {link: consumer for link, consumer in self._consumers.items() if consumer.peer != command.peer}

    def check(self, outputs: Iterable[Output]) -> None:
        """After a flush."""
        for output in outputs:
            if isinstance(output, Refused | Detached):
                self._consumers.pop(output.link, None)
        exclusive: dict[tuple[str, str], list[Consumer]] = {}
        for consumer in self._consumers.values():
            if consumer.exclusive:
                exclusive.setdefault(consumer.place, []).append(consumer)
        for output in outputs:
            consumer = self._consumers.get(output.link) if isinstance(output, Delivered) else None
            if consumer is not None and consumer.place in exclusive:
                self._serve(consumer, max(exclusive[consumer.place], key=lambda one: one.priority))

    def _serve(self, consumer: Consumer, leader: Consumer) -> None:
        """Of several exclusive ones the highest priority leads, of equals the first."""
        if consumer is not leader:
            raise Broken(f"link {consumer.link} of {consumer.place} received, link {leader.link} is exclusive")
        before = self._served.get(consumer.place)
        self._served[consumer.place] = consumer.link
        self._counts["exclusive consumers followed by another"] += before not in (None, consumer.link)
