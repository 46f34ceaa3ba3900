"""Large bodies on their way out (R16): chunk by chunk, at the socket's pace, settled when they have left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from broker_core.engine import Limits
from broker_core.engine.commands import Control
from broker_core.engine.settings import Settings
from broker_core.server import large_bodies

from .conftest import Run
from .large_bodies import LARGE, SIZES
from .rig import Broker, Client, turns


def test_a_link_that_waits_for_a_body_delays_no_other_connection(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        waiting, producer, other = await broker.client("large"), await broker.client(), await broker.client("small")
        door = broker.store.shut("read_body")
        producer.send(LARGE, "1", "large")
        producer.send(b"m", "2", "small")
        await turns(200)
        assert [frame[2] for frame in other.take()] == [b"m"]
        assert waiting.take() == []
        door.set()
        await turns(200)
        assert [frame[2] for frame in waiting.take()] == [LARGE]
        await broker.end()

    run(story())


def test_a_body_on_its_way_to_an_auto_client_counts_as_acknowledged_only_when_it_has_left(run: Run) -> None:
    """Settled before, its segment could be dropped and the body with it, in the middle of the frame: the message would be nowhere."""

    async def story() -> None:
        broker = await Broker(**SIZES).start()
        auto, producer = await broker.client(), await broker.client()
        auto.say("SUBSCRIBE", ("id", "1"), ("destination", "/queue/q"), ("ack", "auto"))
        door = broker.store.shut("read_body")
        producer.send(LARGE, "1")
        await turns(200)
        await asyncio.sleep(1)
        queue = broker.engine.shard.destinations["queue/q"]
        assert queue.depth == 1
        door.set()
        await turns(200)
        assert [frame[2] for frame in auto.take()] == [LARGE]
        await asyncio.sleep(1)
        assert queue.depth == 0
        await broker.end()

    run(story())


@pytest.mark.parametrize("order", [("auto", "client"), ("client", "auto")], ids=["auto_first", "auto_last"])
def test_of_two_frames_with_one_body_only_that_of_the_auto_subscription_settles_it(run: Run, monkeypatch: pytest.MonkeyPatch, order: tuple[str, str]) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        both, producer = await broker.client(), await broker.client()
        for ack in order:
            both.say("SUBSCRIBE", ("id", ack), ("destination", "/topic/t"), ("ack", ack))
        await turns()
        auto, _ = sorted(broker.engine.shard.destinations["topic/t"].subscriptions, key=lambda s: not next(iter(s.links.values())).presettled)
        second = asyncio.Event()
        read, reading = broker.store.read_body, iter([False, True])

        async def read_body(body: int) -> AsyncIterator[bytes]:
            if next(reading):
                await second.wait()
            async for chunk in read(body):
                yield chunk

        monkeypatch.setattr(broker.store, "read_body", read_body)
        producer.say("SEND", ("destination", "/topic/t"), ("content-length", str(len(LARGE))), body=LARGE)
        await turns(200)
        await asyncio.sleep(1)
        assert auto.depth == (order[0] == "client"), "what has not left is not settled"
        second.set()
        await turns(200)
        assert [headers["subscription"] for _, headers, body in both.take() if body == LARGE] == list(order)
        await asyncio.sleep(1)
        assert auto.depth == 0
        await broker.end()

    run(story())


def test_an_auto_subscription_closed_while_its_body_is_streamed_is_closed_in_peace(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        auto, producer = await broker.client(), await broker.client()
        auto.say("SUBSCRIBE", ("id", "1"), ("destination", "/queue/q"), ("ack", "auto"))
        door = broker.store.shut("read_body")
        producer.send(LARGE, "1")
        await turns(200)
        auto.say("UNSUBSCRIBE", ("id", "1"), ("receipt", "gone"))
        await turns()
        door.set()
        await turns(200)
        assert auto.commands() == ["MESSAGE", "RECEIPT"]
        assert not auto.wire.gone
        await broker.end()

    run(story())


async def streaming(broker: Broker, consumer: Client, reliability: str = "express") -> Client:
    """The consumer is in the middle of a large body; another connection sent it."""
    consumer.wire.reads, consumer.wire.high = False, 70_000
    producer = await broker.client()
    producer.send(LARGE, "1", reliability=reliability)
    await turns(200)
    return producer


EARLY = ["ACK\nid:1.1\n\n\0", "ACK\nid:1.1\nreceipt:r\n\n\0", "ACK\nid:1.1\n\n\0UNSUBSCRIBE\nid:q\n\n\0", "ACK\nid:1.1\n\n\0DISCONNECT\nreceipt:r\n\n\0"]


@pytest.mark.parametrize("frames", EARLY)
def test_a_body_acknowledged_before_it_has_left_leaves_whole(run: Run, frames: str) -> None:
    """Settled at once, a volatile message's body would be gone in the middle of the frame, and with it the connection."""

    async def story() -> None:
        broker = await Broker(**SIZES).start()
        consumer = await broker.client("q")
        await streaming(broker, consumer)
        consumer.octets(frames.encode())
        await asyncio.sleep(1)
        assert broker.database.tables.bodies, "it is not settled yet"
        consumer.wire.read_all()
        await asyncio.sleep(1)
        got = consumer.take()
        assert [body for command, _, body in got if command == "MESSAGE"] == [LARGE]
        assert [command for command, _, _ in got] == ["MESSAGE", *(["RECEIPT"] if "receipt" in frames else [])]
        assert "abort" not in consumer.wire.calls
        assert not broker.database.tables.bodies, "but now"
        await broker.end()

    run(story())


