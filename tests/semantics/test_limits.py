"""Limits of a destination as the client runtime meets them (checklist items 17 and 86): who waits, who is refused, and what becomes of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.client import DeliveryMode, JMSException, Queue, ResourceAllocationException
from broker_core.client.machine import Phase, Subscription
from broker_core.engine.policy import Policy
from tests.semantics.application import AUTO, Application, depth, node
from tests.server.conftest import Run
from tests.server.rig import Broker

PERSISTENT, NON_PERSISTENT = DeliveryMode.PERSISTENT, DeliveryMode.NON_PERSISTENT


async def limited(**settings: Any) -> Broker:
    broker = await node()
    broker.engine.shard.policies["queue/q"] = Policy("queue/q", settings)
    return broker


async def refusal(application: Application, body: str, **how: Any) -> JMSException:
    (confirmation,) = await application.send(body, **how)
    assert confirmation.error is not None
    return confirmation.error


# -- refused ------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "before", "body", "sentence"),
    [
        ({"max_messages": 1, "limit_behavior": "REJECT_NEWEST"}, ["a"], "b", "max_messages is 1"),
        ({"max_octets": 900, "limit_behavior": "REJECT_NEWEST"}, ["a"], "b" * 800, "max_octets is 900"),
        ({"max_message_octets": 500}, [], "b" * 500, "max_message_octets of queue/q is 500"),
    ],
)
def test_who_sends_a_persistent_message_that_does_not_fit_is_told_the_limit(
    run: Run, settings: dict[str, Any], before: list[str], body: str, sentence: str
) -> None:
    async def story() -> None:
        broker = await limited(**settings)
        application = await Application.connected(broker)
        await application.send(*before)
        error = await refusal(application, body)
        assert isinstance(error, ResourceAllocationException) and sentence in str(error)
        assert depth(broker) == len(before)
        await broker.end()

    run(story())


def test_one_that_is_not_persistent_is_dropped_and_nobody_is_told(run: Run) -> None:
    async def story() -> None:
        broker = await limited(max_messages=1, limit_behavior="REJECT_NEWEST")
        application = await Application.connected(broker, ack_on_produce=True)
        confirmations = await application.send("a", "dropped", delivery_mode=NON_PERSISTENT)
        assert [(each.is_settled, each.error) for each in confirmations] == [(True, None)] * 2
        assert depth(broker) == 1 and application.machine.phase is Phase.OPEN
        await broker.end()

    run(story())


def test_a_producer_too_many_is_refused_until_another_has_gone(run: Run) -> None:
    async def story() -> None:
        broker = await limited(max_producers=1)
        first = await Application.connected(broker)
        await first.send("a")
        error = await refusal(await Application.connected(broker), "b")
        assert isinstance(error, ResourceAllocationException) and "max_producers" in str(error)
        await first.dies()
        (confirmation,) = await (await Application.connected(broker)).send("c")
        assert confirmation.is_settled and confirmation.error is None
        await broker.end()

    run(story())


# -- waiting ------------------------------------------------------------------------------------------------------------------------------
def test_under_flow_control_a_producer_that_asks_for_the_brokers_word_waits_for_room_and_stays_connected(run: Run) -> None:
    async def story() -> None:
        broker = await limited(max_messages=2, limit_behavior="FLOW_CONTROL")
        producer, other = await Application.connected(broker), await Application.connected(broker)
        confirmations = await producer.send("a", "b", "c", "d")
        assert [each.is_settled for each in confirmations] == [True, True, False, False]
        await producer.passes(600)
        assert producer.machine.phase is Phase.OPEN and depth(broker) == 2
        consumer = await other.consumer(other.session(AUTO))
        assert await other.consume(consumer, 2) == ["a", "b"]
        await producer.turn()
        await other.turn()
        assert [(each.is_settled, each.error) for each in confirmations] == [(True, None)] * 4
        assert await other.consume(consumer, 2) == ["c", "d"]
        await broker.end()

    run(story())


def test_without_the_brokers_word_nobody_waits_and_there_is_only_the_limit(run: Run) -> None:
    async def story() -> None:
        broker = await limited(max_messages=1, limit_behavior="FLOW_CONTROL")
        application = await Application.connected(broker, ack_on_produce=False)
        assert await application.send("a") == []
        assert await application.send("dropped", delivery_mode=NON_PERSISTENT) == []
        assert application.machine.phase is Phase.OPEN and depth(broker) == 1
        await application.send("refused")
        assert application.machine.phase is Phase.CLOSED and isinstance(application.machine.failure, ResourceAllocationException)
        assert depth(broker) == 1
        await broker.end()

    run(story())


# -- making room --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("behavior", "left", "reason"), [("REMOVE_OLDEST", ["b", "c"], "OLDEST"), ("REMOVE_LOW_PRIORITY", ["a", "c"], "LOW_PRIORITY")])
def test_what_had_to_make_room_is_in_the_dead_message_queue_with_its_reason_and_the_producer_hears_nothing_of_it(
    run: Run, behavior: str, left: list[str], reason: str
) -> None:
    async def story() -> None:
        broker = await limited(max_messages=2, limit_behavior=behavior)
        application = await Application.connected(broker)
        for body, priority in (("a", 5), ("b", 1), ("c", 5)):
            (confirmation,) = await application.send(body, priority=priority)
            assert confirmation.is_settled and confirmation.error is None
        assert sorted(application.waiting(await application.consumer(application.session(AUTO)))) == left
        dead = broker.engine.shard.destinations["queue/mq.sys.dmq"]
        assert dead.depth == 1
        browser, _ = application.session(AUTO).create_consumer(Subscription(destination=Queue("mq.sys.dmq"), browses=True))
        await application.turn()
        taken = browser.next(0)
        assert taken is not None and taken[0].properties["JMS_SUN_DMQ_UNDELIVERED_REASON"] == reason
        await broker.end()

    run(story())


# -- times to live ------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "states", "lives"),
    [
        ({"time_to_live_ms": 5000}, None, 5), ({"time_to_live_ms": 5000}, 60.0, 60), ({"time_to_live_max_ms": 5000}, 60.0, 5),
        ({"time_to_live_max_ms": 5000}, None, 5), ({"time_to_live_ms": 4000, "time_to_live_max_ms": 5000}, 2.0, 2),
    ],
)  # fmt: skip
def test_a_message_lives_as_long_as_it_or_its_destination_says_and_no_longer_than_the_most(
    run: Run, settings: dict[str, int], states: float | None, lives: int
) -> None:
    async def story() -> None:
        broker = await limited(**settings)
        application = await Application.connected(broker)
        await application.send("m", time_to_live=states)
        await application.passes(lives - 0.5)
        assert depth(broker) == 1
        await application.passes(1)
        assert application.waiting(await application.consumer(application.session(AUTO))) == []
        await broker.end()

    run(story())
