"""Free-standing message and ledger tables (R4): made ahead of need, dropped when a lock allows, never inside a group commit.

Works on a connection of its own, with a lock_timeout of 100 ms: whoever holds a lock on an old segment (pg_dump, a reader) makes us try again later
and nobody queue behind us.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection

from broker_core.engine.definitions import SegmentClosed
from broker_core.engine.reads import RETAINED
from broker_core.engine.writes import Commit

from . import CommitLost, SegmentMissing, archive
from .bodies import remove_bodies
from .fence import Fence
from .ledger import create_table as create_ledger_table
from .queries import QUERIES

AHEAD = 2
"""Segments kept ready beyond the one in use: at 250,000 rows and 60,000 rows/s each lasts 4 s, and a creation takes 10 ms."""

_COLUMNS = (
    "sequence int8 NOT NULL, position int8 NOT NULL, accepted_at int8 NOT NULL, expiration int8 NOT NULL, destination int4 NOT NULL, size int4 NOT NULL, "
    "priority int2 NOT NULL, reliability int2 NOT NULL, encoding int2 NOT NULL, routed int4, stored_body int8, "
    "message_id text, client_id text, annotations text, headers bytea NOT NULL, body bytea"
)
"""Wide before narrow, fixed before variable: no padding on disk."""


def message_table(shard: int, segment: int) -> str:
    return f"surety.message_{shard}_{segment}"


def spill_table(shard: int, segment: int) -> str:
    return f"surety.spill_{shard}_{segment}"


def _create(table: str, unlogged: bool) -> str:
    kind = "UNLOGGED TABLE" if unlogged else "TABLE"
    return (
        f"CREATE {kind} {table} ({_COLUMNS}) WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off); "
        f"ALTER TABLE {table} ALTER headers SET STORAGE external, ALTER body SET STORAGE external; "
        f"CREATE INDEX ON {table} (destination, priority, position); "
        f"CREATE INDEX ON {table} (expiration, sequence) WHERE expiration > 0"
    )


@dataclass(slots=True)
class Segment:
    """A line of the catalogue."""

    segment: int
    spill: bool = False
    compacting: bool = False
    compacted: bool = False
    closed: SegmentClosed | None = None
    archived: bool = False
    """What is to outlive it is in the archive."""


class Segments:
    """The catalogue in memory, and the only code that creates or drops a message or ledger table."""

    def __init__(self, connection: AsyncConnection[Any], fence: Fence) -> None:
        self._connection, self._fence, self._shard = connection, fence, fence.shard
        self.turn = asyncio.Lock()
        """One transaction at a time on the connection, whosever it is."""
        self.known: dict[int, Segment] = {}
        self.ledgers: list[int] = []
        self.ledger_in_use = 1
        """What the group commit appends to; older tables are complete."""
        self.archive_octets_max = archive.OCTETS_MAX
        self._highest = 0
        self._left: set[int] = set()
        self._creating: set[asyncio.Task[None]] = set()

    async def load(self) -> None:
        """Read the catalogue, as whoever held the lease before left it."""
        keys = {"shard": self._shard}
        self.known = {}
        for row in await (await self._connection.execute(QUERIES["segments"], keys)).fetchall():
            segment, spill, last_sequence, destinations, lanes, firsts, lasts, compacting, compacted = row
            closed = None
            if last_sequence is not None:
                ranges = zip(destinations, lanes, firsts, lasts, strict=True)
                closed = SegmentClosed(segment, last_sequence, {(d, lane): (first, last) for d, lane, first, last in ranges})
            self.known[segment] = Segment(segment, spill, compacting, compacted, closed)
        self._highest = max(self.known, default=0)
        self._left = {segment.segment for segment in self.known.values() if segment.compacted}
        self.ledgers = [segment for segment, _ in await (await self._connection.execute(QUERIES["ledger_segments"], keys)).fetchall()]

    async def ensure(self, segment: int, spill: bool = False) -> None:
        """Return when the segment (and its twin) can be written."""
        async with self.turn:
            if segment not in self.known:
                await self._run(_create(message_table(self._shard, segment), False), "segment_add", segment)
                self.known[segment] = Segment(segment)
                self._highest = max(self._highest, segment)
            if spill and not self.known[segment].spill:
                await self._run(_create(spill_table(self._shard, segment), True), "segment_add_spill", segment)
                self.known[segment].spill = True

    async def ensure_ledger(self, segment: int) -> None:
        async with self.turn:
            if segment not in self.ledgers:
                await self._run(create_ledger_table(self._shard, segment), "ledger_segment_add", segment)
                self.ledgers.append(segment)

    def prepare(self, segment: int, ledger: int) -> None:
        """See to it, in the background, that the segments after these exist. What fails here is tried again, and reported, by `ensure`."""
        self.ledger_in_use = ledger
        if self._creating:
            return
        if all(segment + ahead in self.known for ahead in range(1, AHEAD + 1)) and ledger + 1 in self.ledgers:
            return
        task = asyncio.create_task(self._prepare(segment, ledger), name="segments ahead")
        self._creating.add(task)
        task.add_done_callback(self._creating.discard)

    async def _prepare(self, segment: int, ledger: int) -> None:
        try:
            for ahead in range(1, AHEAD + 1):
                await self.ensure(segment + ahead)
            await self.ensure_ledger(ledger + 1)
        except (psycopg.Error, CommitLost):
            return

    async def drop(self, segment: int) -> bool:
        """Drop a segment and its twin, when what is archived is kept; False if a lock stands in the way."""
        await self._archive(segment)
        async with self.turn:
            known = self.known.get(segment)
            if known is None:
                return True
            tables = message_table(self._shard, segment) + (", " + spill_table(self._shard, segment) if known.spill else "")
            try:
                await self._run(f"DROP TABLE {tables}", "segment_remove", segment, self._release_bodies)
            except psycopg.errors.LockNotAvailable:
                return False
            del self.known[segment]
            return True

    async def _archive(self, segment: int) -> None:
        known = self.known.get(segment)
        if known is None or known.archived:
            return
        async with self.turn:
            wanted = await archive.wanted(self._connection, self._shard)
            full = bool(wanted) and await archive.is_full(self._connection, self._shard, self.archive_octets_max)
        for destination, read in wanted:
            full = full or not await self._copy(segment, destination, read)
            if full:
                async with self.turn:
                    await archive.tell_gap(self._connection, self._fence, segment, destination, read)
        known.archived = True

    async def _copy(self, segment: int, destination: int, read: int) -> bool:
        """False: there is no room on the disk, and there will be more when the table is gone (R21)."""
        after: tuple[int, int] | None = (-1, -1)
        while after is not None:
            try:
                async with self.turn:
                    after = await archive.copy_step(self._connection, self._fence, segment, destination, read, after)
            except psycopg.errors.DiskFull:
                return False
        return True

    async def freeze(self, segment: int) -> None:
        """What PostgreSQL leaves to whoever reads a row first, done at once: noting on its page that it is committed. Soon after the rows were
        written that is 0.3 us each; after the next checkpoint each page goes into the log whole, and a first search of two million took 12 s
        instead of 3. Not fenced: it changes nothing that anyone sees. A locked table stays as it is."""
        async with self.turn:
            if segment in self.known:
                table = message_table(self._shard, segment)
                options = "FREEZE, INDEX_CLEANUP off, TRUNCATE false, PROCESS_TOAST false, SKIP_LOCKED"
                await self._connection.execute(f"VACUUM ({options}) {table}".encode())

    async def clear_spill(self) -> None:
        """Drop all twins: what they held did not survive (R19). If somebody reads them (pg_dump, every table for hours), empty them: that needs no
        lock that readers have, and a node does not wait for a backup."""
        async with self.turn:
            twins = [segment for segment in self.known.values() if segment.spill]
            if not twins:
                return
            tables = [spill_table(self._shard, segment.segment) for segment in twins]
            try:
                await self._run(f"DROP TABLE {', '.join(tables)}", "segment_spill_cleared", 0)
            except psycopg.errors.LockNotAvailable:
                async with self._fence.transaction(self._connection):
                    await self._connection.execute("; ".join(f"DELETE FROM {table}" for table in tables).encode())
                return
            for segment in twins:
                segment.spill = False

    async def octets(self, segment: int) -> int:
        """On disk, with indexes and what is stored out of line."""
        tables = ["surety.retained"] if segment == RETAINED else [message_table(self._shard, segment), spill_table(self._shard, segment)]
        async with self.turn:
            statement = "SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)::int8 FROM unnest(%(tables)s::text[]) AS name"
            row = await (await self._connection.execute(statement, {"tables": tables})).fetchone()
        return int(row[0]) if row is not None else 0

    def follow(self, commit: Commit) -> None:
        """A durable commit: segments that it closed."""
        for definition in commit.definitions:
            if isinstance(definition, SegmentClosed):
                self.known[definition.segment].closed = definition

    def may_read(self, segment: int) -> bool:
        """False: it is not made yet, hence empty. Raises SegmentMissing if it is gone."""
        if segment in self.known:
            return True
        if segment <= self._highest:
            raise SegmentMissing(f"segment {segment} of shard {self._shard} is gone")
        return False

    async def close(self) -> None:
        for task in list(self._creating):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _release_bodies(self, segment: int) -> None:
        """Large bodies that only this segment's messages name go with it."""
        released = await self._connection.execute(QUERIES["bodies_released"], {"shard": self._shard, "segment": segment})
        await remove_bodies(self._connection, self._shard, [row[0] for row in await released.fetchall()])

    async def undo_compaction(self) -> None:
        """What an interrupted compaction copied: its segment is still there and speaks for itself."""
        async with self.turn:
            half = [segment.segment for segment in self.known.values() if segment.compacting]
            if half:
                async with self._fence.transaction(self._connection):
                    rows = await (await self._connection.execute(QUERIES["retained_uncompact"], {"shard": self._shard, "segments": half})).fetchall()
                    bodies = [body for (body,) in rows if body is not None]
                    if bodies:  # the segment's own references stay
                        await self._connection.execute(QUERIES["references_release"], {"shard": self._shard, "bodies": bodies})
                    await self._connection.execute(QUERIES["segments_uncompact"], {"shard": self._shard, "segments": half})
            for segment in half:
                self.known[segment].compacting = False

    async def drop_compacted(self) -> None:
        """Segments of former terms whose survivors are in the retained table; a locked one waits for the next call."""
        for segment in list(self._left):
            if await self.drop(segment):
                self._left.discard(segment)

    async def _run(self, statements: str, query: str, segment: int, then: Callable[[int], Awaitable[None]] | None = None) -> None:
        """DDL and the catalogue's line in one fenced transaction."""
        async with self._fence.transaction(self._connection):
            await self._connection.execute("SET LOCAL lock_timeout = '100ms'")
            await self._connection.execute(statements.encode())
            await self._connection.execute(QUERIES[query], {"shard": self._shard, "segment": segment})
            if then is not None:
                await then(segment)
