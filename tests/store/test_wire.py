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
from broker_core.store.wire import StatementFailed, Wire, WireBroken

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
