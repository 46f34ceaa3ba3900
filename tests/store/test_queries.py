"""Every named statement is one that the schema understands, and what must be quick uses the index made for it."""

from __future__ import annotations

import re

import psycopg
import pytest

from broker_core.engine.definitions import SegmentClosed
from broker_core.engine.message import Header
from broker_core.engine.reads import RETAINED, ExpiredWanted, PageWanted, PositionsWanted, ScheduledWanted
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from broker_core.engine.upkeep import CompactSegment
from broker_core.store.queries import QUERIES, load
from broker_core.store.reads import SESSION
from tests.store.rows import commit, message
from tests.store.test_postgres import PostgresRig, rig  # noqa: F401

UNTYPED = {"lease_terminate_stale": {"shard": "int4", "seconds": "float8", "lock": "oid"}}
"""Parameters whose type the statement leaves open."""


def numbered(statement: str, kinds: dict[str, str]) -> str:
    """The statement with numbered parameters, as EXPLAIN (GENERIC_PLAN) takes it."""
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        parameter = match.group(1)
        place = f"${numbers.setdefault(parameter, len(numbers) + 1)}"
        return f"{place}::{kinds[parameter]}" if parameter in kinds else place

    return re.sub(r"%\((\w+)\)s", number, statement).replace("%%", "%")


def generic(name: str) -> str:
    return numbered(QUERIES[name], UNTYPED.get(name, {}))


def test_the_schema_understands_every_statement(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        for name in QUERIES:
            assert connection.execute(f"EXPLAIN (GENERIC_PLAN) {generic(name)}".encode()).fetchall(), name


def test_every_statement_says_its_name_once_and_ends_without_a_semicolon() -> None:
    assert load() == QUERIES
    assert len(QUERIES) > 30
    assert not [name for name, statement in QUERIES.items() if statement.endswith(";") or not statement]


@pytest.mark.parametrize("name", ["scheduled_counts", "scheduled_discard", "scheduled_remove_volatile"])
def test_a_million_delayed_messages_are_counted_and_discarded_by_index(dsn: str, name: str) -> None:
    rows = """
        INSERT INTO surety.scheduled (shard, destination, schedule, due_at, expiration, size, priority, reliability, encoding, volatile, headers, body)
        SELECT 0, n % 50, n, n, 0, 1000, 4, 4, 0, n % 100 = 0, '', repeat('x', 1000)::bytea FROM generate_series(1, 20000) n
    """
    with psycopg.connect(dsn, autocommit=True, cursor_factory=psycopg.RawCursor) as connection:
        connection.execute(rows.encode())
        connection.execute("VACUUM ANALYZE surety.scheduled")
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN (GENERIC_PLAN) {generic(name)}".encode()).fetchall())
    assert "Seq Scan on scheduled" not in plan, plan


async def test_pages_are_read_by_index_however_much_is_stored(rig: PostgresRig, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    store = await rig.open()
    await store.recover()
    header = Header(b"h", 4, 4, expiration=5_000)
    rows = [message(n, header=header, destination=n % 50, sequence=n) for n in range(1, 20_001)]
    for number, start in enumerate(range(0, 20_000, 2_000), 1):
        await store.commit(commit(number, rows[start : start + 2_000], accepted=[]))
    await store.commit(commit(11, definitions=[SegmentClosed(1, 20_000, {(d, 4): (1, 20_000) for d in range(50)})]))
    await store.compact_segment(CompactSegment(1, [(d, 4, d or 50, 10_000) for d in range(50)]))
    reader = await store._readers.get()
    asked: list[str] = []

    async def explain(statement: str, _keys: dict[str, object], _constants: dict[str, object] | None = None) -> list[object]:
        with psycopg.connect(rig.dsn, cursor_factory=psycopg.RawCursor) as connection:
            connection.execute(SESSION.encode())
            plan = connection.execute(f"EXPLAIN (GENERIC_PLAN) {numbered(statement, {})}".encode()).fetchall()
        asked.append("\n".join(line for (line,) in plan))
        return []

    monkeypatch.setattr(reader, "_messages", explain)
    for segments in ([1], [RETAINED], [RETAINED, 1]):
        await reader.read(PageWanted(1, 7, 4, 100, 19_000, 100, 1 << 20, segments))
        for text in ("a = 'b'", "a > 5"):
            await reader.read(PageWanted(1, 7, 4, 100, 19_000, 100, 1 << 20, segments, Filter(compile_selector(text))))
        await reader.read(PositionsWanted(1, 7, 4, [107, 157, 9957], segments))
        await reader.read(ExpiredWanted(1, (4_000, 0), 6_000, 100, segments, 1 << 20))
    await reader.read(ScheduledWanted(1, (4_000, 7), 6_000, 100, 1 << 20))
    assert len(asked) == 16
    for plan in asked:
        assert "Seq Scan" not in plan, plan
        assert "Bitmap" not in plan, plan
        assert "Sort  (" not in plan, plan
        assert "Index Scan" in plan, plan
