"""The store: durable truth behind a narrow port. `postgres` is the real one, `memory` its twin for tests and simulation;
tests/store/contract.py holds both to the same promises.

The store knows nothing of delivery: it keeps what commits say, returns rows of intervals, and tells at recovery what it kept.
Every method is async. Methods may raise:

    CommitLost      it is not known whether the commit is durable, or another node has the lease: forget everything and recover
    SpaceExhausted  the disk is full; nothing was written; the same commit may be tried again (R21)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from broker_core.engine.commands import TakeOver
from broker_core.engine.message import Message
from broker_core.engine.progress import BLOCK
from broker_core.engine.reads import Read
from broker_core.engine.recovered import LedgerRow, Recovered
from broker_core.engine.upkeep import CompactSegment, SweepRetained, TrimDuplicates
from broker_core.engine.writes import Checkpoint, Commit

__all__ = ["BLOCK", "BodyMissing", "CommitLost", "ControlRequest", "LedgerRow", "Recovered", "SegmentMissing", "SpaceExhausted", "Store"]


class CommitLost(Exception):
    """It is not known whether the commit is durable. The node must forget everything and recover under a new epoch."""


class SpaceExhausted(Exception):
    """The database has no room for this commit; nothing was written. Try the same commit again when there is room."""


class SegmentMissing(Exception):
    """A read named a segment that is gone: a bug of the engine, which must keep a segment it reads from being dropped (R7)."""


class BodyMissing(Exception):
    """A large body, or a chunk of it, is not there: its message was settled and dropped meanwhile."""


@dataclass(slots=True)
class ControlRequest:
    """A row of control_request that no node has answered yet."""

    request: int
    verb: str
    address: str
    arguments: dict[str, Any]
    deadline: int


class Store(Protocol):
    """One shard's durable state. All calls but the reads come from the node that holds the lease."""

    async def recover(self) -> Recovered:
        """Acquire nothing (the lease is held already); clear what is volatile; return the state. Idempotent."""

    async def commit(self, commit: Commit, on_sent: Callable[[], None] = lambda: None) -> None:
        """Make one commit durable, in the order of calls. Raises CommitLost, SpaceExhausted.

        `on_sent` is called when all is handed over and only the answer is awaited: the caller may turn to other work."""

    async def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Replace what changed. Only called when commit `checkpoint.number` is known durable; refused under an old epoch (CommitLost)."""

    async def read(self, read: Read) -> tuple[list[Message], bool]:
        """The rows of a Read, in order; and whether they are all of them (False: cut by a limit). Raises SegmentMissing."""

    async def inbox(self, limit: int, bytes_max: int) -> list[TakeOver]:
        """The first rows of the inbox, at most so many or of so many octets (at least one row). They stay until a commit has `taken` them; who asks again
        before gets them again."""

    async def write_body(self, chunks: AsyncIterator[bytes]) -> int:
        """Keep a large body, chunk by chunk (R16); its number. Orphans (never named by a commit) are swept."""

    def read_body(self, body: int) -> AsyncIterator[bytes]:
        """The chunks of a large body, in order. Raises BodyMissing."""

    async def discard_bodies(self, bodies: Sequence[int]) -> None:
        """Delete large bodies that no commit named nor ever will: of refused sends and of volatile messages that are settled."""

    async def drop_segment(self, segment: int) -> bool:
        """Drop a closed segment and its twin; False if a lock stood in the way (try again later, R4)."""

    async def freeze_segment(self, segment: int) -> None:
        """Make a closed segment that stays cheap to read. Nothing else changes."""

    async def compact_segment(self, compact: CompactSegment) -> None:
        """Copy survivors to the retained table in bounded steps and durably mark the segment as compacted (R5)."""

    async def segment_octets(self, segment: int) -> int:
        """That it takes on disk, or what is retained does (RETAINED); 0: there is no such segment."""

    async def sweep_retained(self, sweep: SweepRetained) -> None:
        """Delete settled rows from the retained table."""

    async def discard_scheduled(self, destination: int) -> None:
        """Delete the delayed messages of a destination that is no more, in bounded steps."""

    async def trim_duplicates(self, trim: TrimDuplicates) -> None:
        """Delete identifiers that nobody remembers, in bounded steps."""

    async def trim_ledger(self, before: int, octets_max: int) -> int:
        """Drop ledger segments whose last commit is older than `before` (ms) and read by all, and what exceeds `octets_max` even if it leaves a gap
        (R26). How many went."""

    async def control_requests(self) -> list[ControlRequest]:
        """Requests of operators and of the scheduler that wait for an answer, oldest first."""

    async def close(self) -> None: ...
