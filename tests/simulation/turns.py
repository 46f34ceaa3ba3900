"""Whose turn it is, from what the engine is asked and what it hands out: while a queue or a subscription has exclusive consumers, one receives;
of a message group its owner does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from broker_core.engine.commands import Attach, Command, Detach, Open, PeerLost
from broker_core.engine.outputs import Delivered, Detached, Output, Refused

from .audit import DEAD, Broken
from .groups import Consumer, Groups

ALIAS = "queue/alias"
ALIASES = {ALIAS: "queue/a"}
"""Said once it is there: who says it consumes from the queue as all others do."""


class Turns:
    """Of one term."""

    def __init__(self, counts: Counter[str], active: int) -> None:
        """`active`: so many consumers of a queue are served, the first; -1: all."""
        self._most_active = active
        self._counts = counts
        self._groups = Groups(counts)
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
            place = ALIASES.get(command.address, command.address), command.name
            selector = command.wanted.selector.text if command.wanted.selector is not None else ""
            consumer = Consumer(command.link, command.peer, place, command.exclusive, command.priority, selector)
            self._consumers[command.link] = consumer
            leader = self._leaders().get(place)
            if consumer.exclusive and leader is not None:
                self._groups.belong_to(leader)
        elif isinstance(command, Detach):
            self._leave(command.link)
        elif isinstance(command, PeerLost):
            self._peers.pop(command.peer, None)
            for consumer in [consumer for consumer in self._consumers.values() if consumer.peer == command.peer]:
                self._leave(consumer.link)

    def _leave(self, link: int) -> None:
        consumer = self._consumers.pop(link, None)
        if consumer is not None:
            self._groups.leaves(consumer)
            leader = self._leaders().get(consumer.place) if self._most_active > 0 else None
            if leader is not None:
                self._groups.belong_to(leader)

    def _active(self) -> list[Consumer]:
        """Of each queue those who registered first; the dead message queue has no limit."""
        counts: Counter[tuple[str, str]] = Counter()
        active = []
        for consumer in self._consumers.values():
            counts[consumer.place] += 1
            unlimited = consumer.place[0] == DEAD or not consumer.place[0].startswith("queue/")
            if unlimited or self._most_active < 0 or counts[consumer.place] <= self._most_active:
                active.append(consumer)
        return active

    def _leaders(self) -> dict[tuple[str, str], Consumer]:
        """Of several exclusive ones the highest priority leads, of equals the first."""
        leaders: dict[tuple[str, str], Consumer] = {}
        for consumer in self._active():
            if consumer.exclusive and (consumer.place not in leaders or consumer.priority > leaders[consumer.place].priority):
                leaders[consumer.place] = consumer
        return leaders

    def check(self, outputs: Iterable[Output]) -> None:
        """After a flush."""
        for output in outputs:
            if isinstance(output, Refused | Detached):
                self._leave(output.link)
        leaders = self._leaders()
        active = self._active() if self._most_active > 0 else []
        for output in outputs:
            consumer = self._consumers.get(output.link) if isinstance(output, Delivered) else None
            if consumer is None:
                continue
            if self._most_active > 0 and consumer.place[1:] == ("",):
                self._counts["served while backups stood by"] += len(active) < len(self._consumers)
                if consumer not in active:
                    raise Broken(f"link {consumer.link} of {consumer.place} received, and is a backup")
            if consumer.place in leaders:
                self._serve(consumer, leaders[consumer.place])
            self._groups.receives(consumer, output.messages)

    def _serve(self, consumer: Consumer, leader: Consumer) -> None:
        if consumer is not leader:
            raise Broken(f"link {consumer.link} of {consumer.place} received, link {leader.link} is exclusive")
        before = self._served.get(consumer.place)
        self._served[consumer.place] = consumer.link
        self._counts["exclusive consumers followed by another"] += before not in (None, consumer.link)
