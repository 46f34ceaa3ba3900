"""The tables of the memory store: dicts and lists whose changes can be taken back, as those of a database that crashed before its log was on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from broker_core.engine.commands import TakeOver
from broker_core.engine.definitions import AliasDefined, DestinationDefined, PolicyDefined, SegmentClosed, SubscriptionDefined, UndoEnd, UndoKept
from broker_core.engine.message import VOLATILE, Header, StoredBody
from broker_core.engine.recovered import LedgerRow
from broker_core.engine.writes import OperationRow

from .memory_prepared import KeptBranch

Lane = tuple[int, int]
Value = TypeVar("Value")


class Fault(Enum):
    """What may happen to a call. A chooser is asked before each."""

    NONE = "it works"
    LOST = "nothing is done, and the caller is told CommitLost"
    KEPT = "it is done, and the caller is told CommitLost all the same"
    CRASH = "the database crashes: nothing is done, and what was committed without waiting for the disk since the last flush is gone, too"
    FULL = "there is no room: nothing is done"
    LOCKED = "a lock stands in the way of a drop"
    CUT = "a page ends after its first row"


Chooser = Callable[[str], Fault]
"""Given the method's name, chooses a fault. A simulator's is seeded."""


@dataclass(slots=True, frozen=True)
class Row:
    """A message as a segment keeps it."""

    header: Header
    body: bytes | StoredBody
    size: int
    destination: int
    sequence: int
    position: int
    accepted_at: int


@dataclass(slots=True)
class Segment:
    """A message table: rows by (destination, lane), in order of position; the volatile lanes are its twin."""

    segment: int
    lanes: dict[Lane, list[Row]] = field(default_factory=dict)
    closed: SegmentClosed | None = None
    compacting: bool = False
    compacted: bool = False


@dataclass(slots=True)
class Request:
    request: int
    verb: str
    address: str
    arguments: dict[str, Any]
    deadline: int
    answer: tuple[bool, dict[str, Any]] | None = None


class Journal:
    """How to undo what is not on disk yet, newest last."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def put(self, table: dict[Any, Value], key: Any, value: Value) -> None:
        if key in table:
            before = table[key]
            self._undo.append(lambda: table.__setitem__(key, before))
        else:
            self._undo.append(lambda: table.pop(key))
        table[key] = value

    def remove(self, table: dict[Any, Any], key: Any) -> None:
        if key in table:
            before = table.pop(key)
            self._undo.append(lambda: table.__setitem__(key, before))

    def append(self, rows: list[Value], value: Value) -> None:
        self.insert(rows, len(rows), value)

    def insert(self, rows: list[Value], place: int, value: Value) -> None:
        rows.insert(place, value)
        self._undo.append(lambda: rows.pop(place))

    def change(self, thing: object, name: str, value: object) -> None:
        before = getattr(thing, name)
        self._undo.append(lambda: setattr(thing, name, before))
        setattr(thing, name, value)

    def flush(self) -> None:
        """All of it is on disk."""
        self._undo.clear()

    def mark(self) -> int:
        return len(self._undo)

    def undo(self, mark: int = 0) -> None:
        """Take back what was done since `mark`."""
        while len(self._undo) > mark:
            self._undo.pop()()


class Tables:
    """All that outlives a node."""

    def __init__(self) -> None:
        self.segments: dict[int, Segment] = {}
        self.highest_segment = 0
        self.retained: dict[tuple[int, int, int], tuple[int, Row]] = {}
        """(destination, lane, position) -> (the segment it came from, row)."""
        self.scheduled: dict[int, Row] = {}
        """By number: `sequence`; `accepted_at` is when it is due."""
        self.scheduled_volatile: dict[int, None] = {}
        """Those of them that do not survive their node."""
        self.inbox: dict[int, TakeOver] = {}
        """By entry."""
        self.last_entry = 0
        self.prepared: dict[int, KeptBranch] = {}
        """By number, in order."""
        self.operations: dict[int, OperationRow] = {}
        self.undo: dict[int, UndoKept] = {}
        """What may be undone."""
        self.undo_ended: dict[int, UndoEnd] = {}
        self.duplicates: dict[tuple[int, int, int], list[str]] = {}
        """(destination, instant, commit) -> identifiers."""
        self.ledger: list[LedgerRow] = []
        self.number = self.at = self.sequence = 0
        self.lanes: dict[Lane, int] = {}
        self.cursors: dict[Lane, tuple[int, int]] = {}
        self.blocks: dict[tuple[int, int, int], bytes] = {}
        self.failures: dict[tuple[int, int, int], int] = {}
        self.counters: dict[int, tuple[int, ...]] = {}
        self.destinations: dict[int, DestinationDefined] = {}
        self.aliases: dict[str, AliasDefined] = {}
        self.policies: dict[str, PolicyDefined] = {}
        self.subscriptions: dict[int, SubscriptionDefined] = {}
        self.last_destination = self.last_subscription = 0
        self.bodies: dict[int, tuple[int, list[bytes]]] = {}
        """Number -> (epoch it was written in, chunks)."""
        self.last_body = 0
        self.requests: dict[int, Request] = {}
        self.last_request = 0

    def rows(self) -> Iterator[Row]:
        """All that is stored, wherever."""
        for segment in self.segments.values():
            for rows in segment.lanes.values():
                yield from rows
        for _, row in self.retained.values():
            yield row
        yield from self.scheduled.values()

    def named_bodies(self) -> set[int]:
        """Bodies that some row names. Rows of spilled messages do not count: their bodies are the engine's affair."""
        sent = [arrival.message.body for arrival in self.inbox.values()]
        stored = [row.body for row in self.rows() if row.header.lane < VOLATILE]
        named = {body.body for body in [*sent, *stored, *(row.body for row in self.scheduled.values())] if isinstance(body, StoredBody)}
        return named.union(*[branch.named_bodies() for branch in self.prepared.values()])
