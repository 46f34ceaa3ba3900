"""Consumers of a queue that want a part of it. Those with equal filters are one selection, and it has one scan of each lane (R8).

A scan goes up its lane once: through what memory holds, then through the store, until nothing is unseen and it only looks at what arrives. What
matches is a candidate, nobody's before a link takes it: another may take it first, so candidates are asked whether they still wait (Cursor.holds).
What does not match leaves no trace. What came back waits for another look in `unseen`, wherever the scan is.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .message import Message

if TYPE_CHECKING:
    from .cursor import Cursor
    from .link import Link
    from .subscription import Filter, Subscription


class Scan:
    __slots__ = ("at", "cursor", "end", "found", "lowest", "octets", "priority", "queued", "reading", "selection", "unseen")

    def __init__(self, selection: Selection, cursor: Cursor) -> None:
        self.selection = selection
        self.cursor = cursor
        self.priority = cursor.priority
        self.at = cursor.frontier
        """Every position below has been looked at, or was out when the scan came by: then it is looked at when it comes back."""
        self.end: int | None = self.at if self.at == cursor.lane.tail else None
        """From here on everything was looked at when it arrived; None: it was not, arrivals are left for later."""
        self.found: dict[int, tuple[Message, int]] = {}
        """Candidates by position, and the octets that each is said to hold."""
        self.lowest: list[int] = []
        """Heap of the positions in `found`, and of some that have left it."""
        self.octets = 0
        """Of the candidates; a message that waits in `ready` as well is counted twice."""
        self.unseen: deque[Message] = deque([*cursor.returned.values(), *cursor.missing.values()])
        """Came back, and was not looked at since."""
        self.reading = 0
        """The number of the read on its way; 0: none."""
        self.queued = False
        """Its turn to read will come."""

    @property
    def horizon(self) -> int:
        """Nothing from here on is left to be looked at; everything below `at` has been."""
        return self.cursor.lane.tail if self.end is None else self.end

    @property
    def is_behind(self) -> bool:
        return self.at < self.horizon

    def is_in_turn(self, position: int) -> bool:
        """The candidate may leave before anything that is still to be looked at. What came back always may."""
        return position < self.at or not self.is_behind or position in self.cursor.returned or position in self.cursor.missing

    @property
    def deliverable(self) -> int:
        """Messages that could leave now, about."""
        return len(self.found)


class Selection:
    """The links of a queue that have the same filter."""

    __slots__ = ("links", "order", "repeats", "subscription", "wanted")

    def __init__(self, subscription: Subscription, wanted: Filter) -> None:
        self.subscription = subscription
        self.wanted = wanted
        self.links: dict[int, Link] = {}
        self.order: list[Scan] = []
        """Highest priority first; of equals the stored lane first."""
        self.repeats = wanted.selector is None or wanted.selector.identifiers.isdisjoint(("JMSMessageID", "JMSTimestamp"))
        """Messages with the same header section match alike."""
        for cursor in subscription.order:
            self.scan(cursor)

    def scan(self, cursor: Cursor) -> None:
        """The cursor is new, or the selection is."""
        scan = Scan(self, cursor)
        cursor.scans.append(scan)
        self.order.append(scan)
        self.order.sort(key=lambda s: (-s.priority, s.cursor.index))

    @property
    def is_reading(self) -> bool:
        """More may come for links that have nothing now."""
        return any(scan.reading or scan.unseen or scan.is_behind for scan in self.order)

    @property
    def is_idle(self) -> bool:
        """Nothing to deliver, nothing to look at."""
        subscription = self.subscription
        return not subscription.draining and subscription.owners is None and not any(scan.found or scan.unseen or scan.is_behind for scan in self.order)
