"""What is made durable: what one commit says, and the checkpoints of what all of them amount to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .definitions import Definition
from .message import Message
from .outcome import Outcome


@dataclass(slots=True)
class Copy:
    """Copy one stored message inside the database (R15): the body never passes through Python."""

    segment: int
    """Where the source row is; RETAINED: in the retained table."""
    source: tuple[int, int, int]
    """(destination, lane, position)"""
    target: Message
    """Its header tells priority, reliability, expiration, message id and annotations of the copy; octets and body come from the source."""
    cut: bool = False
    """The copy has no body; its size is the target's."""


@dataclass(slots=True)
class BulkCopy:
    """Copy messages of one lane to neighbouring places at the end of another, inside the database (R15): none of their octets passes through Python."""

    segment: int
    """Where the source rows are; RETAINED: in the retained table."""
    source: tuple[int, int]
    """(destination, lane)"""
    positions: list[int]
    """Of the sources, ascending."""
    destination: int
    lane: int
    sequence: int
    """Of the first copy, as `position`; the others follow."""
    position: int
    accepted_at: int
    octets: int
    """Of all of them."""
    identifier: str
    """What a copy is known by if its source had no identifier of its own: this, and the source's sequence."""
    expirations: list[int] | None = None
    """None: the sources'."""
    annotations: list[str] | None = None
    """None: the sources'."""


class OperationState(Enum):
    WAITING = "waiting"
    """For others to end."""
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    """It cannot go on: its queue was destroyed, or where it moves to."""


@dataclass(slots=True)
class OperationRow:
    """An operation as the store keeps it. Instants in ms."""

    operation: int
    """The request that asked for it."""
    verb: str
    address: str
    arguments: dict[str, Any]
    state: OperationState
    looked_at: int
    done: int
    skipped: int
    """Left alone: with a consumer, reserved by a transaction, or about to expire."""
    failed: int
    """Left where they were, as they could not be dealt with: `error` tells of the first."""
    total: int | None
    """How many it may come to; None: nobody knows."""
    place: dict[str, Any]
    """Where it goes on: what lanes are left, with their ends, and a position in the first."""
    started_at: int
    ended_at: int | None
    error: str
    results: list[Any] = field(default_factory=list)
    """What became of single messages: [done, skipped or failed; why; [[lane, position], ...]]. Of those that were named: of each that was there; else of the
    first that failed."""


@dataclass(slots=True)
class PreparedBranch:
    """What must outlive the node of a branch that is prepared (R13). `state` is engine.branch.State; of one that was ended by hand only that is left."""

    branch: int
    xid: str
    account: str
    prepared_at: int
    state: int
    octets: int = 0
    """Of the sends, large bodies included."""
    sends: list[tuple[str, Message]] = field(default_factory=list)
    """(address, message), in order: `accepted_at` is when it was sent. Best effort is not among them."""
    settled: list[tuple[int, Outcome, Message]] = field(default_factory=list)
    """(subscription, outcome, message), in order: of durable subscriptions and stored messages. The rows' headers are kept, not their bodies."""


@dataclass(slots=True)
class Commit:
    """What one transaction makes durable: message rows and one ledger row (R1). Ranges are inclusive."""

    number: int
    at: int
    """Engine time, ms."""
    sequence: int
    """The highest sequence given out so far: the durable high-water mark."""
    synchronous: bool
    """True: confirmed only when on disk (R10)."""
    segment: int
    """The segment that takes `messages`, `copies` alike."""
    messages: list[Message] = field(default_factory=list)
    accepted: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(destination, lane, first, last)"""
    offered: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, first, last, link): deliveries leaving after this commit; the highest `last` is the offered mark (R9)."""
    settled: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, first, last, outcome)"""
    scheduled: list[Message] = field(default_factory=list)
    """Delayed messages: `sequence` numbers them in the schedule, `accepted_at` is when they are due (R3)."""
    due: list[int] = field(default_factory=list)
    """Numbers in the schedule that this commit makes visible: their rows go."""
    taken: list[int] = field(default_factory=list)
    """Entries of the inbox whose messages this commit takes over: their rows go. If one is gone already nothing of the commit may be done."""
    failures: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, position, failures)"""
    spilled: list[Message] = field(default_factory=list)
    """Volatile messages that found no room in memory: to the segment's UNLOGGED twin (R19)."""
    octets: list[tuple[int, int, int]] = field(default_factory=list)
    """(destination, change of the octets its unsettled messages hold, octets of those that came): the difference has left. Of a topic each counts once a
    durable subscription; what a purge that is undone gives back has come."""
    blocked: list[tuple[int, int, int]] = field(default_factory=list)
    """(destination, since, until): in ms, when its producers waited for room, as far as no commit has said so yet."""
    copies: list[Copy] = field(default_factory=list)
    bulk_copies: list[BulkCopy] = field(default_factory=list)
    traces: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    """(destination, lane, first, last, to, lane there, first position there): what died without a Copy. To destination 0: nothing is kept of it. From a
    volatile lane: its row is among `messages`; from destination 0: it never lay anywhere. Copies tell for themselves."""
    operations: list[OperationRow] = field(default_factory=list)
    """Insert or replace."""
    remembered: list[tuple[int, list[str]]] = field(default_factory=list)
    """(destination, identifiers): of messages in `messages` and `scheduled`, so that they are known when they are sent again."""
    prepared: list[PreparedBranch] = field(default_factory=list)
    resolved: list[tuple[int, int]] = field(default_factory=list)
    """(branch, state): what was prepared for it goes; the row stays if the state is a heuristic one, 0: it goes, too. Perhaps one of `prepared`."""
    definitions: list[Definition] = field(default_factory=list)
    answers: list[tuple[int, bool, dict[str, Any]]] = field(default_factory=list)
    """(request, done, result)"""


@dataclass(slots=True)
class Checkpoint:
    """The state that the ledger up to commit `number` amounts to, as far as it changed since the last checkpoint (R1)."""

    number: int
    at: int
    sequence: int
    lanes: list[tuple[int, int, int]] = field(default_factory=list)
    """(destination, lane, tail): tail is the next position."""
    cursors: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, floor, offered): everything below floor is settled; nothing above offered ever left but what `blocks` names. With a topic's
    number, negative, for the subscription: what has expired in the lane for any, and is in the dead message queue already. `blocks` likewise."""
    blocks: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    """(subscription, lane, block, bits): BLOCK bits, little endian, of the positions settled above the floor; empty bits: delete the row. With LANES added to
    the lane: of the positions beyond `offered` that may have left all the same."""
    failures: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(subscription, lane, position, failures); 0 failures: delete the row."""
    counters: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    """(destination, octets, accepted, settled, dead, expired, redelivered): octets held now, and totals since creation."""
    idle: list[tuple[int, int]] = field(default_factory=list)
    """(subscription, instant): when the last consumer of a durable one left; 0: it has one."""
