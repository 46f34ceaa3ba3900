"""What sessions of the database send is found by the node within its interval, taken a page at a time, and waits while there is no room (R17, R21)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.engine.commands import TakeOver
from broker_core.engine.message import Header, Message, Reliability
from broker_core.server import inbox
from broker_core.server.inbox import Inbox
from broker_core.store import CommitLost
from broker_core.store.memory_tables import Fault

from .conftest import Run
from .rig import START, Broker, turns


def sent(broker: Broker, *bodies: bytes) -> None:
    """A transaction of somebody's, committed."""
    header = Header(b"destination:/queue/q", 4, Reliability.ASSURED)
    broker.database.send(*(TakeOver(broker.database.number(), "queue/q", Message(header, body, len(body)), START) for body in bodies))


async def taking(broker: Broker) -> asyncio.Task[None]:
    await broker.start()
    return asyncio.create_task(Inbox(broker.store, broker.host).run())


async def ended(broker: Broker, task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await broker.end()


def bodies(client: Any) -> list[bytes]:
    return [body for command, _, body in client.take() if command == "MESSAGE"]


def test_nothing_is_taken_while_there_is_no_disk_space_and_all_of_it_afterwards(run: Run) -> None:
    async def story() -> None:
        broker = Broker()
        task = await taking(broker)
        client = await broker.client("q")
        broker.space.low = True
        sent(broker, b"a")
        await asyncio.sleep(5)
        assert (bodies(client), len(broker.database.tables.inbox)) == ([], 1)
        broker.space.low = False
        await asyncio.sleep(1)
        assert (bodies(client), broker.database.tables.inbox) == ([b"a"], {})
        await ended(broker, task)

    run(story())


def test_a_page_that_was_read_before_the_space_ran_out_waits_too(run: Run) -> None:
    async def story() -> None:
        broker = Broker()
        task = await taking(broker)
        client = await broker.client("q")
        right = broker.store.inbox

        async def late(limit: int, bytes_max: int) -> list[TakeOver]:
            found = await right(limit, bytes_max)
            broker.space.low = broker.space.low or bool(found)
            return found

        broker.store.inbox = late  # type: ignore[method-assign]
        sent(broker, b"a")
        await asyncio.sleep(5)
        assert (bodies(client), len(broker.database.tables.inbox)) == ([], 1)
        broker.space.low = False
        await asyncio.sleep(1)
        assert bodies(client) == [b"a"]
        await ended(broker, task)

    run(story())


def test_a_commit_that_is_lost_ends_it_and_the_next_term_takes_it(run: Run) -> None:
    async def story() -> None:
        broker = Broker()
        task = await taking(broker)
        broker.faults["commit"] = [Fault.LOST]
        sent(broker, b"a")
        with pytest.raises(CommitLost):
            await task
        with pytest.raises(CommitLost):
            await broker.running
        await broker.end()
        again = Broker(broker.database)
        task = await taking(again)
        client = await again.client("q")
        await asyncio.sleep(1)
        assert bodies(client) == [b"a"]
        await ended(again, task)

    run(story())


def test_it_is_found_within_the_interval_in_pages_each_with_its_commit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "PAGE_ROWS", 2)

    async def story() -> None:
        broker = Broker()
        task = await taking(broker)
        client = await broker.client("q")
        await asyncio.sleep(1)
        sent(broker, b"a", b"b", b"c", b"d", b"e")
        await asyncio.sleep(inbox.POLL_SECONDS)
        await turns()
        assert bodies(client) == [b"a", b"b", b"c", b"d", b"e"]
        assert [len(commit.taken) for commit in broker.store.commits if commit.taken] == [2, 2, 1]
        await ended(broker, task)

    run(story())


def test_a_look_that_took_long_is_followed_by_a_rest(run: Run) -> None:
    async def story() -> None:
        broker, looks = Broker(), []
        await broker.start()

        async def slow(_limit: int, _bytes_max: int) -> list[TakeOver]:
            looks.append(asyncio.get_running_loop().time())
            await asyncio.sleep(0.3)
            return []

        broker.store.inbox = slow  # type: ignore[method-assign]
        task = asyncio.create_task(Inbox(broker.store, broker.host).run())
        await asyncio.sleep(33)
        assert 9 <= len(looks) <= 11
        await ended(broker, task)

    run(story())
