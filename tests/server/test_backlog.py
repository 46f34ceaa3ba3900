"""What one read asks for may take seconds: it is done slice by slice, in order, and others are served in between."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.engine.invariants import check
from broker_core.server import backlog, host
from broker_core.stomp import connection
from broker_core.stomp.frames import serialise

from .conftest import Run
from .rig import Broker, Client, turns

TOPICS = 40


@pytest.fixture(autouse=True)
def slices_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what takes milliseconds here is what takes seconds elsewhere."""
    monkeypatch.setattr(host, "SLICE_EFFORT", 300)
    monkeypatch.setattr(backlog, "TURN_EFFORT", 300)
    monkeypatch.setattr(connection, "EFFORT_MAX", 300)


async def with_topics(**settings: int) -> Broker:
    broker = await Broker(**settings).start()
    producer = await broker.client()
    for topic in range(TOPICS):
        producer.say("SEND", ("destination", f"/topic/t.{topic}"))
    await turns()
    return broker


def pairs(count: int, **headers: str) -> bytes:
    """A subscription to all topics that ends at once, over and over."""
    subscribe = serialise("SUBSCRIBE", [("id", "w"), ("destination", "/topic/t.*"), ("receipt", "s"), *headers.items()])
    return (subscribe + serialise("UNSUBSCRIBE", [("id", "w"), ("receipt", "u")])) * count


def send(body: str, receipt: str = "") -> bytes:
    return serialise("SEND", [("destination", "/queue/q"), *([("receipt", receipt)] if receipt else [])], body.encode())


async def receipts_by_turn(client: Client, upto: str, turns_max: int = 2_000) -> list[str]:
    heard: list[str] = []
    for _ in range(turns_max):
        heard += client.receipts()
        if heard[-1:] == [upto]:
            return heard
        await asyncio.sleep(0)
    raise AssertionError(f"{upto} is not among {heard}")


def test_others_are_served_while_one_subscribes_to_patterns_over_and_over(run: Run) -> None:
    async def story() -> None:
        broker = await with_topics()
        greedy, modest = await broker.client(), await broker.client()
        greedy.octets(pairs(50) + send("m", "last"))
        modest.send(b"m", "1")
        await receipts_by_turn(modest, "1")
        assert len(greedy.receipts()) < 50
        assert (await receipts_by_turn(greedy, "last"))[-3:] == ["s", "u", "last"]
        await broker.end()

    run(story())


