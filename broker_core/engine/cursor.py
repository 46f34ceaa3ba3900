"""What a subscription has of one lane: what it has settled, what it has offered, what waits in memory to be delivered.

Where a message of a lane can be, for one subscription (invariants.py checks that it is in exactly one of them):

    position < floor, or its bit set      settled
    floor <= position < frontier          returned | missing | delayed | aside | outstanding on a link | on its way out presettled
    frontier <= position < loaded         ready; if it is in `gone` as below the frontier
    loaded <= position < tail             on disk only: to be paged in (R7); while a read is on its way the cursor owns its interval;
                                          a volatile message of a topic perhaps in its lane (keeping.py); if it is in `gone` as below the frontier

An arriving message joins `ready` only if the cursor is caught up and memory allows; else it stays on disk and is paged in later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop
from typing import TYPE_CHECKING

from .message import VOLATILE, Message
from .progress import Progress

if TYPE_CHECKING:
    from .destination import Lane
    from .selection import Scan
    from .subscription import Subscription


class Cursor:
    __slots__ = (
        "accepted",
        "ahead",
        "aside",
        "aside_octets",
        "awaited",
        "barren",
        "changed",
        "delayed",
        "delayed_octets",
        "durable",
        "failures",
        "failures_changed",
        "gone",
        "index",
        "lane",
        "loaded",
        "lowest",
        "missing",
        "octets",
        "offered",
        "offered_before",
        "priority",
        "progress",
        "reading",
        "ready",
        "reserved",
        "returned",
        "scans",
        "stale",
        "stored",
        "subscription",
    )

    def __init__(self, subscription: Subscription, lane: Lane) -> None:
        self.subscription = subscription
        self.lane = lane
        self.index = lane.index
        self.stored = lane.index < VOLATILE
        """Its messages have rows."""
        self.durable = self.stored and subscription.durable
        """What is settled, offered and failed here goes into the ledger."""
        self.priority = lane.index % VOLATILE
        self.progress = Progress()
        self.offered = -1
        """The highest position that may have left (R9)."""
        self.ahead = Progress()
        """Beyond it: what selective consumers got from the middle may have left, what lies before has not."""
        self.offered_before = -1
        """The same at recovery: what lies at or below it may have left in an earlier epoch, so it is flagged."""
        self.ready: deque[Message] = deque()
        """Never delivered in this epoch, ascending."""
        self.loaded = 0
        """Every position below is settled or in memory."""
        self.barren = -1
        """Where `loaded` was after a page of the store with nothing but expired messages."""
        self.octets = 0
        """In `ready`, `returned`, `aside` and `delayed`; of what is delayed only what has its body in memory."""
        self.reading = 0
        """The number of the read on its way, for the next page or for missing bodies; 0: none."""
        self.gone: dict[int, None] = {}
        """Positions from the frontier on that wait there no more: taken out of the middle, or expired."""
        self.stale = 0
        """How many of `ready` are gone; never the first."""
        self.returned: dict[int, Message] = {}
        """Came back, to be delivered before `ready`; by position."""
        self.lowest: list[int] = []
        """Heap of the positions in `returned`, and of some that have left it."""
        self.missing: dict[int, Message] = {}
        """Came back without a body in memory: to be read again. In order of return."""
        self.awaited: list[int] = []
        """Heap of the positions in `missing`, and of some that have left it."""
        self.aside: dict[int, Message] = {}
        """Only for the consumer who owns their message group (grouping.py)."""
        self.aside_octets = 0
        self.scans: list[Scan] = []
        """Of the selections of its subscription."""
        self.delayed: dict[int, Message] = {}
        """Waiting for their back-off to pass."""
        self.delayed_octets = 0
        self.failures: dict[int, int] = {}
        """Position -> failures, of unsettled messages that failed."""
        self.failures_changed: dict[int, None] = {}
        self.reserved: dict[int, Message] = {}
        """Settled within a transaction that has not ended, by position."""
        self.accepted: list[int] = []
        """Positions acknowledged in the open batch."""
        self.changed = False
        """Since the last checkpoint."""

    @property
    def depth(self) -> int:
        """Messages not settled; those acknowledged in the open batch still count."""
        return self.lane.tail - self.progress.floor - self.progress.ahead

    @property
    def outstanding(self) -> int:
        """Messages that are with consumers or within their transactions."""
        waiting = len(self.ready) - self.stale + len(self.returned) + len(self.missing) + len(self.delayed) + len(self.aside)
        beyond = sum([position >= self.loaded for position in self.gone]) if self.gone else 0
        return self.progress.count_unsettled(self.progress.floor, self.loaded - 1) + beyond - waiting

    def waits(self) -> Callable[[int], bool]:
        """What tells of a position whether it is unsettled."""
        return lambda position: not self.progress.is_settled(position)

    @property
    def horizon(self) -> int:
        """From here on nothing is in memory but what came back. The floor may pass `loaded` while what lies on disk expires."""
        return max(self.loaded, self.progress.floor)

    @property
    def frontier(self) -> int:
        """The first position that was never in turn to be delivered."""
        return self.ready[0].position if self.ready else self.loaded

    def may_have_left(self, position: int) -> bool:
        """To be flagged if it is delivered, as it may have been before (R9)."""
        return position <= self.offered or self.ahead.is_settled(position)

    def offer_ahead(self, first: int, last: int) -> None:
        if last > self.offered:
            self.ahead.settle(max(first, self.offered + 1), last)

    def reopen(self, first: int, last: int) -> None:
        """What was settled there is not any more, and has never been offered. What else was is known as such."""
        self.progress.unsettle(first, last)
        if first <= self.offered:
            self.ahead.settle(0, self.offered)
            self.offered = first - 1
        self.ahead.unsettle(first, last)

    def forget_offers(self) -> None:
        """What lies below the mark, or is settled up to the floor, need not be told one by one."""
        if self.ahead.blocks:
            self.ahead.settle(0, max(self.offered, self.progress.floor - 1))
        self.offered = max(self.offered, self.ahead.floor - 1)

    def holds(self, message: Message) -> bool:
        """This very message waits here, or its row does, for whoever comes first."""
        position = message.position
        waiting = self.returned.get(position) or self.missing.get(position)
        if waiting is not None:
            return waiting is message
        return position >= self.frontier and position not in self.gone and not self.progress.is_settled(position)

    def is_free(self, position: int) -> bool:
        """The unsettled message waits, here or on disk, for whoever comes first, for its back-off or for its group's owner: nobody has it."""
        if position in self.returned or position in self.missing or position in self.delayed or position in self.aside:
            return True
        return position >= self.frontier and position not in self.gone

    def forget_gone(self, position: int) -> None:
        """It is settled now. In `ready` it stays until its turn comes."""
        if position >= self.loaded or position < self.frontier:
            self.gone.pop(position, None)

    def forget_passed(self) -> None:
        """`loaded` has moved on: what lies before the frontier is known otherwise."""
        if self.gone:
            frontier = self.frontier
            self.gone = {position: None for position in self.gone if position >= frontier}

    @property
    def deliverable(self) -> int:
        """Messages that could leave now. None while the bodies of earlier ones are on their way: order comes first."""
        if self.returned:
            return len(self.returned) if not self.missing or self.head.position < self.first_missing else 0
        return 0 if self.missing else len(self.ready) - self.stale

    @property
    def is_behind(self) -> bool:
        """What it would deliver next is on disk only. What is still to be handed out has not come yet."""
        lane = self.lane
        return bool(self.missing) or self.horizon < min(lane.tail, lane.handed)

    @property
    def holds_up(self) -> bool:
        """Lower priorities wait for what is to be read here. Not if the last page had expired, and whatever is behind it perhaps, too."""
        return self.is_behind and not (self.barren == self.loaded and self.subscription.durable)

    @property
    def first_missing(self) -> int:
        """The lowest position of what is missing; only if anything is."""
        awaited, missing = self.awaited, self.missing
        while awaited[0] not in missing:
            heappop(awaited)
        return awaited[0]

    @property
    def head(self) -> Message:
        """The message to leave next if its turn has come; only if there is any in memory."""
        lowest, returned = self.lowest, self.returned
        if not returned:
            return self.ready[0]
        while lowest[0] not in returned:
            heappop(lowest)
        return returned[lowest[0]]
