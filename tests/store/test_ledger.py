"""The ledger's tables roll, are trimmed by age and size, and say what they lost."""

from __future__ import annotations

import psycopg
import pytest

from broker_core.engine.writes import Checkpoint
from broker_core.store import CommitLost, ledger
from broker_core.store.postgres import PostgresStore
from tests.store.rows import as_of_earlier_version, commit
from tests.store.test_postgres import PostgresRig, rig  # noqa: F401

FAR = 1 << 62
OCTETS = 20_000_000_000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "ROWS_MAX", 10)


async def filled(rig: PostgresRig, commits: int) -> PostgresStore:  # noqa: F811
    """A store with so many commits behind it; its ledger tables are made as fast as they are wanted."""
    store = await rig.open()
    await store.recover()
    for number in range(1, commits + 1):
        await store.commit(commit(number, settled=[(1, 4, number, number, 0)]))
        await store._segments.ensure_ledger(store._segments.ledger_in_use + 1)
    return store


def tables(rig: PostgresRig) -> list[int]:  # noqa: F811
    return [segment for (segment,) in rig.query("SELECT segment FROM surety.ledger_segment ORDER BY segment")]


@pytest.mark.usefixtures("small")
async def test_rows_come_back_in_order_from_all_the_tables_after_the_checkpoint(rig: PostgresRig) -> None:  # noqa: F811
    store = await filled(rig, 35)
    await store.checkpoint(Checkpoint(12, 1, 1))
    assert rig.query("SELECT count(*) FROM surety.ledger_0_1") == [(10,)]
    again = await rig.open()
    found = await again.recover()
    assert [row.number for row in found.ledger] == list(range(13, 36))
    await again.commit(commit(36))
    assert rig.query("SELECT max(number), count(*) FROM surety.ledger_0_4") == [(36, 6)]


@pytest.mark.usefixtures("small")
async def test_what_recovery_still_needs_is_never_dropped(rig: PostgresRig) -> None:  # noqa: F811
    store = await filled(rig, 35)
    assert await store.trim_ledger(FAR, 0) == 0
    await store.checkpoint(Checkpoint(19, 1, 1))
    assert await store.trim_ledger(FAR, OCTETS) == 1
    assert tables(rig)[0] == 2
    assert [row.number for row in (await (await rig.open()).recover()).ledger] == list(range(20, 36))


@pytest.mark.usefixtures("small")
async def test_tables_go_by_age_but_not_before_every_reader_has_read_them(rig: PostgresRig) -> None:  # noqa: F811
    store = await filled(rig, 45)
    await store.checkpoint(Checkpoint(45, 1, 1))
    rig.execute("INSERT INTO surety.ledger_reader (shard, reader, number) VALUES (0, 'pipeline', 10), (0, 'audit', 45)")
    assert await store.trim_ledger(1_700_000_000_000 + 5, OCTETS) == 0
    assert await store.trim_ledger(1_700_000_000_000 + 31, OCTETS) == 1
    rig.execute("UPDATE surety.ledger_reader SET number = 45")
    assert await store.trim_ledger(1_700_000_000_000 + 31, OCTETS) == 2
    assert tables(rig)[0] == 4
    assert rig.query("SELECT * FROM surety.ledger_gap") == []


@pytest.mark.usefixtures("small")
async def test_the_size_cap_drops_unread_tables_and_leaves_a_gap(rig: PostgresRig) -> None:  # noqa: F811
    store = await filled(rig, 45)
    await store.checkpoint(Checkpoint(45, 1, 1))
    rig.execute("INSERT INTO surety.ledger_reader (shard, reader, number) VALUES (0, 'pipeline', 10)")
    assert await store.trim_ledger(0, OCTETS) == 0
    (size,) = rig.query("SELECT max(octets) FROM surety.ledger_segment")[0]
    assert await store.trim_ledger(0, 2 * size) == 2
    assert tables(rig)[:2] == [3, 4]
    assert rig.query("SELECT first_number, last_number FROM surety.ledger_gap") == [(11, 20)]


@pytest.mark.usefixtures("small")
async def test_a_table_that_somebody_reads_stays_for_the_next_time(rig: PostgresRig) -> None:  # noqa: F811
    store = await filled(rig, 25)
    await store.checkpoint(Checkpoint(25, 1, 1))
    with psycopg.connect(rig.dsn) as reader:
        reader.execute("SELECT FROM surety.ledger_0_1 LIMIT 1")
        assert await store.trim_ledger(FAR, OCTETS) == 0
    assert await store.trim_ledger(FAR, OCTETS) == 2


async def test_a_number_is_never_written_twice(rig: PostgresRig) -> None:  # noqa: F811
    store = await filled(rig, 3)
    with pytest.raises(CommitLost):
        await store.commit(commit(3))


async def test_a_table_of_an_earlier_version_is_read_with_what_it_did_not_tell_as_unknown_even_while_a_backup_reads_it(rig: PostgresRig) -> None:  # noqa: F811
    """Nothing is altered: the ledger goes on in a table of this version."""
    store = await rig.open()
    await store.recover()
    await store.commit(commit(1, octets=[(1, 5, 7), (2, -3, 0)], failures=[(1, 4, 1, 1)]))
    with psycopg.connect(rig.dsn, autocommit=True) as connection:
        for segment in tables(rig):
            connection.execute(as_of_earlier_version(f"surety.ledger_0_{segment}"))
    old = tables(rig)
    again = await rig.open()
    with psycopg.connect(rig.dsn) as backup:
        for segment in old:
            backup.execute(f"LOCK surety.ledger_0_{segment} IN ACCESS SHARE MODE".encode())
        (found,) = (await again.recover()).ledger
    assert (found.octets, found.blocked, found.failures) == ([(1, 5, None), (2, -3, None)], [], [(1, 4, 1, 1)])
    await again.commit(commit(2, octets=[(1, 9, 9)], blocked=[(1, 4, 8)]))
    found = (await (await rig.open()).recover()).ledger[-1]
    assert (found.number, found.octets, found.blocked) == (2, [(1, 9, 9)], [(1, 4, 8)])
    assert again._segments.ledger_in_use == max(old) + 1
