"""What the engine asks of the store: pages and rows, each answered by one PageLoaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .subscription import Filter

RETAINED = 0
"""Segments are numbered from 1; 0 names the retained table."""


@dataclass(slots=True)
class PageWanted:
    """Rows of one lane in (after, upto], at most `limit` rows or `bytes_max` octets (at least one row)."""

    read: int
    destination: int
    lane: int
    after: int
    upto: int
    limit: int
    bytes_max: int
    segments: list[int]
    """Where rows of the interval may be, oldest first, RETAINED among them if so; the engine keeps them from being dropped meanwhile."""
    wanted: Filter | None = None
    """Given: bodies are not needed and do not weigh; rows that this filter certainly leaves out may be missing."""


@dataclass(slots=True)
class PositionsWanted:
    """Exactly these rows of one lane: messages that came back and whose bodies are no longer in memory."""

    read: int
    destination: int
    lane: int
    positions: list[int]
    segments: list[int]


@dataclass(slots=True)
class ExpiredWanted:
    """Messages of any destination with expiration in (after, upto], by (expiration, sequence), at most `limit` rows. Stored ones come without bodies, and
    without the header sections that hold no wish (see wishes); spilled ones whole, as their rows are not copied by the store. What comes weighs
    `bytes_max` octets at most (at least one row)."""

    read: int
    after: tuple[int, int]
    """(expiration, sequence) of the last row seen."""
    upto: int
    limit: int
    segments: list[int]
    bytes_max: int
    sections: bool = False
    """With all header sections, of stored ones, too."""


@dataclass(slots=True)
class ScheduledWanted:
    """Delayed messages with a key after `after` that are due by `upto`, in order, at most `limit` rows or `bytes_max` octets (at least one row)."""

    read: int
    after: tuple[int, int]
    """(due, number)"""
    upto: int
    limit: int
    bytes_max: int


Read = PageWanted | PositionsWanted | ExpiredWanted | ScheduledWanted
