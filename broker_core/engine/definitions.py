"""What the store is told of what there is: destinations, subscriptions, aliases, policies, segments, and purges that may be undone."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass(slots=True)
class DestinationDefined:
    """Insert or replace. `settings` is engine.destination.Settings as a plain dict."""

    destination: int
    address: str
    created_at: int
    automatic: bool
    state: int
    settings: dict[str, Any]


@dataclass(slots=True)
class DestinationDestroyed:
    destination: int


@dataclass(slots=True)
class SubscriptionDefined:
    """A queue has one, built in; topics get theirs from subscribers. Only durable ones are told."""

    subscription: int
    destination: int
    name: str = ""
    client_id: str = ""
    shared: bool = True
    selector: str = ""
    """Empty: none."""
    no_local: bool = False
    account: str = ""
    """Its owner; empty: built in."""
    idle_since: int = 0
    """As the last checkpoint knew it, in ms; 0: it had a consumer then. Told at recovery only."""
    pattern: str = ""
    """Of a wildcard subscription, whose destination is 0: an address of topics with wildcards. Others of this client and name are its members."""


@dataclass(slots=True)
class SubscriptionDestroyed:
    subscription: int


@dataclass(slots=True)
class SegmentClosed:
    """The catalogue learns where a segment ended: `lanes` maps (destination, lane) to its (first, last) position therein."""

    segment: int
    last_sequence: int
    lanes: dict[tuple[int, int], tuple[int, int]]


@dataclass(slots=True)
class AliasDefined:
    """Insert or replace: see engine.aliases.Alias."""

    address: str
    target: str
    default_reliability: str
    maximum_reliability: str
    reliability_override: bool


@dataclass(slots=True)
class AliasDeleted:
    address: str


@dataclass(slots=True)
class PolicyDefined:
    """Insert or replace: settings of what matches the pattern, an address of queues or topics, when it is created (engine.policy)."""

    pattern: str
    settings: dict[str, Any]


@dataclass(slots=True)
class PolicyDropped:
    pattern: str


@dataclass(slots=True)
class UndoKept:
    """What this commit's purge may give back (R14); of an operation, which has several commits, what this one adds. Insert, or replace all but `ranges`,
    which are added. Instants in ms."""

    undo: int
    """The request that asked for the purge, or for the operation."""
    verb: str
    address: str
    destination: int
    at: int
    lapses_at: int
    """0: the operation goes on."""
    swept: int
    messages: int
    """In all, as `octets`."""
    octets: int
    ranges: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, first, last, mark): records.NEVER, or how many times each has failed. At recovery: all of them."""


class UndoEnd(Enum):
    """Why a purge cannot be undone any more."""

    UNDONE = "undone"
    LAPSED = "lapsed"
    """Its time is over."""
    SPACE = "disk space is low"
    SCATTERED = "too scattered"
    """The messages lie among others that stay: it would take too much memory to know them."""
    CROWDED = "too many later ones"
    DESTROYED = "its destination was destroyed"
    GIVEN_UP = "given up"
    """An operator wants the disk back."""


@dataclass(slots=True)
class UndoEnded:
    undo: int
    how: UndoEnd


Definition = (
    DestinationDefined | DestinationDestroyed | SubscriptionDefined | SubscriptionDestroyed | SegmentClosed
    | AliasDefined | AliasDeleted | PolicyDefined | PolicyDropped | UndoKept | UndoEnded
)  # fmt: skip
