"""The lease: one holder, known to be alive, and a standby that need not ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from broker_core.engine.writes import Checkpoint
from broker_core.store import CommitLost
from broker_core.store.fence import Fence
from broker_core.store.lease import TIMES, Lease, Times, connect
from broker_core.store.postgres import PostgresStore
from broker_core.store.queries import QUERIES
from broker_core.store.wire import WireBroken
from tests.store.rows import commit, messages

PATIENCE = 20
"""Seconds after which a test that waits for an event has failed."""


class Beats:
    """A heartbeat's or standby's sleep, which lasts until the test says so."""

    def __init__(self) -> None:
        self.asleep = asyncio.Event()
        self.seconds = 0.0
        """Of the last sleep."""
        self._wake = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.seconds = seconds
        self.asleep.set()
        await self._wake.wait()
        self._wake.clear()

    async def next(self) -> None:
        """Let the sleeper do its work once more; return when it sleeps again."""
        await asyncio.wait_for(self.asleep.wait(), PATIENCE)
        self.asleep.clear()
        self._wake.set()
        await asyncio.wait_for(self.asleep.wait(), PATIENCE)

    def wake(self) -> None:
        self._wake.set()


class Nodes:
    """Leases of a test, all released at its end."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._held: list[Lease] = []

    async def acquire(self, node: str, beats: Beats | None = None, times: Times = TIMES) -> Lease:
        lease = await asyncio.wait_for(Lease.acquire(self.dsn, node, sleep=(beats or Beats()).sleep, times=times), PATIENCE)
        self._held.append(lease)
        return lease

    async def close(self) -> None:
        for lease in self._held:
            await lease.release()

    def run(self, statement: str, *values: object) -> list[Any]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def grow_old(self) -> None:
        """The holder has not been heard of for too long."""
        self.run("UPDATE surety.lease SET heartbeat_at = heartbeat_at - make_interval(secs => %s)", TIMES.stale + 1)


@pytest.fixture
async def nodes(dsn: str) -> AsyncIterator[Nodes]:
    made = Nodes(dsn)
    yield made
    await made.close()


async def test_a_standby_waits_while_the_holder_is_alive_and_follows_when_it_leaves(nodes: Nodes) -> None:
    first, beats = await nodes.acquire("a"), Beats()
    waiting = asyncio.create_task(nodes.acquire("b", beats))
    await beats.next()
    await beats.next()
    assert not waiting.done()
    assert not first.lost.is_set()
    await first.release()
    beats.wake()
    second = await asyncio.wait_for(waiting, PATIENCE)
    assert second.epoch == first.epoch + 1
    assert second.clock_ms >= first.clock_ms


async def test_a_holder_whose_heartbeat_is_old_is_ended_and_learns_it(nodes: Nodes) -> None:
    beats = Beats()
    first = await nodes.acquire("a", beats)
    store = await PostgresStore.open(first)
    await store.recover()
    await store.commit(commit(1, messages(1, 3)))
    nodes.grow_old()
    second = await nodes.acquire("b")
    assert second.epoch == first.epoch + 1
    with pytest.raises(CommitLost):
        await store.commit(commit(2, messages(4, 4)))
    beats.wake()
    await asyncio.wait_for(first.lost.wait(), PATIENCE)
    assert not first.is_fresh(first.last_proof_monotonic)
    await store.close()


async def test_a_takeover_also_ends_what_the_old_holder_left_in_a_fenced_transaction(nodes: Nodes) -> None:
    first = await nodes.acquire("a")
    store = await PostgresStore.open(first)
    await store.recover()
    stuck = store._progress
    await stuck.execute("SET idle_in_transaction_session_timeout = 0")
    await stuck.execute("BEGIN")
    await stuck.execute(QUERIES["fence"], {"shard": 0, "epoch": first.epoch})
    nodes.grow_old()
    assert (await nodes.acquire("b")).epoch == first.epoch + 1
    with pytest.raises(CommitLost):
        await store.checkpoint(Checkpoint(0, 0, 0))
    await store.close()


async def test_a_fenced_transaction_holds_off_the_next_epoch_but_no_heartbeat(nodes: Nodes) -> None:
    beats = Beats()
    lease = await nodes.acquire("a", beats)
    fenced, rival = await connect(nodes.dsn), await connect(nodes.dsn)
    await rival.execute("SET lock_timeout = '50ms'")
    async with Fence(0, lease.epoch).transaction(fenced):
        before = nodes.run("SELECT heartbeat_at FROM surety.lease")
        await beats.next()
        assert nodes.run("SELECT heartbeat_at FROM surety.lease") > before
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await rival.execute(QUERIES["lease_raise_epoch"], {"shard": 0, "node": "b"})
    await rival.execute(QUERIES["lease_raise_epoch"], {"shard": 0, "node": "b"})
    with pytest.raises(CommitLost, match="another node has the lease"):
        async with Fence(0, lease.epoch).transaction(fenced):
            pass
    beats.wake()
    await asyncio.wait_for(lease.lost.wait(), PATIENCE)
    await fenced.close()
    await rival.close()


