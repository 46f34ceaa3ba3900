"""The PostgreSQL store keeps the port's promises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from random import Random
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from broker_core.engine.commands import TakeOver
from broker_core.engine.recovered import Recovered
from broker_core.store import compaction
from broker_core.store.lease import Lease
from broker_core.store.memory import MemoryDatabase
from broker_core.store.postgres import PostgresStore
from tests.store.contract import StoreContract
from tests.store.engine_contract import EngineContract
from tests.store.contract_prepared import said
from tests.store.rows import PLAIN, QUICK, RICH, close_segment, commit, message, messages, page, positions, told
from tests.store.traffic import Traffic

FULL = """
CREATE FUNCTION surety.no_room() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON surety.message_0_1 FOR EACH ROW WHEN (NEW.position > 30) EXECUTE FUNCTION surety.no_room();
"""
INTERRUPTED = """
CREATE FUNCTION surety.interrupt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'interrupted'; END $$;
CREATE TRIGGER interrupted BEFORE INSERT ON surety.retained FOR EACH ROW WHEN (NEW.position > 20) EXECUTE FUNCTION surety.interrupt();
"""


class PostgresRig:
    """A database on a real server; terms end as a takeover ends them: the holder's backend is terminated."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.leases: list[Lease] = []
        self.stores: list[PostgresStore] = []
        self._holder: psycopg.Connection[Any] | None = None
        self._steps = compaction.STEP_ROWS

    async def open(self) -> PostgresStore:
        if self.leases:
            self.terminate(self.leases[-1])
        self.execute("DROP TRIGGER IF EXISTS interrupted ON surety.retained")
        self.leases.append(await Lease.acquire(self.dsn, "test"))
        self.stores.append(await PostgresStore.open(self.leases[-1]))
        return self.stores[-1]

    def terminate(self, lease: Lease) -> None:
        self.query("SELECT pg_terminate_backend(holder_pid, 5000) FROM surety.lease WHERE epoch = %s", lease.epoch)

    async def cut_off(self, _store: PostgresStore) -> None:
        self.terminate(self.leases[-1])

    async def fill_disk(self) -> None:
        self.execute(FULL.replace("> 30", "> 0") if not self.query("SELECT 1 FROM surety.segment") else FULL)

    async def free_disk(self) -> None:
        self.execute("DROP TRIGGER full_disk ON surety.message_0_1")

    async def hold(self, segment: int) -> None:
        self._holder = psycopg.connect(self.dsn)
        self._holder.execute(f"SELECT FROM surety.message_0_{segment} LIMIT 1".encode())

    async def let_go(self) -> None:
        assert self._holder is not None
        self._holder.close()
        self._holder = None

    async def break_compaction(self) -> None:
        compaction.STEP_ROWS = 15
        self.execute(INTERRUPTED)

    async def sent(self, address: str, *bodies: bytes) -> list[int]:
        rows = self.query("SELECT surety.send(%s, body) FROM unnest(%s::bytea[]) AS body", f"/{address}", list(bodies))
        return [int(identifier.rpartition("-")[2]) for (identifier,) in rows]

    def insert(self, arrivals: Sequence[TakeOver]) -> None:
        """A transaction's rows, as surety.send would have written them under these numbers."""
        columns = "shard, entry, address, sent_at, delay, expiration, size, priority, reliability, message_id, duplicate_id, headers, body"
        with psycopg.connect(self.dsn) as connection:
            for one in arrivals:
                header, body = one.message.header, one.message.body
                row = (
                    0, one.entry, one.address, one.sent_at, header.delay, header.expiration, one.message.size, header.priority, header.reliability,
                    header.message_id, header.duplicate_id, header.octets, body,
                )  # fmt: skip
                connection.execute(f"INSERT INTO surety.inbox ({columns}) VALUES ({', '.join(['%s'] * len(row))})".encode(), row)

    async def request(self, verb: str, address: str, arguments: dict[str, Any], deadline: int) -> int:
        return self.query(
            "INSERT INTO surety.control_request (verb, address, arguments, requested_by, deadline) VALUES (%s, %s, %s, 'test', %s) RETURNING request",
            verb, address, Jsonb(arguments), deadline,
        )[0][0]  # fmt: skip

    async def answer(self, request: int) -> tuple[bool, dict[str, Any]] | None:
        ((done, result),) = self.query("SELECT done, result FROM surety.control_request WHERE request = %s", request)
        return None if done is None else (done, result)

    def execute(self, statements: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statements.encode())

    def query(self, statement: str, *values: object) -> list[Any]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute(statement.encode(), values).fetchall()

    async def close(self) -> None:
        compaction.STEP_ROWS = self._steps
        if self._holder is not None:
            self._holder.close()
        for store in self.stores:
            await store.close()
        for lease in self.leases:
            await lease.release()


@pytest.fixture
async def rig(dsn: str) -> AsyncIterator[PostgresRig]:
    made = PostgresRig(dsn)
    yield made
    await made.close()