def test_no_slice_is_longer_than_one_command_beyond_its_bound(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        broker = await with_topics()
        client = await broker.client()
        efforts = []
        apply = broker.host.submit_slice

        def counted(commands: list[object]) -> object:
            left = apply(commands)  # type: ignore[arg-type]
            efforts.append(broker.host.effort)
            return left

        monkeypatch.setattr(broker.host, "submit_slice", counted)
        client.octets(pairs(20) + send("m", "last"))
        await receipts_by_turn(client, "last")
        assert sum(efforts) > 20 * 2 * 5 * TOPICS
        assert max(efforts) < 300 + 2 * 6 * TOPICS
        await broker.end()

    run(story())


def test_nothing_is_read_until_it_is_done_and_everything_is_done_in_order(run: Run) -> None:
    async def story() -> None:
        broker = await with_topics()
        consumer, client = await broker.client("q"), await broker.client()
        octets = b"".join(send(f"{number}", f"{number}") + pairs(1) for number in range(30))
        client.octets(octets)
        assert client.wire.paused
        for _ in range(3):
            client.octets(send("late"))  # what had been read before the pause
            await asyncio.sleep(0)
        client.octets(send("end", "end"))
        heard = [receipt for receipt in await receipts_by_turn(client, "end") if receipt.isdigit()]
        assert heard == [f"{number}" for number in range(30)]
        await turns()
        assert not client.wire.paused
        assert [frame[2].decode() for frame in consumer.take()] == [*heard, "late", "late", "late", "end"]
        await broker.end()

    run(story())


@pytest.mark.parametrize("after", [0, 1, 5])
def test_what_was_read_before_a_connection_was_lost_is_done_and_then_it_is_gone(run: Run, after: int) -> None:
    async def story() -> None:
        broker = await with_topics()
        consumer, client = await broker.client("q"), await broker.client()
        number = client.peer._number
        client.octets(pairs(20) + serialise("SUBSCRIBE", [("id", "w"), ("destination", "/topic/t.*")]) + send("last"))
        await turns(after)
        client.wire.lose()
        await turns(1)
        assert number in broker.engine.shard.peers
        await turns(2_000)
        assert number not in broker.engine.shard.peers
        assert [frame[2] for frame in consumer.take()] == [b"last"]
        assert not broker.engine.shard.patterns
        check(broker.engine)
        await broker.end()

    run(story())


def test_a_client_identifier_is_free_when_everything_its_connection_asked_for_is_done(run: Run) -> None:
    async def story() -> None:
        broker = await with_topics()
        durable = {"activemq.subscriptionName": "d"}
        first = await broker.client(**{"client-id": "c"})
        first.octets(pairs(20) + serialise("SUBSCRIBE", [("id", "w"), ("destination", "/topic/t.*"), *durable.items()]))
        first.wire.lose()
        second = broker.connect()
        second.say("CONNECT", ("accept-version", "1.2"), ("host", "/"), ("login", "guest"), ("client-id", "c"))
        second.say("SUBSCRIBE", ("id", "w"), ("destination", "/topic/t.*"), ("receipt", "1"), *durable.items())
        await asyncio.sleep(5)
        assert second.commands() == ["CONNECTED", "RECEIPT"]
        await broker.end()

    run(story())


def test_what_comes_behind_an_error_is_not_done(run: Run) -> None:
    async def story() -> None:
        broker = await with_topics()
        consumer, client = await broker.client("q"), await broker.client()
        number = client.peer._number
        refused = serialise("SUBSCRIBE", [("id", "x"), ("destination", "/topic/t.*"), ("activemq.subscriptionName", "d")])
        client.octets(send("before") + refused + pairs(50) + send("behind"))
        await turns(500)
        assert client.commands() == ["ERROR"]
        assert client.wire.gone
        assert number not in broker.engine.shard.peers
        assert [frame[2] for frame in consumer.take()] == [b"before"]
        assert not broker.engine.shard.patterns
        check(broker.engine)
        await broker.end()

    run(story())


def test_selectors_are_compiled_a_few_at_a_time(run: Run) -> None:
    async def story() -> None:
        broker = await with_topics()
        client, modest = await broker.client(), await broker.client()
        selector = "(" * 50 + "a = 1" + ")" * 50
        octets = [serialise("SUBSCRIBE", [("id", f"{n}"), ("destination", "/queue/q"), ("selector", f"{selector} AND b = {n}")]) for n in range(50)]
        client.octets(b"".join(octets) + send("m", "last"))
        assert len(broker.engine.shard.links) < 5
        modest.send(b"m", "1", "other")
        await receipts_by_turn(modest, "1")
        assert len(broker.engine.shard.links) < 50
        await receipts_by_turn(client, "last")
        assert len(broker.engine.shard.links) == 50
        await broker.end()

    run(story())


def test_what_comes_with_a_login_is_done_in_slices_too(run: Run) -> None:
    async def story() -> None:
        broker = await with_topics()
        client, modest = broker.connect(), await broker.client()
        client.octets(serialise("CONNECT", [("accept-version", "1.2"), ("host", "/"), ("login", "g")]) + pairs(50) + send("m", "last"))
        await turns(5)
        modest.send(b"m", "1")
        await receipts_by_turn(modest, "1")
        assert sum(command == "RECEIPT" for command in client.commands()) < 50
        await receipts_by_turn(client, "last")
        await broker.end()

    run(story())
