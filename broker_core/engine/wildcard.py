"""Subscriptions of all topics that match a pattern, those of today and those to come.

A wildcard subscription has a *member* for each of its topics: a subscription like any other, with cursors of its own, which is fed, paged, settled and
made durable as others are. What is one for all of them is who consumes: its links belong to the wildcard subscription, members
share them, and dispatch serves them from whichever member has something, in turn. A member that has nothing to deliver is not looked at.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from .cursor import Cursor
from .destination import Destination
from .settings import Settings
from .message import Message
from .pattern import Pattern
from .subscription import Subscription


class WildcardSubscription(Subscription):
    """Its destination is none of the shard's: it has the pattern for an address, number 0, and no messages."""

    __slots__ = ("awaited", "members", "supplied")

    def __init__(self, number: int, address: str, *arguments: Any, **how: Any) -> None:
        super().__init__(number, Destination(0, address, 0, True, SETTINGS), *arguments, **how)
        self.members: dict[int, Subscription] = {}
        """By the numbers of their topics."""
        self.supplied: OrderedDict[Subscription, None] = OrderedDict()
        """Members that may have something to deliver, the next to be served first."""
        self.awaited: dict[Subscription, None] = {}
        """Members for which something is on its way from the store."""

    @property
    def size(self) -> int:
        return 1 + len(self.members)

    def parts(self) -> Sequence[Subscription]:
        return list(self.members.values())

    def cursor_of(self, message: Message) -> Cursor | None:
        member = self.members.get(message.destination)
        return None if member is None else member.cursors[message.header.lane]

    def by_member(self, messages: list[Message]) -> Iterator[tuple[Subscription, list[Message]]]:
        """Runs of neighbours of one topic."""
        for number, run in groupby(messages, key=_destination_of):
            yield self.members[number], list(run)

    def supply(self, member: Subscription) -> None:
        """Something of it is over: what waited for that may be deliverable now."""
        if not member.is_idle:
            self.supplied.setdefault(member)

    def look_at(self, member: Subscription) -> None:
        """What it needs from the store was asked for, if anything."""
        if member.is_reading and self.members.get(member.destination.number) is member:
            self.awaited[member] = None
        else:
            self.awaited.pop(member, None)

    @property
    def is_idle(self) -> bool:
        return not self.draining and not self.supplied

    @property
    def is_reading(self) -> bool:
        return bool(self.awaited)

    @property
    def depth(self) -> int:
        return sum(member.depth for member in self.members.values())


SETTINGS = Settings()


def _destination_of(message: Message) -> int:
    return message.destination


class Matches:
    """One pattern that somebody has subscribed to."""

    __slots__ = ("pattern", "subscriptions", "topics")

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.topics: dict[Destination, None] = {}
        """Those that there are."""
        self.subscriptions: dict[WildcardSubscription, None] = {}
