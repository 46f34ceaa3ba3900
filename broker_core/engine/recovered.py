"""What the store found at recovery: the last checkpoint, the ledger after it, and the definitions. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from .definitions import AliasDefined, DestinationDefined, PolicyDefined, SegmentClosed, SubscriptionDefined, UndoKept
from .writes import Checkpoint, OperationRow, PreparedBranch


@dataclass(slots=True)
class LedgerRow:
    """What one commit after the checkpoint changed; the same columns as Commit."""

    number: int
    at: int
    sequence: int
    segment: int
    accepted: list[tuple[int, int, int, int]]
    offered: list[tuple[int, int, int, int, int]]
    settled: list[tuple[int, int, int, int, int]]
    failures: list[tuple[int, int, int, int]]
    octets: list[tuple[int, int, int | None]] = field(default_factory=list)
    """(destination, change, octets that came). None: the row is older than that is told. Recovery needs the change only."""
    traced: list[tuple[int, int, int, int, int, int, int, int]] = field(default_factory=list)
    """(destination, lane, first, last, kind, to, lane there, first position there): what came of what died or was moved. Recovery needs nothing of this,
    nor of what follows."""
    begun: list[tuple[int, int]] = field(default_factory=list)
    """(subscription, destination): durable ones that were defined."""
    ended: list[tuple[int, int]] = field(default_factory=list)
    """(subscription, 0), or (0, destination): all of its."""
    blocked: list[tuple[int, int, int]] = field(default_factory=list)
    """(destination, since, until)"""


@dataclass(slots=True)
class Recovered:
    """Everything the engine needs to go on where the last durable commit left off: the last checkpoint and the ledger after it."""

    epoch: int
    """The lease's term, raised at this acquisition."""
    clock_ms: int
    """The database's clock at acquisition (R12)."""
    checkpoint: Checkpoint
    """All lanes, cursors, blocks and failures, not only changed ones."""
    ledger: list[LedgerRow] = field(default_factory=list)
    destinations: list[DestinationDefined] = field(default_factory=list)
    subscriptions: list[SubscriptionDefined] = field(default_factory=list)
    aliases: list[AliasDefined] = field(default_factory=list)
    policies: list[PolicyDefined] = field(default_factory=list)
    segments: list[SegmentClosed] = field(default_factory=list)
    """Closed segments that still exist, oldest first."""
    open_segment: int = 1
    open_lanes: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(destination, lane) -> (first, last) position in the open segment."""
    open_rows: int = 0
    open_octets: int = 0
    last_destination: int = 0
    """The highest destination number ever given out, destroyed ones included: numbers are never used again."""
    last_subscription: int = 0
    instance: str = "surety"
    """Names this installation in message ids; the same for ever."""
    scheduled: list[tuple[int, int, int]] = field(default_factory=list)
    """(destination, count, octets) of delayed messages, those of destroyed destinations included."""
    duplicates: list[tuple[int, list[int], list[str]]] = field(default_factory=list)
    """(destination, instants, identifiers), destroyed ones included: all that commits remembered, oldest first, and when each was."""
    prepared: list[PreparedBranch] = field(default_factory=list)
    """Branches that are prepared or were ended by hand, in the order of their numbers."""
    operations: list[OperationRow] = field(default_factory=list)
    """Those that wait or run, in the order of their numbers."""
    undo: list[UndoKept] = field(default_factory=list)
    """Purges that may be undone, in the order of their numbers."""
    retained: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(destination, lane) -> (lowest, highest) position in the retained table."""