class TestPostgresStore(StoreContract):
    pass


class TestEngineOverPostgres(EngineContract):
    pass


async def test_a_backup_that_reads_every_table_does_not_keep_a_node_from_recovering(rig: PostgresRig) -> None:
    """pg_dump holds ACCESS SHARE on all tables for as long as it takes, the twins among them."""
    store = await rig.open()
    await store.recover()
    await store.commit(commit(1, messages(1, 2), spilled=messages(1, 9, header=QUICK)))
    with psycopg.connect(rig.dsn) as backup:
        backup.execute("LOCK TABLE surety.message_0_1, surety.spill_0_1 IN ACCESS SHARE MODE")
        again = await rig.open()
        await again.recover()
        assert await positions(again, page(0, 99, lane=14)) == []
        assert await positions(again, page(0, 99, lane=4)) == [1, 2]
        await again.commit(commit(2, spilled=messages(1, 1, header=QUICK)))
        assert await positions(again, page(0, 99, lane=14)) == [1]


async def test_a_frozen_segment_leaves_its_readers_nothing_to_write(rig: PostgresRig) -> None:
    store = await rig.open()
    await store.recover()
    await close_segment(store, 1, 1, 500, 1)
    await close_segment(store, 2, 501, 1000, 2)
    await store.freeze_segment(1)
    pages = "SELECT relallvisible, (SELECT count(DISTINCT (ctid::text::point)[0]) FROM surety.message_0_{0}) FROM pg_class WHERE relname = 'message_0_{0}'"
    ((frozen, all_pages),) = rig.query(pages.format(1))
    assert frozen == all_pages > 1
    ((left, _),) = rig.query(pages.format(2))
    assert left == 0


async def test_freezing_a_segment_that_somebody_has_locked_or_dropped_does_nothing_and_waits_for_nobody(rig: PostgresRig) -> None:
    store = await rig.open()
    await store.recover()
    await close_segment(store, 1, 1, 500, 1)
    with psycopg.connect(rig.dsn) as other:
        other.execute("LOCK TABLE surety.message_0_1 IN ACCESS EXCLUSIVE MODE")
        await asyncio.wait_for(store.freeze_segment(1), 5)
    assert await store.drop_segment(1)
    await store.freeze_segment(1)


def compared(found: Recovered) -> Recovered:
    """Less what differs between any two databases; in an order of its own where the port promises none."""
    found.clock_ms = found.epoch = 0
    found.instance = ""
    checkpoint = found.checkpoint
    for rows in (checkpoint.lanes, checkpoint.cursors, checkpoint.blocks, checkpoint.failures, checkpoint.counters):
        rows.sort()
    found.prepared = [said(branch) for branch in found.prepared]  # type: ignore[misc]
    return found


@pytest.mark.parametrize("seed", range(3))
async def test_both_stores_say_the_same_of_the_same_traffic(rig: PostgresRig, seed: int) -> None:
    traffic, database = Traffic(Random(seed)), MemoryDatabase()
    for _ in range(4):
        real, twin = await rig.open(), database.open(0)
        assert compared(await real.recover()) == compared(await twin.recover())
        for step in range(50):
            method, argument = traffic.step()
            answers = [await getattr(store, method)(argument) for store in (real, twin)]
            if method == "read":
                answers = [([told(row) for row in rows], complete) for rows, complete in answers]
            assert answers[0] == answers[1], (step, method, argument)
    assert traffic.sequence > 300


async def test_rows_of_one_lane_lie_together_where_a_commit_brings_many_of_several(rig: PostgresRig) -> None:
    store = await rig.open()
    await store.recover()
    rows = [message(position, sequence=position * 2 + high, header=RICH if high else PLAIN) for position in range(1, 41) for high in (False, True)]
    await store.commit(commit(1, rows))
    few = [message(100 + high, sequence=200 + high, header=RICH if high else PLAIN) for high in (True, False)]
    await store.commit(commit(2, few))
    found = [priority for (priority,) in rig.query("SELECT priority FROM surety.message_0_1 ORDER BY ctid")]
    assert found == [4] * 40 + [9] * 40 + [9, 4], "few rows stay in the order in which they came"


@pytest.mark.parametrize("turns", [1, 3, 9])
async def test_nothing_stays_of_a_body_whose_sender_has_gone_however_early(rig: PostgresRig, turns: int) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1_000_000

    store = await rig.open()
    await store.recover()
    writing = asyncio.create_task(store.write_body(endless()))
    for _ in range(turns):
        await asyncio.sleep(0)
    writing.cancel()
    await asyncio.wait([writing])
    await store.write_body(_nothing())
    assert writing.cancelled()
    assert rig.query("SELECT 1 FROM surety.body WHERE size IS NULL") == rig.query("SELECT 1 FROM surety.body_chunk") == []


async def _nothing() -> AsyncIterator[bytes]:
    for _ in ():
        yield b""
