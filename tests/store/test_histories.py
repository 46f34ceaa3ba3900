"""PostgreSQL answers what the simulator asks as its twin in memory did, call by call, for whole histories: what the simulator proves holds for both."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_core.engine.commands import TakeOver
from broker_core.engine.message import Message
from broker_core.engine.properties import Properties, takes
from broker_core.engine.reads import PageWanted
from broker_core.stomp.mapping import decode
from broker_core.store.commit import SHORT_MESSAGES
from tests.store.histories import Call, history
from tests.store.rows import told
from tests.store.test_postgres import PostgresRig, compared, rig
from tests.support.seeds import soon

__all__ = ["rig"]


@pytest.fixture(params=soon(range(1_000, 1_003), 1))
def calls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Played before the test's own event loop is there."""
    return history(request.param, monkeypatch)


@pytest.fixture(params=(SHORT_MESSAGES, -1), ids=("short commits", "every commit by COPY"))
def shortness(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.store.commit.SHORT_MESSAGES", request.param)


@pytest.mark.usefixtures("shortness")
async def test_postgresql_answers_a_history_as_its_twin_does(calls: list[Call], rig: PostgresRig) -> None:
    store: Any = None
    counts: Counter[str] = Counter()
    for number, call in enumerate(calls):
        counts[call.method] += 1
        if call.method == "open":
            await rig.close()  # of ten terms the server has no connections for all
            store = await rig.open()
        elif call.method == "recover":
            assert compared(await store.recover()) == compared(call.answer), number
        elif call.method == "read":
            found, complete = await store.read(call.argument)
            counts["scans"] += isinstance(call.argument, PageWanted) and call.argument.wanted is not None
            assert alike(call, found, complete), difference(number, call, found, complete)
        elif call.method == "sent":
            rig.insert(call.argument)
        elif call.method == "inbox":
            assert list(map(arrived, await store.inbox(*call.argument))) == list(map(arrived, call.answer)), number
        elif call.method == "write_body":
            assert await store.write_body(chunks(call.argument)) == call.answer, number
        else:
            assert await getattr(store, call.method)(call.argument) == call.answer, (number, call)
    assert counts["commit"] > 200 and counts["read"] > 300 and counts["scans"] > 5 and counts["sent"] > 10, counts


async def chunks(body: list[bytes]) -> AsyncIterator[bytes]:
    for octets in body:
        yield octets


def alike(call: Call, found: list[Message], complete: bool) -> bool:
    """Of a scan's page what its filter takes: stores may leave out more or less of the rest, and so be cut elsewhere."""
    expected, expected_complete = call.answer
    if not isinstance(call.argument, PageWanted) or call.argument.wanted is None:
        return ([said(row) for row in found], complete) == ([said(row) for row in expected], expected_complete)
    ends = [call.argument.upto if all_of_them else rows[-1].position for rows, all_of_them in ((found, complete), (expected, expected_complete))]
    ours, twins = ([said(row) for row in rows if row.position <= min(ends) and wants(call.argument, row)] for rows in (found, expected))
    return ours == twins


def arrived(arrival: TakeOver) -> tuple[object, ...]:
    message = arrival.message
    header = message.header
    stated = (header.octets, header.priority, header.reliability, header.expiration, header.message_id, header.delay, header.duplicate_id)
    return (arrival.entry, arrival.address, arrival.sent_at, message.body, message.size, *stated)


def said(row: Message) -> tuple[object, ...]:
    """All but the lane: one that no durable subscription wanted lies in a volatile one, which only its place tells (paging.as_placed)."""
    facts = told(row)
    return facts[:8] + facts[9:]


def wants(read: PageWanted, row: Message) -> bool:
    assert read.wanted is not None
    return takes(read.wanted, Properties(_Shard, row))  # type: ignore[arg-type]


class _Shard:
    decode = staticmethod(decode)


def difference(number: int, call: Call, found: list[Message], complete: bool) -> str:
    """For people."""
    expected, expected_complete = call.answer
    ours, twins = ([said(row) for row in rows] for rows in (found, expected))
    return f"call {number}, {call.argument}\nPostgreSQL {ours}, {complete}\nits twin   {twins}, {expected_complete}"
