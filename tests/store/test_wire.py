"""The wire: several statements and COPY streams in one implicit transaction, whatever goes wrong on the way."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import uvloop
from psycopg import AsyncConnection

from broker_core.store.lease import connect
from broker_core.store.commit import NOT_SYNCHRONOUS
from broker_core.store.wire import Call, StatementFailed, Wire, WireBroken

TABLE = b"CREATE TABLE t (n int PRIMARY KEY, s text)"
COPY = b"COPY t FROM STDIN"


@pytest.fixture
async def connection(dsn: str) -> AsyncIterator[AsyncConnection[Any]]:
    made = await connect(dsn)
    yield made
    await made.close()


@pytest.fixture
async def wire(connection: AsyncConnection[Any]) -> AsyncIterator[Wire]:
    made = Wire(connection.pgconn)
    await made.run(TABLE)
    yield made
    made.detach()


async def count(wire: Wire) -> int:
    return int((await wire.run(b"SELECT count(*) FROM t"))[0].get_value(0, 0) or b"-1")


async def test_a_refused_statement_undoes_those_before_it_and_the_wire_goes_on(wire: Wire) -> None:
    with pytest.raises(StatementFailed) as refused:
        await wire.run(b"INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (1, 'b')")
    assert refused.value.sqlstate == "23505"
    assert await count(wire) == 0


async def test_a_copy_refused_in_the_middle_undoes_all_and_the_wire_goes_on(wire: Wire) -> None:
    def rows() -> Iterator[bytes]:
        for n in range(3000):
            yield b"%d\t%s\n" % (n % 2000, b"x" * 1000)

    with pytest.raises(StatementFailed) as refused:
        await wire.run(b"INSERT INTO t VALUES (-1, 'a');" + COPY + b";INSERT INTO t VALUES (-2, 'b')", [rows()])
    assert refused.value.sqlstate == "23505"
    assert await count(wire) == 0


async def test_a_connection_ended_by_the_server_breaks_the_wire_at_once_and_for_good(dsn: str, wire: Wire, connection: AsyncConnection[Any]) -> None:
    running = asyncio.create_task(wire.run(b"SELECT pg_sleep(60)"))
    with psycopg.connect(dsn, autocommit=True) as other:
        while other.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", (connection.pgconn.backend_pid,)).fetchone() != ("active",):
            await asyncio.sleep(0)
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (connection.pgconn.backend_pid,))
    with pytest.raises(WireBroken):
        await asyncio.wait_for(running, 20)
    assert wire.broken
    with pytest.raises(WireBroken):
        await wire.run(b"SELECT 1")


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_server_that_goes_without_reading_what_was_sent_breaks_the_wire(dsn: str, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """Its last words and the reset come together; the node's loop tells of that once."""

    async def story() -> None:
        connection = await connect(dsn)
        wire = Wire(connection.pgconn)
        backend = connection.pgconn.backend_pid
        os.kill(backend, signal.SIGSTOP)
        running = asyncio.create_task(wire.run(b"SELECT 1 --" + b"x" * 50_000))  # more than the server takes from its socket at once
        await asyncio.sleep(0.1)
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (backend,))
            os.kill(backend, signal.SIGCONT)
            while Path(f"/proc/{backend}").exists():  # noqa: ASYNC240
                time.sleep(0.01)  # noqa: ASYNC251  # it is gone before the loop looks, as when a crash keeps all processors busy
        with pytest.raises(WireBroken):
            await asyncio.wait_for(running, 5)
        await connection.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(story())


async def test_a_caller_that_gives_up_leaves_the_wire_broken_since_nobody_knows_what_it_did(wire: Wire) -> None:
    running = asyncio.create_task(wire.run(b"SELECT pg_sleep(60)"))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(WireBroken, match="in the middle"):
        await wire.run(b"SELECT 1")


async def test_a_stream_that_fails_leaves_the_wire_broken_and_nothing_written(dsn: str, wire: Wire, connection: AsyncConnection[Any]) -> None:
    def rows() -> Iterator[bytes]:
        yield b"1\ta\n"
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await wire.run(COPY, [rows()])
    assert wire.broken
    await connection.close()
    with psycopg.connect(dsn) as other:
        assert other.execute("SELECT count(*) FROM t").fetchone() == (0,)


async def test_a_second_caller_is_a_bug(wire: Wire) -> None:
    running = asyncio.create_task(wire.run(b"SELECT 1"))
    await asyncio.sleep(0)
    with pytest.raises(AssertionError):
        await wire.run(b"SELECT 2")
    assert (await running)[0].get_value(0, 0) == b"1"


