"""Large bodies on their way in (R16): part by part, before their message."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.stomp.frames import serialise
from broker_core.store import CommitLost
from broker_core.store.memory_tables import Fault

from .conftest import Run
from .large_bodies import LARGE, SIZES
from .rig import Broker, turns


def test_a_store_that_loses_a_body_ends_the_run_and_confirms_nothing(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        client = await broker.client()
        broker.faults["write_body"] = [Fault.LOST]
        client.send(LARGE, "1")
        with pytest.raises(CommitLost):
            await asyncio.wait_for(broker.running, 10)
        assert client.take() == []
        await broker.end()

    run(story())


def test_a_store_that_fails_between_two_parts_ends_the_run_at_once(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        client = await broker.client()
        broker.faults["write_body"] = [Fault.LOST]
        client.octets(b"SEND\ndestination:/queue/q\ncontent-length:1000000\n\n" + LARGE[:100_000])
        with pytest.raises(CommitLost):
            await asyncio.wait_for(broker.running, 10)
        await broker.end()

    run(story())


def test_a_body_without_room_closes_its_connection_and_no_other(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        client, other = await broker.client(), await broker.client()
        broker.faults["write_body"] = [Fault.FULL]
        client.send(LARGE, "1")
        client.send(b"after", "2")
        await turns()
        assert client.commands() == ["ERROR"]
        assert client.wire.gone
        assert broker.space.low
        await asyncio.sleep(3)
        broker.space.look()
        other.send(b"m", "1")
        await turns()
        assert other.receipts() == ["1"]
        await broker.end()

    run(story())


def test_a_connection_cut_within_a_body_leaves_no_message_and_no_task(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        client = await broker.client()
        tasks = asyncio.all_tasks()
        client.octets(b"SEND\ndestination:/queue/q\ncontent-length:1000000\n\n" + LARGE)
        await turns()
        client.wire.lose()
        await turns()
        assert "queue/q" not in broker.engine.shard.destinations
        assert asyncio.all_tasks() == tasks
        await broker.end()

    run(story())


def test_what_a_connection_asked_for_behind_a_body_is_forgotten_with_the_connection(run: Run) -> None:
    """It breaks the protocol behind the body, and does not read its ERROR: the socket stays for a while, the engine knows the peer no more."""

    async def story() -> None:
        broker = await Broker(**SIZES).start()
        hostile, other = await broker.client(), await broker.client("q")
        hostile.wire.reads = False
        body = b"SEND\ndestination:/queue/q\ncontent-length:%d\n\n%b\0" % (len(LARGE), LARGE)
        hostile.octets(body + b"SUBSCRIBE\nid:1\ndestination:/queue/q\n\n\0NONSENSE\n\n\0")
        await turns(200)
        assert not hostile.wire.gone
        assert not broker.running.done(), "nobody else's service ends with it"
        other.send(b"m", "1")
        await turns()
        assert "RECEIPT" in other.commands()
        await broker.end()

    run(story())


def test_a_connection_cut_while_the_store_is_slow_leaves_no_task(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        client = await broker.client()

        async def stuck(_chunks):
            await asyncio.get_running_loop().create_future()

        monkeypatch.setattr(broker.store, "write_body", stuck)
        tasks = asyncio.all_tasks()
        client.octets(b"SEND\ndestination:/queue/q\ncontent-length:1000000\n\n" + LARGE)
        await turns()
        assert client.wire.paused, "a slow store is not sent more parts than it takes"
        client.wire.lose()
        await turns()
        assert asyncio.all_tasks() == tasks
        await broker.end()

    run(story())


def test_the_body_is_stored_before_its_message_and_frames_behind_it_keep_their_order(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        client = await broker.client("q")
        client.send(b"before", "1")
        client.send(LARGE, "2")
        client.send(b"after", "3")
        await turns(200)
        frames = client.take()
        assert [h["receipt-id"] for command, h, _ in frames if command == "RECEIPT"] == ["1", "2", "3"]
        assert [body for command, _, body in frames if command == "MESSAGE"] == [b"before", LARGE, b"after"]
        (_epoch, chunks), = broker.database.tables.bodies.values()
        assert b"".join(chunks) == LARGE
        await broker.end()

    run(story())


@pytest.mark.parametrize("cut", [1, 2, 5_000], ids=lambda cut: f"the_last_{cut}_octets_late")
@pytest.mark.parametrize("transaction", [(), (("transaction", "t"),)], ids=["plain", "transacted"])
def test_a_body_whose_end_comes_late_is_whole(run: Run, cut: int, transaction: tuple[tuple[str, str], ...]) -> None:
    """Its parts are with the store when nothing but its end, and no part with it, arrives."""

    async def story() -> None:
        broker = await Broker(**SIZES).start()
        client = await broker.client("q")
        client.say("BEGIN", ("transaction", "t"))
        frame = serialise("SEND", [("destination", "/queue/q"), ("content-length", str(len(LARGE))), ("receipt", "1"), *transaction], LARGE)
        client.octets(frame[:-cut])
        await turns(200)
        client.octets(frame[-cut:])
        client.say("COMMIT", ("transaction", "t"))
        await turns(200)
        assert not broker.running.done()
        assert [body for command, _, body in client.take() if command == "MESSAGE"] == [LARGE]
        await broker.end()

    run(story())