async def test_the_loss_of_the_writers_connection_is_the_loss_of_the_lease(nodes: Nodes) -> None:
    beats = Beats()
    lease = await nodes.acquire("a", beats)
    await asyncio.wait_for(beats.asleep.wait(), PATIENCE)
    nodes.run("SELECT pg_terminate_backend(holder_pid, 5000) FROM surety.lease")
    with pytest.raises(WireBroken):
        await lease.writer.run(b"SELECT 1")
    beats.wake()
    await asyncio.wait_for(lease.lost.wait(), PATIENCE)


async def test_outputs_may_leave_for_two_seconds_after_the_last_proof(nodes: Nodes) -> None:
    lease = await nodes.acquire("a")
    proof = lease.last_proof_monotonic
    assert lease.is_fresh(proof + TIMES.silence - 0.01)
    assert not lease.is_fresh(proof + TIMES.silence)
    lease.proved(proof + 5)
    assert lease.is_fresh(proof + TIMES.silence + 4.9)
    lease.proved(proof + 1)
    assert lease.last_proof_monotonic == proof + 5


async def test_beats_silence_and_staleness_last_as_long_as_one_says(nodes: Nodes) -> None:
    times = Times(heartbeat=0.2, stale=60.0, silence=5.0)
    beats, standby = Beats(), Beats()
    lease = await nodes.acquire("a", beats, times)
    await asyncio.wait_for(beats.asleep.wait(), PATIENCE)
    assert beats.seconds == 0.2
    assert lease.is_fresh(lease.last_proof_monotonic + 4.9)
    assert not lease.is_fresh(lease.last_proof_monotonic + 5)
    nodes.grow_old()
    waiting = asyncio.create_task(nodes.acquire("b", standby, times))
    await standby.next()
    assert standby.seconds == 0.1
    assert not waiting.done(), "four seconds are not old"
    assert not lease.lost.is_set()
    nodes.run("UPDATE surety.lease SET heartbeat_at = heartbeat_at - interval '1 minute'")
    standby.wake()
    assert (await asyncio.wait_for(waiting, PATIENCE)).epoch == lease.epoch + 1


async def test_a_commit_is_a_proof(nodes: Nodes) -> None:
    lease = await nodes.acquire("a")
    store = await PostgresStore.open(lease)
    await store.recover()
    before = lease.last_proof_monotonic
    await store.commit(commit(1))
    assert lease.last_proof_monotonic > before
    await store.close()


async def test_only_one_of_many_gets_the_lease(nodes: Nodes) -> None:
    standbys = [Beats() for _ in range(4)]
    waiting = [asyncio.create_task(nodes.acquire(f"node {n}", beats)) for n, beats in enumerate(standbys)]
    await asyncio.wait_for(asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED), PATIENCE)
    await asyncio.gather(*(asyncio.wait_for(beats.asleep.wait(), PATIENCE) for beats in standbys))
    assert sum(task.done() for task in waiting) == 1
    for task in waiting:
        if not task.done():
            task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_whoever_asks_by_sql_sees_whether_the_lock_is_held(nodes: Nodes) -> None:
    assert nodes.run("SELECT held FROM surety.lease_held") == [(False,)]
    lease = await nodes.acquire("a")
    assert nodes.run("SELECT held FROM surety.lease_held") == [(True,)]
    await lease.release()
    assert nodes.run("SELECT held FROM surety.lease_held") == [(False,)]


async def test_a_lease_that_is_handed_over_waits_a_little_for_who_was_named(nodes: Nodes) -> None:
    holder = await nodes.acquire("a")
    await holder.name_successor("c")
    first, named = Beats(), Beats()
    waiting = asyncio.create_task(nodes.acquire("b", first))
    await asyncio.wait_for(first.asleep.wait(), PATIENCE)
    await holder.release()
    await first.next()
    assert not waiting.done(), "another was named"
    taken = await nodes.acquire("c", named)
    assert taken.epoch == holder.epoch + 1
    await taken.name_successor("nobody")
    await taken.release()
    nodes.run("UPDATE surety.lease SET successor_until = clock_timestamp()")
    first.wake()
    assert (await asyncio.wait_for(waiting, PATIENCE)).epoch == taken.epoch + 1, "who was named did not come"
