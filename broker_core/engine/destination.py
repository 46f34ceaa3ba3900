"""Destinations: their settings, their lanes, their counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from .address import is_reserved, is_topic
from .levels import DEFAULTS, NONE, Levels, contradiction, levels_of
from .message import BEYOND, LANES, LEVEL_NAMES, Message, StoredBody
from .progress import Progress
from .routes import Routes

if TYPE_CHECKING:
    from .fan_out import FanOut
    from .known_ids import KnownIds
    from .link import Peer
    from .reads import PageWanted
    from .subscription import Subscription


@dataclass(slots=True, frozen=True)
class Settings:
    """What an operator may set. Durations in ms."""

    redelivery_max: int = 10
    """Redeliveries of a message that fails: one failure more and it is dead (R9); 0: the first failure kills, -1: never."""
    redelivery_delay_ms: int = 1_000
    redelivery_multiplier: float = 2.0
    redelivery_delay_max_ms: int = 60_000
    use_dead: bool = True
    """False: dead messages are discarded (Open MQ's useDMQ)."""
    duplicate_window_ms: int = 0
    """For so long the identifiers of accepted messages are remembered, so that one sent again is dropped; 0: none is (see duplicates)."""
    default_reliability: str = NONE
    """The level of messages whose producers leave it to the destination; `none`: that of their delivery mode (see levels)."""
    maximum_reliability: str = LEVEL_NAMES[-1]
    """What is sent with a higher level is refused."""
    reliability_override: bool = True
    """False: every message gets the default level, whatever its producer says."""

    def delay_ms(self, failures: int) -> int:
        """The back-off before the delivery that follows the given number of failures, at least 1."""
        if not self.redelivery_delay_ms:
            return 0
        exponent = min(failures - 1, 64)
        return int(min(self.redelivery_delay_ms * self.redelivery_multiplier**exponent, self.redelivery_delay_max_ms))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def contradiction(self) -> str:
        """A sentence that says which of them do not go together, or nothing."""
        return contradiction(self)

    @staticmethod
    def problem(values: dict[str, Any]) -> str:
        """A sentence that says what is wrong with `values`, or nothing."""
        for name, value in values.items():
            if name in CHOICES:
                if value not in CHOICES[name]:
                    return f"{name} must be one of {', '.join(CHOICES[name])}"
                continue
            if name not in BOUNDS:
                return f"{name} is not a setting; the settings are {', '.join(NAMES)}"
            kind, low, high = BOUNDS[name]
            if type(value) is not kind and not (kind is float and type(value) is int):
                return f"{name} must be {'true or false' if kind is bool else 'a number'}"
            if not (isinstance(value, int | float) and low <= value <= high):
                return f"{name} must lie between {low} and {high}"
        return ""


BOUNDS: dict[str, tuple[type, float, float]] = {
    "redelivery_max": (int, -1, 10_000),
    "redelivery_delay_ms": (int, 0, 86_400_000),
    "redelivery_multiplier": (float, 1.0, 100.0),
    "redelivery_delay_max_ms": (int, 0, 86_400_000),
    "use_dead": (bool, False, True),
    "duplicate_window_ms": (int, 0, 7 * 86_400_000),
    "reliability_override": (bool, False, True),
}
"""Of every setting that is a number, or true or false: its type, least and greatest value."""
CHOICES: dict[str, tuple[str, ...]] = {"default_reliability": DEFAULTS, "maximum_reliability": LEVEL_NAMES}
"""Of every other one: what it may be."""
NAMES = tuple(f.name for f in fields(Settings))
assert {*BOUNDS, *CHOICES} == set(NAMES)


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
        "octets",
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
