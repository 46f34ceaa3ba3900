"""Full destinations on the wire: producers wait for their receipts, and are not disconnected for it (R20)."""

from __future__ import annotations

import asyncio

from broker_core.engine import Limits
from broker_core.engine.settings import Settings
from broker_core.stomp.limits import Limits as StompLimits

from .conftest import Run
from .rig import Broker, turns

LIMITS = Limits(settings=Settings(redelivery_delay_ms=0, max_messages=2))


async def fill(broker: Broker) -> None:
    client = await broker.client()
    for number in range(2):
        client.send(b"m", str(number))
    await turns()
    assert client.receipts() == ["0", "1"]


def test_a_producer_that_fills_a_queue_is_not_read_from_and_goes_on_when_there_is_room(run: Run) -> None:
    async def story() -> None:
        broker = Broker()
        broker.stomp_limits = StompLimits(unconfirmed_max=3)
        await broker.start(LIMITS)
        await fill(broker)
        producer = await broker.client()
        for number in range(3):
            producer.send(b"m", f"late {number}")
        await asyncio.sleep(10)
        assert producer.take() == [] and producer.wire.paused and not producer.wire.gone
        consumer = await broker.client("q")
        await turns()
        for _ in range(5):
            await turns()
            for frame in [frame for frame in consumer.take() if frame[0] == "MESSAGE"]:
                consumer.ack(frame)
            await turns()
        assert producer.receipts() == ["late 0", "late 1", "late 2"]
        assert not producer.wire.paused
        await broker.end()

    run(story())


def test_a_connection_with_subscriptions_is_read_on_and_told_its_limit(run: Run) -> None:
    async def story() -> None:
        broker = Broker()
        broker.stomp_limits = StompLimits(unconfirmed_max=2, subscriber_unconfirmed_factor=2)
        await broker.start(LIMITS)
        await fill(broker)
        producer = await broker.client("other")
        for number in range(4):
            producer.send(b"m", f"late {number}")
        await turns()
        assert producer.take() == [] and not producer.wire.paused
        producer.send(b"m", "one too many")
        await turns()
        (error,) = producer.take()
        assert error[0] == "ERROR" and "4 sends wait for their receipt" in error[1]["message"] + error[2].decode()
        assert broker.engine.shard.waiting_octets == 0
        await broker.end()

    run(story())


def test_disconnect_is_answered_when_what_waits_has_come_in(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start(LIMITS)
        await fill(broker)
        producer = await broker.client()
        producer.send(b"m", "late")
        producer.say("DISCONNECT", ("receipt", "bye"))
        await asyncio.sleep(10)
        assert producer.take() == []
        consumer = await broker.client("q")
        await turns()
        for frame in consumer.take():
            consumer.ack(frame)
        await turns()
        assert producer.receipts() == ["late", "bye"]
        await broker.end()

    run(story())


def test_who_loses_patience_leaves_nothing_behind(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start(LIMITS)
        await fill(broker)
        producer = await broker.client()
        producer.send(b"x" * 300_000, "large")
        await turns()
        producer.wire.lose()
        await turns()
        assert (broker.engine.shard.waiting_octets, broker.engine.shard.destinations["queue/q"].depth) == (0, 2)
        await asyncio.sleep(2)
        assert not broker.database.tables.bodies
        await broker.end()

    run(story())


def test_a_consumer_too_many_is_told_so_and_a_backup_takes_over_in_order(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start(Limits(settings=Settings(redelivery_delay_ms=0, max_active_consumers=1, max_backup_consumers=1)))
        first, second = await broker.client("q"), await broker.client("q")
        third = await broker.client("q")
        (error,) = third.take()
        assert (error[0], error[1]["message"]) == ("ERROR", "too many consumers")
        for number in range(3):
            first.send(b"%d" % number)
        await turns()
        assert [frame[2] for frame in first.take()] == [b"0", b"1", b"2"]
        first.wire.lose()
        await turns()
        again = second.take()
        assert [(frame[2], frame[1]["redelivered"]) for frame in again] == [(b"0", "true"), (b"1", "true"), (b"2", "true")]
        await broker.end()

    run(story())
