"""The lease of a shard (R11): a session advisory lock held by the very connection that commits, and an epoch raised at every acquisition.

Only the connection that can commit holds the lock, so the lease dies with the node and fencing costs nothing per commit. A second connection writes a
heartbeat by the database's clock every second; a standby that sees it 3 s old terminates the holder's backends and acquires. Whoever serves must stop
speaking when `last_proof_monotonic` is 2 s old: a second before anybody else may begin. These are the defaults of Times.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from .queries import QUERIES
from .wire import StatementFailed, Wire, WireBroken

LOCK = 0x5355_5245
"""First key of the advisory lock, "SURE" in ASCII; the second is the shard."""
SUCCESSION_SECONDS = 5.0
"""So long a lease that was handed over waits for the node that was named."""
POLLS_A_HEARTBEAT = 2
"""A standby looks so often: it learns of a free lock within half a heartbeat."""


@dataclass(slots=True, frozen=True)
class Times:
    """Seconds; the same for every node of an installation."""

    heartbeat: float = 1.0
    """From one heartbeat to the next."""
    stale: float = 3.0
    """A heartbeat this old has missed three: the holder is dead, stopped or cut off."""
    silence: float = 2.0
    """Outputs stop when the last proof is this old: `stale` less one heartbeat for the standby's poll and clock."""


TIMES = Times()
Sleep = Callable[[float], Awaitable[None]]


class LeaseLost(Exception):
    """Another node has the lease, or the connection that held it is gone."""


def connection_settings(epoch: int, shard: int) -> str:
    """Run once on every connection of a node: what a takeover looks for, and what the generated statements rely on."""
    return (
        f"SET application_name = 'surety shard {shard} epoch {epoch}'; SET standard_conforming_strings = on; SET client_encoding = 'UTF8'; "
        "SET idle_in_transaction_session_timeout = '2s'; SET jit = off"
    )


async def connect(dsn: str) -> AsyncConnection[Any]:
    """A direct connection; on TCP a peer that vanished is noticed within 10 s even if nothing is sent."""
    patient = make_conninfo(dsn, connect_timeout=5, keepalives_idle=5, keepalives_interval=2, keepalives_count=2, tcp_user_timeout=10_000)
    return await AsyncConnection.connect(patient, autocommit=True)


