"""Whose each message group is, from what the engine is asked and what it hands out: one consumer's, until it is closed or its owner goes.

Asked of groups that nobody closes: one that is closed is chosen anew with the message that closes it, and again when that one comes back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from broker_core.conversion import decode
from broker_core.engine.message import Message

from .audit import CLOSED, Broken
from .session import GROUPED, SELECTORS

Place = tuple[str, str]


@dataclass(eq=False)
class Consumer:
    link: int
    peer: int
    place: Place
    """Address and name of the subscription."""
    exclusive: bool
    priority: int
    selector: str


@dataclass(frozen=True)
class Seen:
    """What of a message matters to who gets it."""

    group: str
    colour: str
    priority: int


class Groups:
    """Of one term: owners are not stored."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._owners: dict[tuple[Place, str], list[Consumer]] = {}
        """Who has received of a group: a second one only what the first does not take, and so on."""
        self._seen: dict[bytes, Seen] = {}
        """By header section."""

    def leaves(self, gone: Consumer) -> None:
        for owners in self._owners.values():
            if gone in owners:
                owners.remove(gone)

    def belong_to(self, exclusive: Consumer) -> None:
        """While it is served all groups of the place are its own."""
        for (place, _), owners in self._owners.items():
            if place == exclusive.place:
                owners[:] = [owner for owner in owners if owner is exclusive]

    def receives(self, consumer: Consumer, messages: list[Message]) -> None:
        if consumer.place[0] != GROUPED:
            return
        for message in messages:
            seen = self._see(message)
            if seen.group not in ("", CLOSED):
                self._receive(consumer, seen)

    def _see(self, message: Message) -> Seen:
        octets = message.header.octets
        if octets not in self._seen:
            headers = decode(message.header)
            self._seen[octets] = Seen(str(headers.get("JMSXGroupID", "")), str(headers.get("colour", "")), message.header.priority)
        return self._seen[octets]

    def _receive(self, consumer: Consumer, seen: Seen) -> None:
        known = (consumer.place, seen.group) in self._owners
        owners = self._owners.setdefault((consumer.place, seen.group), [])
        takers = [owner for owner in owners if SELECTORS[owner.selector](seen)]  # type: ignore[arg-type]
        if not takers:
            self._counts["message groups that got another owner"] += known and not owners
            self._counts["message groups with two owners, by what they take"] += bool(owners)
            owners.append(consumer)
        elif takers[0] is not consumer:
            raise Broken(f"link {consumer.link} received of message group {seen.group}, which is that of link {takers[0].link}")
