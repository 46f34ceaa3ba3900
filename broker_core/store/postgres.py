"""The PostgreSQL store: five kinds of connections, so that nothing slow ever stands before a group commit.

writer       the lease's own: commits, in order, nothing else
maintenance  tables made and dropped, compaction (R4, R5), what else is deleted in steps
progress     checkpoints, statistics, control requests
readers      pages, the inbox
bodies       large bodies in and out (R16)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Any

import psycopg
from psycopg import AsyncConnection

from broker_core.engine.commands import TakeOver
from broker_core.engine.message import Message
from broker_core.engine.reads import Read
from broker_core.engine.upkeep import CompactSegment, SweepRetained, TrimDuplicates
from broker_core.engine.writes import Checkpoint, Commit

from . import CommitLost, ControlRequest, Recovered, SpaceExhausted, compaction, duplicates, inbox, retention, schedule
from .bodies import Bodies
from .checkpoint import write_checkpoint
from .commit import CommitBuilder
from .fence import OUT_OF_SPACE, Fence, translated
from .lease import Lease, connect, connection_settings
from .ledger import Ledger
from .open_segment import OpenSegment
from .queries import QUERIES
from .reads import SESSION, Reader
from .recovery import Recovery
from .segments import Segments
from .wire import StatementFailed, WireBroken

READERS = 2
"""Pages are read side by side up to this many."""

Connection = AsyncConnection[Any]


class PostgresStore:
    """One shard's store under a lease. Open it, recover, use it, close it; after CommitLost nothing but `close` is of use."""

    def __init__(self, lease: Lease, maintenance: Connection, progress: Connection, bodies: Connection, readers: list[Connection]) -> None:
        self._lease, self._shard = lease, lease.shard
        self._fence = Fence(lease.shard, lease.epoch)
        self._maintenance, self._progress = maintenance, progress
        self._body = Bodies(bodies, lease.shard, lease.epoch)
        self._connections = [maintenance, progress, bodies, *readers]
        self._segments = Segments(maintenance, self._fence)
        self._readers: asyncio.Queue[Reader] = asyncio.Queue()
        for reader in readers:
            self._readers.put_nowait(Reader(reader, lease.shard, self._segments))
        self._progress_turn = asyncio.Lock()
        self._ledger: Ledger | None = None
        self._builder: CommitBuilder | None = None
        self._open_segment: OpenSegment | None = None

    @classmethod
    async def open(cls, lease: Lease) -> PostgresStore:
        """Connect. Raises psycopg.Error."""
        connections: list[Connection] = []
        try:
            for _ in range(3 + READERS):
                connection = await connect(lease.dsn)
                connections.append(connection)
                await connection.execute(connection_settings(lease.epoch, lease.shard).encode())
            for reader in connections[3:]:
                await reader.execute(SESSION)
        except BaseException:
            for connection in connections:
                await connection.close()
            raise
        return cls(lease, connections[0], connections[1], connections[2], connections[3:])

    async def close(self) -> None:
        """Close the store's connections; the lease is its holder's to release."""
        await self._segments.close()
        for connection in self._connections:
            await connection.close()

    async def recover(self) -> Recovered:
        async with _Translated():
            segments, keys = self._segments, {"shard": self._shard}
            await segments.load()
            await segments.clear_spill()
            await segments.undo_compaction()
            await segments.drop_compacted()
            await schedule.remove_volatile(self._maintenance, self._fence, segments)
            await self._body.sweep()
            async with self._fence.transaction(self._progress):
                await self._progress.execute(QUERIES["progress_remove_destroyed"], keys)
                await self._progress.execute(QUERIES["tombstones_remove"], keys)
                await self._progress.execute(QUERIES["operations_remove"], keys)
                await self._progress.execute(QUERIES["undo_remove"], keys)
            recovery = Recovery(self._progress, self._shard, self._lease.epoch, self._segments)
            recovered, self._open_segment = await recovery.read()
            await segments.ensure_ledger(recovery.ledger_segment)
            await segments.ensure(recovered.open_segment)
            segments.prepare(recovered.open_segment, recovery.ledger_segment)
            self._ledger = Ledger(self._shard, self._lease.epoch, recovery.ledger_segment)
            self._builder = CommitBuilder(self._shard, self._ledger)
            return recovered

    async def commit(self, commit: Commit, on_sent: Callable[[], None] = lambda: None) -> None:
        builder, ledger, open_segment = self._builder, self._ledger, self._open_segment
        assert builder is not None and ledger is not None and open_segment is not None, "commit before recover"
        segments = self._segments
        if commit.segment not in segments.known or (commit.spilled and not segments.known[commit.segment].spill):
            async with _Translated():
                await segments.ensure(commit.segment, bool(commit.spilled))
        assert segments.known[commit.segment].closed is None, f"segment {commit.segment} is closed"
        if ledger.is_full() and ledger.segment + 1 in segments.ledgers:
            ledger.roll()
        short = builder.calls(commit)
        sent = time.monotonic()
        try:
            if short is not None:
                calls, octets = short
                await self._lease.writer.call(calls, on_sent)
            else:
                statements, streams, octets = builder.build(commit)
                await self._lease.writer.run(statements, streams, on_sent)
        except StatementFailed as error:
            if error.sqlstate == OUT_OF_SPACE:
                raise SpaceExhausted(str(error)) from error
            raise CommitLost(str(error)) from error
        except WireBroken as error:
            raise CommitLost(str(error)) from error
        self._lease.proved(sent)
        open_segment.follow(commit, octets)
        segments.follow(commit)
        segments.prepare(commit.segment, ledger.segment)

    async def checkpoint(self, checkpoint: Checkpoint) -> None:
        assert self._open_segment is not None, "checkpoint before recover"
        async with _Translated(), self._progress_turn:
            await write_checkpoint(self._progress, self._fence, checkpoint, self._open_segment)

    async def read(self, read: Read) -> tuple[list[Message], bool]:
        reader = await self._readers.get()
        try:
            async with _Translated():
                return await reader.read(read)
        finally:
            self._readers.put_nowait(reader)

    async def inbox(self, limit: int, bytes_max: int) -> list[TakeOver]:
        reader = await self._readers.get()
        try:
            async with _Translated():
                return await inbox.read(reader.connection, self._shard, limit, bytes_max)
        finally:
            self._readers.put_nowait(reader)

    async def write_body(self, chunks: AsyncIterator[bytes]) -> int:
        async with _Translated():
            return await self._body.write(chunks)

    async def read_body(self, body: int) -> AsyncIterator[bytes]:
        async with _Translated():
            async for octets in self._body.read(body):
                yield octets

    async def discard_bodies(self, bodies: Sequence[int]) -> None:
        async with _Translated():
            await self._body.remove(bodies)

    async def drop_segment(self, segment: int) -> bool:
        async with _Translated():
            return await self._segments.drop(segment)

    async def freeze_segment(self, segment: int) -> None:
        async with _Translated():
            await self._segments.freeze(segment)

    async def compact_segment(self, compact: CompactSegment) -> None:
        async with _Translated():
            await compaction.compact(self._maintenance, self._fence, self._segments, compact)

    async def segment_octets(self, segment: int) -> int:
        async with _Translated():
            return await self._segments.octets(segment)

    async def sweep_retained(self, sweep: SweepRetained) -> None:
        async with _Translated():
            await compaction.sweep(self._maintenance, self._fence, self._segments, sweep)

    async def discard_scheduled(self, destination: int) -> None:
        async with _Translated():
            await schedule.discard(self._maintenance, self._fence, self._segments, destination)

    async def trim_duplicates(self, trim: TrimDuplicates) -> None:
        async with _Translated():
            await duplicates.trim(self._maintenance, self._fence, self._segments, trim)

    async def trim_ledger(self, before: int, octets_max: int) -> int:
        async with _Translated():
            await self._segments.drop_compacted()
            return await retention.trim_ledger(self._maintenance, self._fence, self._segments, before, octets_max)

    async def control_requests(self) -> list[ControlRequest]:
        async with _Translated(), self._progress_turn:
            rows = await (await self._progress.execute(QUERIES["control_requests"], {"shard": self._shard})).fetchall()
            return [ControlRequest(*row) for row in rows]


class _Translated:
    """psycopg's errors become the port's."""

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, psycopg.Error):
            raise translated(error) from error
