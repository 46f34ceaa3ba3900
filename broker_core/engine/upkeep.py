"""Steps that the store takes between commits, as maintenance.py decides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class DropSegment:
    segment: int


@dataclass(slots=True)
class FreezeSegment:
    """A closed segment that stays: make it cheap to read, now, while its pages are in memory."""

    segment: int


@dataclass(slots=True)
class CompactSegment:
    """Copy the survivors, ranges of (destination, lane, first, last), to `retained`, then answer SegmentCompacted (R5)."""

    segment: int
    survivors: list[tuple[int, int, int, int]]
    measured: bool = False
    """An operator wants to know what it came to on disk."""


@dataclass(slots=True)
class SweepRetained:
    """Delete these settled rows, ranges of (destination, lane, first, last), from `retained`."""

    settled: list[tuple[int, int, int, int]]


@dataclass(slots=True)
class DiscardScheduled:
    """Delete all delayed messages of this destination, which is no more."""

    destination: int


@dataclass(slots=True)
class TrimDuplicates:
    """Delete identifiers that nobody remembers: (destination, instant), those of commits before that instant."""

    before: list[tuple[int, int]]


Maintenance = DropSegment | FreezeSegment | CompactSegment | SweepRetained | DiscardScheduled | TrimDuplicates