class Lease:
    """Held from `acquire` until `release`, or until `lost` is set."""

    def __init__(self, dsn: str, node: str, shard: int, connection: AsyncConnection[Any], epoch: int, clock_ms: int, times: Times) -> None:
        self.dsn, self.node, self.shard = dsn, node, shard
        self._times = times
        self.epoch = epoch
        """The term; higher than that of any holder before."""
        self.clock_ms = clock_ms
        """The database's clock at acquisition, ms since the epoch (R12); `acquired_monotonic` is the same instant on ours."""
        self.acquired_monotonic = time.monotonic()
        self.last_proof_monotonic = self.acquired_monotonic
        """When the last commit or heartbeat that succeeded was sent."""
        self.lost = asyncio.Event()
        """Set when the lease is known to be lost."""
        self._connection = connection
        self.writer = Wire(connection.pgconn)
        """The connection that holds the lock: the only one that commits."""
        self._heartbeat_connection: AsyncConnection[Any] | None = None
        self._heartbeats: asyncio.Task[None] | None = None

    @classmethod
    async def acquire(cls, dsn: str, node: str, shard: int = 0, sleep: Sleep = asyncio.sleep, times: Times = TIMES) -> Lease:
        """Wait, as long as it takes, until the lease is ours. Raises psycopg.Error when the database cannot be asked."""
        connection = await connect(dsn)
        try:
            while not await cls._try_lock(connection, shard, node):
                if not await cls._end_stale_holder(connection, shard, times.stale):
                    await sleep(times.heartbeat / POLLS_A_HEARTBEAT)
            keys = {"node": node, "shard": shard}
            row = await (await connection.execute(QUERIES["lease_raise_epoch"], keys)).fetchone()
            assert row is not None, f"no lease row for shard {shard}: the schema is not migrated"
            epoch, clock_ms = row
            assert isinstance(epoch, int) and isinstance(clock_ms, int)
            await connection.execute(connection_settings(epoch, shard).encode())
            await connection.execute("SET synchronous_commit = on")
            lease = cls(dsn, node, shard, connection, epoch, clock_ms, times)
        except BaseException:
            await connection.close()
            raise
        try:
            await lease._start(sleep)
        except BaseException:
            await lease.release()
            raise
        return lease

    @staticmethod
    async def _try_lock(connection: AsyncConnection[Any], shard: int, node: str) -> bool:
        row = await (await connection.execute(QUERIES["lease_try_lock"], {"lock": LOCK, "shard": shard, "node": node})).fetchone()
        return row == (True,)

    @staticmethod
    async def _end_stale_holder(connection: AsyncConnection[Any], shard: int, seconds: float) -> bool:
        """True if there was a holder to end: its lock is free, or will be in a moment."""
        keys = {"lock": LOCK, "shard": shard, "seconds": seconds}
        ended = await (await connection.execute(QUERIES["lease_terminate_stale"], keys)).fetchall()
        return bool(ended)

    def proved(self, sent_monotonic: float) -> None:
        """A commit that was sent then has succeeded: the lease was ours at some instant after it."""
        self.last_proof_monotonic = max(self.last_proof_monotonic, sent_monotonic)

    def is_fresh(self, now_monotonic: float) -> bool:
        """True while outputs may leave."""
        return not self.lost.is_set() and now_monotonic - self.last_proof_monotonic < self._times.silence

    async def name_successor(self, node: str) -> None:
        """When this is released, the node of that name acquires it; if it has not within SUCCESSION_SECONDS, whoever comes. Raises psycopg.Error."""
        connection = await connect(self.dsn)
        try:
            keys = {"successor": node, "seconds": SUCCESSION_SECONDS, "shard": self.shard, "epoch": self.epoch}
            await connection.execute(QUERIES["lease_name_successor"], keys)
        finally:
            await connection.close()

    async def release(self) -> None:
        """Give the lease up at once: the next node need not wait for the heartbeat to grow old."""
        self.lost.set()
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)
        await self._unlock()
        self.writer.detach()
        await self._connection.close()
        if self._heartbeat_connection is not None:
            await self._heartbeat_connection.close()

    async def _unlock(self) -> None:
        """Free the lock now and not when the server notices that the connection is closed. Nothing is committed after it: `writer` is detached."""
        if self.writer.is_idle():
            try:
                await self.writer.run(f"SELECT pg_advisory_unlock({LOCK}, {self.shard})".encode())
            except (WireBroken, StatementFailed):
                return  # the connection is gone, and the lock with it

    async def _start(self, sleep: Sleep) -> None:
        self._heartbeat_connection = await connect(self.dsn)
        await self._heartbeat_connection.execute(connection_settings(self.epoch, self.shard).encode())
        self._heartbeats = asyncio.create_task(self._beat(self._heartbeat_connection, sleep), name=f"heartbeat of shard {self.shard}")

    async def _beat(self, connection: AsyncConnection[Any], sleep: Sleep) -> None:
        keys = {"shard": self.shard, "epoch": self.epoch}
        try:
            while True:
                sent = time.monotonic()
                try:
                    beaten = await connection.execute(QUERIES["lease_heartbeat"], keys)
                except psycopg.errors.DiskFull:
                    beaten = None  # no proof, but no loss either: R21 has us wait for room
                # The row is ours, but is the lock? A writer that the server ended takes the lock with it.
                if self.writer.broken is not None or (beaten is not None and beaten.rowcount != 1):
                    return
                if beaten is not None:
                    self.proved(sent)
                await sleep(self._times.heartbeat)
        except psycopg.Error:
            return  # `lost` says it; the cause is the database's connection, which the commit path reports
        finally:
            self.lost.set()
