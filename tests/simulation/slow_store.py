"""The memory store behind a network: every call takes time before and after its effect, so that calls overtake each other and a kill may
fall on either side."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from random import Random

from broker_core.engine.commands import TakeOver
from broker_core.engine.message import Message
from broker_core.engine.reads import ExpiredWanted, PageWanted, PositionsWanted, Read, ScheduledWanted
from broker_core.engine.recovered import Recovered
from broker_core.engine.upkeep import CompactSegment, SweepRetained, TrimDuplicates
from broker_core.engine.writes import Checkpoint, Commit
from broker_core.store import CommitLost, ControlRequest
from broker_core.store.memory import MemoryStore

INBOX_ROWS = 6
"""Of the inbox at a time: less than some transactions send."""
FAST = 0.002
SLOW = 0.060
KINDS = {PageWanted: "pages", PositionsWanted: "bodies read again", ExpiredWanted: "expiry sweeps", ScheduledWanted: "schedule read"}


class SlowStore:
    def __init__(self, inner: MemoryStore, random: Random, slow_in: int, counts: Counter[str]) -> None:
        """One read in so many is slow: many answers to others pass meanwhile."""
        self._inner, self._random, self._slow_in, self.counts = inner, random, slow_in, counts
        self.dead = False
        """The node was killed: nothing of it reaches the database any more."""
        self.calm = False
        self._checkpointing = False

    async def _pass(self, slow: bool = False) -> None:
        await asyncio.sleep(self._random.random() * (SLOW if slow and not self.calm else FAST))
        if self.dead:
            await asyncio.get_running_loop().create_future()

    def _is_slow(self) -> bool:
        return self._random.randrange(self._slow_in) == 0

    async def recover(self) -> Recovered:
        await self._pass()
        return await self._inner.recover()

    async def commit(self, commit: Commit, on_sent: Callable[[], None] = lambda: None) -> None:
        await self._pass()
        on_sent()
        await self._pass()
        try:
            await self._inner.commit(commit)
        except CommitLost:
            self.counts["commits lost that took from the inbox"] += bool(commit.taken)
            raise
        self._count(commit)
        await self._pass()

    def _count(self, commit: Commit) -> None:
        counts = self.counts
        counts["commits"] += 1
        counts["spilled"] += len(commit.spilled)
        counts["dead copies"] += len(commit.copies)
        counts["failures"] += len(commit.failures)
        counts["scheduled"] += len(commit.scheduled)
        counts["due"] += len(commit.due)
        counts["delayed in a message group"] += sum(1 for message in commit.scheduled if message.header.group is not None)
        for settled in commit.settled:
            counts[f"settled {settled[4].name}"] += settled[3] - settled[2] + 1  # type: ignore[attr-defined]

    async def checkpoint(self, checkpoint: Checkpoint) -> None:
        assert not self._checkpointing, "a checkpoint was begun before the one before it was written"
        self._checkpointing = True
        try:
            await self._pass(self._is_slow())
            await self._inner.checkpoint(checkpoint)
            self.counts["checkpoints"] += 1
            await self._pass()
        finally:
            self._checkpointing = False

    async def read(self, read: Read) -> tuple[list[Message], bool]:
        slow = self._is_slow()
        await self._pass(slow)
        found = await self._inner.read(read)
        if isinstance(read, ExpiredWanted):
            self.counts["spilled and found by a sweep"] += sum(message.body is not None for message in found[0])
        self.counts["scans" if isinstance(read, PageWanted) and read.wanted is not None else KINDS[type(read)]] += 1
        await self._pass(slow)
        return found

    async def inbox(self, limit: int, bytes_max: int) -> list[TakeOver]:
        slow = self._is_slow()
        await self._pass(slow)
        found = await self._inner.inbox(min(limit, INBOX_ROWS), bytes_max)
        await self._pass(slow)
        return found

    async def write_body(self, chunks: AsyncIterator[bytes]) -> int:
        number = await self._inner.write_body(chunks)
        self.counts["large bodies"] += 1
        await self._pass()
        return number

    async def read_body(self, body: int) -> AsyncIterator[bytes]:
        async for octets in self._inner.read_body(body):
            await self._pass()
            yield octets

    async def discard_bodies(self, bodies: Sequence[int]) -> None:
        await self._pass()
        await self._inner.discard_bodies(bodies)

    async def drop_segment(self, segment: int) -> bool:
        await self._pass(self._is_slow())
        dropped = await self._inner.drop_segment(segment)
        self.counts["segments dropped"] += dropped
        await self._pass(self._is_slow())
        return dropped

    async def freeze_segment(self, segment: int) -> None:
        await self._pass(self._is_slow())
        await self._inner.freeze_segment(segment)
        self.counts["segments frozen"] += 1
        await self._pass()

    async def compact_segment(self, compact: CompactSegment) -> None:
        await self._pass(self._is_slow())
        await self._inner.compact_segment(compact)
        self.counts["segments compacted"] += 1
        await self._pass(self._is_slow())

    async def segment_octets(self, segment: int) -> int:
        await self._pass()
        return await self._inner.segment_octets(segment)

    async def sweep_retained(self, sweep: SweepRetained) -> None:
        await self._pass(self._is_slow())
        self._count_between(sweep)
        await self._inner.sweep_retained(sweep)
        self.counts["retained sweeps"] += 1
        await self._pass()

    def _count_between(self, sweep: SweepRetained) -> None:
        kept = self._inner._tables.retained
        for destination, lane, first, last in sweep.settled:
            here = [position for d, index, position in kept if (d, index) == (destination, lane)]
            between = min(here, default=first) < first
            self.counts["retained rows swept behind unsettled ones"] += between and any(first <= position <= last for position in here)

    async def discard_scheduled(self, destination: int) -> None:
        await self._pass(self._is_slow())
        await self._inner.discard_scheduled(destination)
        self.counts["schedules discarded"] += 1
        await self._pass()

    async def trim_duplicates(self, trim: TrimDuplicates) -> None:
        await self._pass(self._is_slow())
        before = len(self._inner._tables.duplicates)
        await self._inner.trim_duplicates(trim)
        self.counts["names deleted"] += before - len(self._inner._tables.duplicates)
        await self._pass()

    async def trim_ledger(self, before: int, octets_max: int) -> int:
        await self._pass()
        return await self._inner.trim_ledger(before, octets_max)

    async def control_requests(self) -> list[ControlRequest]:
        await self._pass()
        return await self._inner.control_requests()

    async def close(self) -> None:
        await self._inner.close()
