"""Destinations: their lanes, their counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .address import is_reserved, is_topic
from .levels import Levels, levels_of
from .message import BEYOND, LANES, Message, StoredBody
from .progress import Progress
from .routes import Routes
from .settings import Settings

if TYPE_CHECKING:
    from .capacity import Capacity
    from .fan_out import FanOut
    from .growth import Backlogs
    from .known_ids import KnownIds
    from .link import Peer
    from .observing import Observed
    from .reads import PageWanted
    from .subscription import Subscription


NO_ROUTES = Routes()


class Lane:
    """The messages of one destination, priority and delivery mode, densely numbered in order of arrival (R2)."""

    __slots__ = (
        "bodies",
        "buried",
        "destination",
        "handed",
        "index",
        "kept",
        "kept_end",
        "kept_first",
        "kept_octets",
        "page",
        "spilled_end",
        "tail",
    )

    def __init__(self, destination: Destination, index: int, tail: int = 0) -> None:
        self.destination = destination
        self.index = index
        self.tail = tail
        """The next position."""
        self.handed = BEYOND
        """Of a topic: everything below has been given to those who have consumers, or may be read by them; the rest will be (fan_out.py)."""
        self.buried = Progress()
        """Of a topic: what has expired for some subscription, so that it is in the dead message queue already and need not be once more."""
        self.kept: dict[int, Message] = {}
        """Of a topic: volatile messages for subscriptions that are behind, by position, ascending (keeping.py)."""
        self.kept_first = self.kept_end = 0
        """The interval in which everything that is neither in a cursor's memory nor settled is kept. Of what is kept, if anything is."""
        self.kept_octets = 0
        self.page: PageWanted | None = None
        """Of a topic: the last page on its way, for others to join (paging.py)."""
        self.spilled_end = 0
        """One more than the last position that found no room in memory."""
        self.bodies: dict[int, StoredBody] = {}
        """Large bodies of volatile messages that are kept or on disk only, by position, ascending: no segment takes them along. Those that every
        subscription is past are forgotten once a second. 100 octets for 256 KiB at least."""

    def keeps(self, position: int) -> bool:
        """Whether it is kept if anybody may still want it."""
        return bool(self.kept) and self.kept_first <= position < self.kept_end

    def waits(self) -> Callable[[int], bool]:
        """What tells of a position whether it may be unsettled for somebody. Of thousands of subscriptions only their lowest floor is looked at, once."""
        progresses = [s.cursors[self.index].progress for s in self.destination.subscriptions]  # type: ignore[union-attr]
        if len(progresses) == 1:
            return lambda position: not progresses[0].is_settled(position)
        floor = min([progress.floor for progress in progresses], default=self.tail)
        return lambda position: position >= floor


class Destination:
    __slots__ = (
        "accepted",
        "address",
        "automatic",
        "backlogs",
        "capacity",
        "created_at",
        "dead",
        "estimated",
        "expired",
        "fan_out",
        "idle_since",
        "is_reserved",
        "is_topic",
        "known_ids",
        "lanes",
        "levels",
        "number",
        "observed",
        "octets",
        "octets_arrived",
        "octets_committed",
        "octets_volatile",
        "owner",
        "published",
        "published_octets",
        "receivers",
        "redelivered",
        "routes",
        "scheduled",
        "scheduled_octets",
        "settings",
        "settled",
        "state",
        "subscriptions",
        "witness",
    )

    def __init__(self, number: int, address: str, created_at: int, automatic: bool, settings: Settings) -> None:
        self.number = number
        self.address = address
        self.created_at = created_at
        self.automatic = automatic
        """Created by a client's use; reaped when idle."""
        self.settings: Settings
        self.levels: Levels | None
        """What becomes of the level that producers ask for; None: they have it."""
        self.set(settings)
        self.owner: Peer | None = None
        """Of a temporary destination: who made it and may consume it. Nothing of it is stored, so its number is negative (see temporary)."""
        self.known_ids: KnownIds | None = None
        """Of accepted messages; None: duplicates are not detected here."""
        self.capacity: Capacity | None = None
        """None: nothing limits what it holds (capacity.py)."""
        self.state = 0
        """Union of commands.Direction: what is paused."""
        self.lanes: list[Lane | None] = [None] * LANES
        self.is_topic = is_topic(address)
        self.is_reserved = is_reserved(address)
        """The broker's own: nothing is sent to it."""
        self.subscriptions: list[Subscription] = []
        self.receivers: list[Subscription] = []
        """Of a queue: those that every arriving message goes to."""
        self.routes = Routes() if self.is_topic else NO_ROUTES
        """Of a topic."""
        self.fan_out: FanOut | None = None
        """Of a topic: what it has still to hand out."""
        self.octets = 0
        """Header sections and bodies of the messages that are not settled; of a topic once for every subscription."""
        self.octets_volatile = 0
        """Those of them that a crash would take: never in the ledger."""
        self.octets_arrived = 0
        """Those of stored messages that have come since the last flush, counted alike."""
        self.octets_committed = 0
        """What the ledger says: of stored messages, as of the last flush."""
        self.estimated = False
        """Averages are in these octets (see accounting)."""
        self.published = self.published_octets = 0
        """Of a topic: messages since recovery, for the average; what was there then counts once."""
        self.witness: Subscription | None = None
        """One that held messages when last looked at: look there first."""
        self.accepted = self.settled = self.dead = self.expired = self.redelivered = 0
        """Totals since creation; `settled` counts acknowledgements only."""
        self.scheduled = self.scheduled_octets = 0
        """Delayed messages that are not due yet."""
        self.observed: Observed | None = None
        """None: nothing was acknowledged here, and nothing died, since recovery."""
        self.backlogs: Backlogs | None = None
        """Of a topic: what its durable subscriptions held a while ago; None: it has none, or nobody has looked."""
        self.idle_since = created_at

    def set(self, settings: Settings) -> None:
        self.settings, self.levels = settings, levels_of(settings)

    def join(self, subscription: Subscription) -> None:
        subscription.place = len(self.subscriptions)
        self.subscriptions.append(subscription)

    def leave(self, subscription: Subscription) -> None:
        """The last one takes its place, so that thousands may leave one after the other."""
        last = self.subscriptions.pop()
        if last is not subscription:
            self.subscriptions[subscription.place] = last
            last.place = subscription.place
        if self.witness is subscription:  # its lanes go on without it
            self.witness = None

    @property
    def is_empty(self) -> bool:
        """Nobody has anything unsettled."""
        if self.witness is None or not self.witness.depth:
            self.witness = next((subscription for subscription in self.subscriptions if subscription.depth), None)
        return self.witness is None

    @property
    def depth(self) -> int:
        return sum(subscription.depth for subscription in self.subscriptions)

    @property
    def is_asked_for(self) -> bool:
        """Somebody consumes from it, or has a durable subscription; whoever asked for a pattern that it matches has not asked for it."""
        return any(s.wildcard is None and (s.links or (s.durable and self.is_topic)) for s in self.subscriptions)

    @property
    def consumers(self) -> int:
        return sum(len(subscription.links) for subscription in self.subscriptions)
