"""Browsers over a connection: at the socket's pace, and with large bodies that leave whole whatever becomes of their messages."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.engine import Limits

from .conftest import Run
from .rig import Broker, Client, turns

LARGE = bytes(range(256)) * 1000
SIZES = {"large_body_octets": 4096, "body_chunk_octets": 65_536}


def look(client: Client, *more: tuple[str, str]) -> None:
    client.say("SUBSCRIBE", ("id", "b"), ("destination", "/queue/q"), ("browser", "true"), *more)


def ended(client: Client) -> tuple[list[bytes], bool]:
    """The bodies of the copies, and whether these were all."""
    frames = client.take()
    bodies = [body for command, headers, body in frames if command == "MESSAGE" and headers.get("browser") != "end"]
    return bodies, bool(frames) and frames[-1][1].get("browser") == "end"


async def rest(seconds: float = 1.0) -> None:
    await turns(100)
    await asyncio.sleep(seconds)
    await turns(100)


@pytest.mark.parametrize("reliability", ["express", "assured"])
def test_a_queue_is_browsed_to_its_end_without_consuming_anything(run: Run, reliability: str) -> None:
    async def story() -> None:
        broker = await Broker().start(Limits(page_rows=10, window_rows=20))
        producer, browser = await broker.client(), await broker.client()
        sent = [b"m%d" % number for number in range(95)]
        for body in sent:
            producer.send(body, reliability=reliability)
        await turns()
        look(browser)
        await rest()
        assert ended(browser) == (sent, True)
        assert broker.engine.shard.destinations["queue/q"].depth == 95
        await broker.end()

    run(story())


def test_a_browser_that_does_not_read_is_read_nothing_for(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start(Limits(page_rows=10))
        producer, browser = await broker.client(), await broker.client()
        for _ in range(200):
            producer.send(b"x" * 1000)
        await turns()
        browser.wire.reads, browser.wire.high = False, 20_000
        look(browser)
        await rest()
        shard = broker.engine.shard
        read = shard.read_number
        assert read < 10 and not shard.browsing.read
        assert all(not open_one.octets for open_one in shard.browsing.browsers.values())
        await rest()
        assert shard.read_number == read
        browser.wire.read_all()
        await rest()
        assert ended(browser) == ([b"x" * 1000] * 200, True)
        await broker.end()

    run(story())


async def browsing_a_large_body(broker: Broker, reliability: str) -> tuple[Client, Client]:
    """A browser that is in the middle of a large body, and the consumer that holds its message."""
    consumer, producer, browser = await broker.client("q"), await broker.client(), await broker.client()
    producer.send(LARGE, "1", reliability=reliability)
    await turns(200)
    browser.wire.reads, browser.wire.high = False, 70_000
    look(browser)
    await rest()
    return consumer, browser


@pytest.mark.parametrize("reliability", ["express", "assured"])
@pytest.mark.parametrize("gone", ["", "UNSUBSCRIBE\nid:b\n\n\0"])
def test_a_large_body_leaves_whole_though_its_message_is_consumed_meanwhile(run: Run, reliability: str, gone: str) -> None:
    async def story() -> None:
        broker = await Broker(report_seconds=0.05, **SIZES).start(Limits(segment_rows=1))
        consumer, browser = await browsing_a_large_body(broker, reliability)
        (frame,) = [frame for frame in consumer.take() if frame[0] == "MESSAGE"]
        consumer.ack(frame)
        if gone:
            browser.octets(gone.encode())
        await rest()
        shard = broker.engine.shard
        assert shard.destinations["queue/q"].depth == 0
        assert broker.database.tables.bodies, "it is on its way"
        browser.wire.read_all()
        await rest()
        bodies, _ = ended(browser)
        assert bodies == [LARGE] and not browser.wire.gone
        await rest()
        assert not broker.database.tables.bodies
        assert not shard.pinned and not shard.bodies
        await broker.end()

    run(story())


@pytest.mark.parametrize("reliability", ["express", "assured"])
def test_a_browser_lost_within_a_large_body_lets_it_go(run: Run, reliability: str) -> None:
    async def story() -> None:
        broker = await Broker(report_seconds=0.05, **SIZES).start(Limits(segment_rows=1))
        consumer, browser = await browsing_a_large_body(broker, reliability)
        (frame,) = [frame for frame in consumer.take() if frame[0] == "MESSAGE"]
        consumer.ack(frame)
        await rest()
        browser.wire.lose()
        await rest()
        assert not broker.database.tables.bodies
        await broker.end()

    run(story())


def test_one_connection_may_browse_and_consume_the_same_large_body(run: Run) -> None:
    """Both deliveries name the same body in the store; each counts as left when its own frame has."""

    async def story() -> None:
        broker = await Broker(report_seconds=0.05, **SIZES).start(Limits(segment_rows=1))
        producer, both = await broker.client(), await broker.client()
        producer.send(LARGE, "1", reliability="express")
        await turns(200)
        look(both)
        both.say("SUBSCRIBE", ("id", "c"), ("destination", "/queue/q"), ("ack", "auto"))
        await rest()
        frames = [(headers["subscription"], body) for _, headers, body in both.take() if headers.get("browser") != "end"]
        assert sorted(frames) == [("b", LARGE), ("c", LARGE)]
        await rest()
        assert not broker.database.tables.bodies
        await broker.end()

    run(story())
