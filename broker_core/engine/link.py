"""Peers and their consuming links: credit, and what is outstanding."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from .message import Message

if TYPE_CHECKING:
    from .branch import Branch
    from .browser import Browser
    from .commands import Send
    from .destination import Destination
    from .outcome import Outcome
    from .outputs import Output
    from .refusal import Refusal
    from .selection import Selection
    from .subscription import Subscription


NO_THRESHOLD = 100
"""Percent: every settlement makes room at once."""
ALWAYS = 1 << 62
"""Outstanding deliveries; there are never more."""


class Peer:
    """A connection that has logged in."""

    __slots__ = (
        "account",
        "answers",
        "blocked",
        "branches",
        "browsers",
        "client_id",
        "deserted",
        "detaches",
        "forwards",
        "links",
        "number",
        "pins",
        "produces",
        "returning",
        "session",
        "since",
        "stopped",
        "syncs",
        "temporaries",
        "transactions",
    )

    def __init__(self, number: int, account: str, client_id: str, session: str = "", *, forwards: bool = False, detaches: bool = False) -> None:
        self.number = number
        self.account = account
        self.client_id = client_id
        self.session = session
        """No other peer has it, of no other term either: the names of its temporary destinations begin with it. Empty: it makes none."""
        self.forwards, self.detaches = forwards, detaches
        """See commands.Open."""
        self.since = 0
        """When it logged in, in ms."""
        self.links: dict[int, Link] = {}
        self.browsers: dict[int, Browser] = {}
        self.pins: dict[tuple[int, int], Message] = {}
        """Copies with large bodies on their way to its browsers, by link and tag (pins.py)."""
        self.transactions: dict[bytes, Transaction] = {}
        """Begun and not ended, by the name that the peer gave them."""
        self.branches: dict[str, Branch] = {}
        """Those it began and that are not prepared, by xid. One that may be worked on is among its transactions, too."""
        self.temporaries: dict[Destination, None] = {}
        """What it made and has not ended, in order of making."""
        self.deserted: dict[Destination, None] = {}
        """Those of them whose consumers have come and gone, the longest deserted first. One that was given messages since may be missing."""
        self.returning = 0
        """Of what it gave back by ABORT and NACK, how much comes back portion by portion still."""
        self.answers: list[Output] = []
        """Those to be given when that is over."""
        self.blocked: dict[Destination, int] = {}
        """Full destinations, and how many of its sends and commits wait there."""
        self.produces: dict[Destination, None] = {}
        """Destinations that count their producers, and this as one."""
        self.syncs: list[Output] = []
        """Answers to be given when none waits any more."""
        self.stopped = False
        """Its socket is full: deliver nothing."""


class Transaction:
    """What a peer has asked for under one name, to be done at its commit."""

    __slots__ = ("ends_at", "octets", "refusal", "sends", "settled", "settles", "transacted")

    def __init__(self, ends_at: int) -> None:
        self.ends_at = ends_at
        """When it is rolled back if nobody ended it, in ms."""
        self.refusal: Refusal | None = None
        """Why a part of it could not be taken down: it cannot be committed any more."""
        self.sends: list[Send] = []
        self.octets = 0
        """Of the sends."""
        self.transacted = 0
        """Those of them that are in memory."""
        self.settles: list[tuple[Subscription, Outcome, list[Message]]] = []
        self.settled = 0
        """Messages in `settles`."""


class Tier(deque["Link"]):
    """Links that wait for their turn, the next to be served first; may hold some that can no longer receive (eligibility.py)."""

    __slots__ = ("priority", "source")

    def __init__(self, source: Subscription | Selection, priority: int = 0) -> None:
        super().__init__()
        self.source = source
        """What they are served from."""
        self.priority = priority


class Link:
    """A consumer. It may receive while it has credit and what is outstanding fits in its octets (R16)."""

    __slots__ = (
        "asked",
        "credit",
        "drain",
        "exclusive",
        "hungry",
        "marks",
        "number",
        "octets",
        "peer",
        "presettled",
        "priority",
        "replenish",
        "resumes_at",
        "selector_octets",
        "source",
        "subscription",
        "tag",
        "threshold",
        "tier",
        "unacknowledged",
        "unsettled",
        "withheld",
    )

    def __init__(
        self,
        number: int,
        peer: Peer,
        subscription: Subscription,
        credit: int,
        replenish: bool,
        presettled: bool,
        exclusive: bool = False,
        priority: int = 0,
        threshold: int = NO_THRESHOLD,
    ) -> None:
        self.number = number
        self.peer = peer
        self.subscription = subscription
        self.source: Subscription | Selection = subscription
        """Where it is served from: its subscription, or the selection of those who want the same part of it."""
        self.asked = self.credit = credit
        self.replenish = replenish
        self.presettled = self.unacknowledged = presettled
        self.exclusive = exclusive
        self.priority = priority
        self.threshold = threshold if replenish and not presettled else NO_THRESHOLD
        self.resumes_at = self._resumes_at(credit)
        """Once its credit is used up it gets none back before so few deliveries are outstanding (checklist item 34)."""
        self.withheld = 0
        """Credit that it gets back then. Below 0: so many deliveries more are outstanding than a limit allows that came later."""
        self.drain = 0
        """What its last Grant said of it."""
        self.selector_octets = 0
        """Of the text of its selector, on a queue: they count for its account."""
        self.tag = 0
        """Of the last delivery."""
        self.unsettled: dict[int, Message] = {}
        """Outstanding deliveries by tag, in order."""
        self.octets = 0
        """Of the outstanding deliveries."""
        self.marks: list[tuple[int, int]] = []
        """(tag, instant): up to which delivery it had got by then, for operators (looking.py)."""
        self.hungry = False
        """In its tier, to be served when its turn comes."""
        self.tier = subscription.hungry
        """Where it waits for its turn (eligibility.py)."""

    def _resumes_at(self, allowed: int) -> int:
        return allowed * self.threshold // 100 if self.threshold < NO_THRESHOLD else ALWAYS

    def limit(self, most: int) -> None:
        """So many deliveries may be outstanding, however many were asked for; below 1: as many as were. Not where it says itself how many it takes, or settles
        nothing."""
        if not self.replenish or self.presettled:
            return
        allowed = min(self.asked, most) if most > 0 else self.asked
        room = allowed - len(self.unsettled)
        self.credit, self.withheld = max(room, 0), min(room, 0)
        self.resumes_at = self._resumes_at(allowed)
        if room < 0 and self.resumes_at == ALWAYS:
            self.resumes_at = allowed - 1

    def regain(self, count: int) -> None:
        """So many of its deliveries are outstanding no more."""
        if self.replenish:
            self.withheld += count
            if self.credit or len(self.unsettled) <= self.resumes_at:
                self.credit += self.withheld
                self.withheld = 0

    def tags_upto(self, upto: int) -> Sequence[int]:
        """Of the outstanding deliveries up to this one, in order."""
        unsettled = self.unsettled
        first = next(iter(unsettled), self.tag + 1)
        if len(unsettled) == self.tag - first + 1:  # no gaps, as where all acknowledgements are cumulative
            return range(first, min(upto, self.tag) + 1)
        return list(takewhile(lambda tag: tag <= upto, unsettled))
