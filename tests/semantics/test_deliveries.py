"""Queues, topics and their ends: what a message's destination makes of it, whoever sends and whoever consumes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker_core.client import AcknowledgeMode, IllegalStateException, Queue, Topic
from broker_core.client.machine import Phase
from broker_core.client.settings import PROFILES, Profile
from broker_core.engine import commands as c
from broker_core.engine.policy import Policy
from broker_core.engine.settings import Settings
from broker_core.engine.outcome import Outcome
from broker_core.engine.message import Reliability
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, RELIABLE, START, Bench
from tests.semantics.application import AUTO, DUPS_OK, TRANSACTED, Application, Q, T, node
from tests.server.conftest import Run
from tests.engine.topic_rig import TOPIC, bench, durable, plain, publish, restart

NAMES = [f"m{number}" for number in range(30)]


def held(b: Bench, link: int) -> list[str]:
    return [b.body(message) for message in b.engine.shard.links[link].unsettled.values()]


# -- queues -----------------------------------------------------------------------------------------------------------------------------
def test_each_message_of_a_queue_goes_to_one_of_its_consumers_and_none_is_left_out() -> None:
    b = Bench()
    for link in (1, 2, 3):
        b.attach(link)
    b.send(*NAMES)
    shares = [held(b, link) for link in (1, 2, 3)]
    assert sorted(name for share in shares for name in share) == sorted(NAMES)
    assert [len(share) for share in shares] == [10, 10, 10]


def test_who_consumes_faster_gets_more() -> None:
    b = Bench()
    b.attach(1, credit=2)
    b.attach(2, credit=2)
    b.send(*NAMES)
    fast = held(b, 1)
    while len(held(b, 1)):
        fast += b.bodies(b.settle(*b.engine.shard.links[1].unsettled, link=1))
    assert len(fast) == 28 and len(held(b, 2)) == 2


@pytest.mark.parametrize(
    ("settings", "arrives"),
    [({}, {5: 5, 10: 5, 15: 5}), ({"consumer_flow_threshold": 20}, {8: 8, 16: 8}), ({"consumer_flow_threshold": 100}, dict.fromkeys(range(1, 17), 1))],
)
def test_a_consumer_is_available_again_when_it_has_consumed_a_percentage_of_its_flow_limit(
    run: Run, settings: dict[str, Any], arrives: dict[int, int]
) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker, consumer_flow_limit=10, **settings)
        consumer = await application.consumer(application.session(AUTO))
        await application.send(*NAMES)
        assert len(consumer.buffer) == 10
        came = {}
        for number in range(1, 17):
            application.wire.clear()
            await application.receive(consumer)
            if more := sum(line.startswith("< MESSAGE") for line in application.wire):
                came[number] = more
        assert came == arrives
        await broker.end()

    run(story())


@pytest.mark.parametrize("limit", [1, 7, 20])
@pytest.mark.parametrize(
    ("mode", "destination", "settings"),
    [(AUTO, Q, {"optimize_acknowledge": True}), (DUPS_OK, T, PROFILES[Profile.ACTIVEMQ]), (DUPS_OK, Q, {}), (TRANSACTED, Q, {})],
)
def test_where_a_destination_allows_less_nobody_waits_with_a_batch_for_what_does_not_come(
    run: Run, mode: AcknowledgeMode, destination: Queue | Topic, settings: dict[str, Any], limit: int
) -> None:
    """On a topic 50% of a prefetch of 32,767, of which the destination allows 20, and no time at which they are acknowledged anyway."""

    async def story() -> None:
        broker = await node()
        address = destination.address[1:]
        broker.engine.shard.policies[address] = Policy(address, {"consumer_flow_limit": limit})
        application = await Application.connected(broker, **settings)
        consumer = await application.consumer(application.session(mode), destination)
        await application.send(*NAMES, *NAMES, destination=destination)
        assert await application.consume(consumer, 60) == [*NAMES, *NAMES]
        await broker.end()

    run(story())


def test_with_more_consumers_than_messages_some_receive_nothing() -> None:
    b = Bench()
    for link in (1, 2, 3):
        b.attach(link)
    b.send("a", "b")
    assert sorted(len(held(b, link)) for link in (1, 2, 3)) == [0, 1, 1]


def test_a_queue_is_one_durable_subscription_that_its_consumers_share() -> None:
    b = Bench()
    b.attach(1)
    b.attach(2)
    (built_in,) = b.destination().subscriptions
    assert (built_in.durable, built_in.shared) == (True, True)
    b.apply(c.Detach(1, 1), c.Detach(1, 2))
    b.send("m")
    b.start()
    assert b.attach(1) == ["m"]


@pytest.mark.parametrize(("settings", "queue", "dead"), [({"redelivery_max": -1}, 1, 0), ({"redelivery_max": 0}, 0, 1), ({"use_dead": False}, 0, 0)])
def test_what_becomes_of_a_failed_message_its_destinations_properties_say(settings: dict[str, int], queue: int, dead: int) -> None:
    b = Bench(settings=Settings(redelivery_delay_ms=0, redelivery_max=0))
    b.control("create", QUEUE, **settings)
    b.send("m")
    b.attach()
    b.settle(1, outcome=Outcome.FAILED)
    assert (b.depth(), b.depth(DEAD)) == (queue, dead)


def test_what_becomes_of_a_message_its_destinations_kind_says() -> None:
    b = bench()
    for link, address in ((1, QUEUE), (2, QUEUE), (3, TOPIC), (4, TOPIC)):
        b.attach(link, address=address)
    b.send("m")
    publish(b, "m")
    assert sorted(len(held(b, link)) for link in (1, 2)) == [0, 1]
    assert [held(b, link) for link in (3, 4)] == [["m"], ["m"]]


# -- topics -----------------------------------------------------------------------------------------------------------------------------
def test_of_two_subscriptions_that_were_closed_meanwhile_the_durable_one_has_the_message() -> None:
    b = bench()
    plain(b, 1)
    durable(b, 2)
    assert publish(b, "to both") == ["to both", "to both"]
    b.settle(1, link=2, peer=2)
    b.apply(c.Detach(1, 1), c.Detach(2, 2))
    publish(b, "meanwhile")
    assert plain(b, 1) == []
    assert durable(b, 2) == ["meanwhile"]


@pytest.mark.parametrize("end", [c.Detach(1, 1), c.PeerLost(1)], ids=["closed", "connection lost"])
def test_a_subscription_that_is_not_durable_ends_with_its_consumer_or_its_connection(end: c.Command) -> None:
    b = bench()
    plain(b, 1)
    durable(b, 2)
    publish(b, "m")
    b.apply(end)
    b.flush()
    (left,) = b.destination(TOPIC).subscriptions
    assert left.durable


def test_a_durable_subscription_survives_its_connection_and_the_broker_and_collects() -> None:
    b = bench()
    durable(b, 1)
    b.apply(c.PeerLost(2))
    publish(b, "while its client was away")
    restart(b)
    publish(b, "after the restart")
    assert durable(b, 1) == ["while its client was away", "after the restart"]


# -- ends -------------------------------------------------------------------------------------------------------------------------------
def inactive(b: Bench) -> None:
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    publish(b, "m")


DISCARDS = {
    "a purge": lambda b: b.control("purge", TOPIC),
    "its destination is destroyed": lambda b: b.control("destroy", TOPIC),
    "its client ends the subscription": lambda b: b.apply(c.Unsubscribe(2, "s", "done")),
    "its client redefines the subscription": lambda b: durable(b, 1, wanted=Filter(compile_selector("a = 1"))),
}


@pytest.mark.parametrize("way", DISCARDS)
def test_what_an_operator_or_its_client_discards_is_gone_and_never_dead(way: str) -> None:
    b = bench()
    inactive(b)
    DISCARDS[way](b)
    b.flush()
    assert TOPIC not in b.engine.shard.destinations or b.depth(TOPIC) == 0
    assert b.depth(DEAD) == 0


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
@pytest.mark.parametrize(("reason", "how"), [("EXPIRED", "expires"), ("UNDELIVERABLE", "fails"), ("UNDELIVERABLE", "rejected")])
def test_a_dead_message_says_when_it_died_and_why_and_is_there_to_be_looked_at_and_consumed(level: Reliability, reason: str, how: str) -> None:
    b = Bench(settings=Settings(redelivery_max=0))
    b.send("m", level=level, expires=START + 10 if how == "expires" else 0)
    if how == "expires":
        b.now += 10
        b.flush()
        b.control("expire")
    else:
        b.attach()
        b.settle(1, outcome=Outcome.REJECTED if how == "rejected" else Outcome.FAILED)
    assert (b.depth(), b.depth(DEAD)) == (0, 1)
    assert b.browse(8, address=DEAD) == ["m"]
    assert b.attach(9, address=DEAD) == ["m"]
    (dead,) = b.engine.shard.links[9].unsettled.values()
    told = json.loads(dead.header.annotations)
    assert (told["JMS_SUN_DMQ_UNDELIVERED_REASON"], told["JMS_SUN_DMQ_UNDELIVERED_TIMESTAMP"]) == (reason, b.now)
    b.settle(1, link=9)
    assert b.depth(DEAD) == 0


@pytest.mark.parametrize(("level", "crash"), [(ASSURED, True), (ASSURED, False), (EXPRESS, False)])
def test_what_was_delivered_and_not_acknowledged_comes_again_marked_so_to_whoever_is_there(level: Reliability, crash: bool) -> None:
    b = Bench()
    b.attach(1)
    b.send("held", "acknowledged", level=level)
    b.settle(2)
    if crash:
        b.start()
    else:
        b.apply(c.PeerLost(1))
        b.flush()
    b.apply(c.Open(2, "guest"))
    b.attach(2, peer=2)
    (again,) = b.engine.shard.links[2].unsettled.values()
    assert (b.body(again), again.redelivered, again.failures) == ("held", True, 0)


# -- levels -----------------------------------------------------------------------------------------------------------------------------
def is_written(b: Bench, level: Reliability) -> bool:
    """Whether a message of the level, sent now, is in a commit."""
    before = len(b.effects)
    b.send("m", level=level)
    return any(effects.commit is not None and (effects.commit.messages or effects.commit.spilled) for effects in b.effects[before:])


@pytest.mark.parametrize(
    ("level", "at_once", "piled_up"),
    [(BEST_EFFORT, False, False), (EXPRESS, False, True), (Reliability.RELIABLE_NONPERSISTENT, False, True), (RELIABLE, True, True), (ASSURED, True, True)],
)
def test_best_effort_is_never_written_the_other_volatile_levels_when_they_pile_up_and_the_rest_always(
    level: Reliability, at_once: bool, piled_up: bool
) -> None:
    b = Bench(memory_octets=200, page_octets=64)
    assert is_written(b, level) is at_once
    b.send(*NAMES, level=EXPRESS)
    assert is_written(b, level) is piled_up


# -- client identifiers -------------------------------------------------------------------------------------------------------------------
def test_connections_that_share_a_client_identifier_share_its_durable_subscriptions(run: Run) -> None:
    async def story() -> None:
        broker = await node()
        mine = [await Application.connected(broker, client_id="till", enable_shared_client_id=True) for _ in range(2)]
        how: dict[str, Any] = {"name": "d", "durable": True, "shared": True}
        consumers = [await each.consumer(each.session(), T, **how) for each in mine]
        await mine[0].send(*NAMES, destination=T)
        await mine[1].turn()
        shares = [each.waiting(consumer) for each, consumer in zip(mine, consumers, strict=True)]
        assert sorted(name for share in shares for name in share) == sorted(NAMES) and all(shares)
        for sharing, why in ((False, "connections that share it"), (True, "")):
            other = Application(broker, client_id="till", enable_shared_client_id=sharing)
            other.machine.connect("broker", other.now)
            await other.turn()
            assert why in str(other.machine.trouble or "") and (other.machine.phase is Phase.OPEN) == sharing
        await broker.end()

    run(story())


def test_a_durable_subscription_that_is_not_shared_has_one_consumer_of_all_who_share_its_client_identifier(run: Run) -> None:
    async def story() -> None:
        broker = await node()
        first, second = [await Application.connected(broker, client_id="till", enable_shared_client_id=True) for _ in range(2)]
        await first.consumer(first.session(), T, name="d", durable=True)
        with pytest.raises(IllegalStateException, match="subscription in use"):
            await second.consumer(second.session(), T, name="d", durable=True)
        await broker.end()

    run(story())