async def test_a_stream_larger_than_every_buffer_arrives_whole_while_the_loop_goes_on(wire: Wire) -> None:
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    working = asyncio.create_task(other_work())
    pieces = (b"%d\t%s\n" % (n, b"x" * 100_000) for n in range(300))
    told = []
    await wire.run(COPY + b";" + COPY, [pieces, iter([b"-1\ty\n", b"-2\tz\n"])], lambda: told.append(turns))
    working.cancel()
    assert await count(wire) == 302
    assert turns > 10
    assert len(told) == 1


async def test_statements_and_streams_are_one_transaction(dsn: str, wire: Wire) -> None:
    before = (await wire.run(b"SELECT pg_current_xact_id()"))[0].get_value(0, 0)
    await wire.run(b"SET LOCAL synchronous_commit = off;INSERT INTO t VALUES (1, 'a');" + COPY + b";INSERT INTO t VALUES (3, 'c')", [iter([b"2\tb\n"])])
    with psycopg.connect(dsn) as other:
        xids = other.execute("SELECT DISTINCT xmin::text::int FROM t").fetchall()
    assert xids == [(int(before or b"0") + 1,)]
    assert (await wire.run(b"SHOW synchronous_commit"))[0].get_value(0, 0) == b"on"


def inserted(n: int, text: str) -> Call:
    return Call(b"INSERT INTO t VALUES ($1, $2)", [b"%d" % n, text.encode()])


async def test_a_refused_call_undoes_those_before_it_and_the_wire_goes_on(wire: Wire) -> None:
    for _ in range(2):
        with pytest.raises(StatementFailed) as refused:
            await wire.call([inserted(1, "a"), inserted(1, "b"), Call(b"INSERT INTO t VALUES ($1, 'never prepared')", [b"3"])])
        assert refused.value.sqlstate == "23505"
        assert await count(wire) == 0
    await wire.call([inserted(1, "a"), Call(b"INSERT INTO t VALUES ($1, 'never prepared')", [b"3"])])
    assert await count(wire) == 2


async def test_a_call_of_what_cannot_be_prepared_undoes_all_and_the_wire_goes_on(wire: Wire) -> None:
    with pytest.raises(StatementFailed) as refused:
        await wire.call([inserted(1, "a"), Call(b"INSERT INTO nowhere VALUES ($1)", [b"3"])])
    assert refused.value.sqlstate == "42P01"
    await wire.call([inserted(1, "a")])
    assert await count(wire) == 1


async def test_calls_are_one_transaction_whose_settings_end_with_it(dsn: str, wire: Wire) -> None:
    await wire.run(b"ALTER TABLE t ALTER s SET DEFAULT current_setting('synchronous_commit')")
    before = (await wire.run(b"SELECT pg_current_xact_id()"))[0].get_value(0, 0)
    await wire.call([NOT_SYNCHRONOUS, Call(b"INSERT INTO t VALUES ($1)", [b"\0\0\0\1"], binary=True), inserted(2, "b")])
    with psycopg.connect(dsn) as other:
        rows = other.execute("SELECT xmin::text::int, s FROM t ORDER BY n").fetchall()
    assert rows == [(int(before or b"0") + 1, "off"), (int(before or b"0") + 1, "b")]
    assert (await wire.run(b"SHOW synchronous_commit"))[0].get_value(0, 0) == b"on"


async def test_the_server_keeps_no_more_than_so_many_statements_prepared(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.store.wire.PREPARED_MAX", 3)
    for n in range(20):
        await wire.call([Call(b"INSERT INTO t VALUES ($1, '%d')" % n, [b"%d" % n]), inserted(100 + n, "again")])
        kept = int((await wire.run(b"SELECT count(*) FROM pg_prepared_statements"))[0].get_value(0, 0) or b"-1")
        assert 2 <= kept <= 5
    assert await count(wire) == 40


async def test_a_connection_ended_during_a_call_breaks_the_wire(dsn: str, wire: Wire, connection: AsyncConnection[Any]) -> None:
    running = asyncio.create_task(wire.call([inserted(1, "a"), Call(b"SELECT pg_sleep(60)", [])]))
    with psycopg.connect(dsn, autocommit=True) as other:
        while other.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", (connection.pgconn.backend_pid,)).fetchone() != ("active",):
            await asyncio.sleep(0)
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (connection.pgconn.backend_pid,))
    with pytest.raises(WireBroken):
        await asyncio.wait_for(running, 20)
    with pytest.raises(WireBroken):
        await wire.call([inserted(1, "a")])


async def test_calls_larger_than_every_buffer_arrive_whole(wire: Wire) -> None:
    await wire.call([inserted(n, "x" * (4 << 20)) for n in range(4)])
    assert (await wire.run(b"SELECT sum(length(s)) FROM t"))[0].get_value(0, 0) == b"%d" % (16 << 20)