def test_a_subscription_closed_in_the_middle_of_a_body_gives_the_message_back_when_the_body_has_left(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        first, second = await broker.client("q"), await broker.client("q")
        await streaming(broker, first)
        first.say("UNSUBSCRIBE", ("id", "q"), ("receipt", "r"))
        await turns(200)
        assert second.take() == [], "it could acknowledge it, and end the body of the first"
        first.wire.read_all()
        await turns(200)
        assert first.commands() == ["MESSAGE", "RECEIPT"]
        (_, headers, body), = second.take()
        assert (body, headers["redelivered"]) == (LARGE, "true")
        assert not first.wire.gone
        await broker.end()

    run(story())


def test_what_was_acknowledged_in_the_middle_of_a_body_counts_also_if_the_connection_breaks(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        consumer, producer = await broker.client("q"), await broker.client()
        producer.send(b"small", "1")
        await turns()
        (small,) = consumer.take()
        await streaming(broker, consumer, "assured")
        consumer.ack(small)
        await turns()
        consumer.wire.lose()
        await turns()
        other = await broker.client("q")
        await turns(200)
        assert [body for _, _, body in other.take()] == [LARGE]
        await broker.end()

    run(story())


def test_sends_of_a_consumer_are_taken_while_a_body_is_streamed_to_it(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        consumer, other = await broker.client("q"), await broker.client("r")
        await streaming(broker, consumer)
        consumer.send(b"m", "1", "r")
        await turns()
        assert [body for _, _, body in other.take()] == [b"m"]
        await broker.end()

    run(story())


def test_a_client_that_acknowledges_without_end_and_does_not_read_is_not_read_either(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_bodies, "HELD_MAX", 10)

    async def story() -> None:
        broker = await Broker(**SIZES).start()
        consumer = await broker.client("q")
        await streaming(broker, consumer)
        for number in range(11):
            assert not consumer.wire.paused
            consumer.say("ACK", ("id", "1.1"), ("receipt", str(number)))
            await turns()
        assert consumer.wire.paused
        consumer.wire.read_all()
        await turns(200)
        assert not consumer.wire.paused
        assert consumer.receipts() == [str(number) for number in range(11)]
        await broker.end()

    run(story())


def test_a_body_cut_off_on_its_way_to_an_auto_client_goes_to_another_flagged(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        auto, producer = await broker.client(), await broker.client()
        auto.say("SUBSCRIBE", ("id", "1"), ("destination", "/queue/q"), ("ack", "auto"))
        door = broker.store.shut("read_body")
        producer.send(LARGE, "1")
        await turns(200)
        await asyncio.sleep(1)
        auto.wire.lose()
        await turns()
        door.set()
        other = await broker.client("q")
        await turns(200)
        (_, headers, body), = other.take()
        assert body == LARGE
        assert headers["redelivered"] == "true"
        await broker.end()

    run(story())


@pytest.mark.parametrize("ack", ["auto", "client-individual"])
def test_the_body_of_a_volatile_message_goes_when_it_is_acknowledged(run: Run, ack: str) -> None:
    """No segment takes it along. Express is what clients send without a word: kept until the next term, such bodies would fill the disk."""

    async def story() -> None:
        broker = await Broker(**SIZES).start()
        consumer, producer = await broker.client(), await broker.client()
        consumer.say("SUBSCRIBE", ("id", "1"), ("destination", "/queue/q"), ("ack", ack))
        producer.send(LARGE, "1", reliability="express")
        await turns(200)
        (frame,) = consumer.take()
        assert frame[2] == LARGE
        if ack != "auto":
            assert broker.database.tables.bodies
            consumer.ack(frame, "2")
        await asyncio.sleep(1)
        assert not broker.database.tables.bodies
        await broker.end()

    run(story())


def test_the_body_of_a_volatile_message_lives_on_in_the_dead_message_queue_until_it_is_consumed_there(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start(Limits(settings=Settings(redelivery_max=0)))
        consumer, producer = await broker.client("q"), await broker.client()
        producer.send(LARGE, "1", reliability="express")
        await turns(200)
        (frame,) = consumer.take()
        consumer.say("NACK", ("id", frame[1]["ack"]))
        undertaker = await broker.client("mq.sys.dmq")
        await turns(200)
        (dead,) = undertaker.take()
        assert dead[2] == LARGE
        undertaker.ack(dead, "1")
        await asyncio.sleep(1)
        assert not broker.database.tables.bodies
        await broker.end()

    run(story())


def test_the_body_of_a_refused_or_purged_message_goes(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        producer = await broker.client()
        producer.send(LARGE, "1", reliability="express")
        await turns(200)
        assert len(broker.database.tables.bodies) == 1
        for verb, arguments in (("purge", {}), ("pause", {"direction": "PRODUCERS"})):
            broker.host.submit([Control(broker.database.request(verb, "queue/q", arguments), verb, "queue/q", arguments)])
        await asyncio.sleep(1)
        assert not broker.database.tables.bodies
        producer.send(LARGE, "2")
        await turns(200)
        assert "ERROR" in producer.commands()
        assert not broker.database.tables.bodies
        await broker.end()

    run(story())


def test_while_a_body_is_streamed_nothing_more_piles_up_behind_it(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        consumer, producer = await broker.client(), await broker.client()
        consumer.say("SUBSCRIBE", ("id", "1"), ("destination", "/queue/q"), ("ack", "auto"), ("prefetch-count", "10"))
        door = broker.store.shut("read_body")
        producer.send(LARGE, "0")
        await turns(200)
        for number in range(1, 50):
            producer.send(b"%d" % number, str(number))
            await asyncio.sleep(0.2)
        assert len(consumer.peer._outgoing) <= 3
        door.set()
        await asyncio.sleep(5)
        assert [frame[2] for frame in consumer.take()] == [LARGE, *(b"%d" % n for n in range(1, 50))]
        await broker.end()

    run(story())


def test_a_slow_socket_pauses_the_stream(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        consumer, producer = await broker.client("q"), await broker.client()
        consumer.wire.reads, consumer.wire.high = False, 70_000
        producer.send(LARGE, "1")
        await turns(200)
        assert len(consumer.wire.waiting) <= 200_000
        consumer.wire.read_all()
        await turns(200)
        assert [frame[2] for frame in consumer.take()] == [LARGE]
        await broker.end()

    run(story())


def test_a_body_that_is_gone_closes_the_connection_in_whose_frame_it_was_and_no_other(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        producer, other = await broker.client(), await broker.client()
        producer.send(LARGE, "1")
        await turns(200)
        broker.database.tables.bodies.clear()
        consumer = await broker.client("q")
        await turns()
        assert consumer.wire.gone
        assert not broker.running.done()
        other.send(b"m", "1")
        await turns()
        assert other.receipts() == ["1"]
        await broker.end()

    run(story())


def test_a_consumer_lost_within_a_body_leaves_no_task_and_the_message_goes_to_another(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        consumer, producer = await broker.client("q"), await broker.client()
        consumer.wire.reads, consumer.wire.high = False, 70_000
        tasks = asyncio.all_tasks()
        producer.send(LARGE, "1")
        await turns(200)
        consumer.wire.lose()
        await turns()
        assert asyncio.all_tasks() == tasks
        second = await broker.client("q")
        await turns(200)
        assert [frame[2] for frame in second.take()] == [LARGE]
        await broker.end()

    run(story())


def test_a_dead_consumer_is_closed_although_a_body_waits_for_its_socket(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(**SIZES).start()
        consumer, producer = await broker.client("q", **{"heart-beat": "1000,0"}), await broker.client()
        consumer.wire.reads, consumer.wire.high = False, 70_000
        producer.send(LARGE, "1")
        await turns(200)
        await asyncio.sleep(30)
        assert consumer.wire.gone
        await broker.end()

    run(story())
