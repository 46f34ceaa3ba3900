"""A destination's own queue for its dead messages."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome
from tests.engine.rig import DEAD, EXPRESS, QUEUE, Bench

OWN = "queue/orders.dead"


def own(**settings: object) -> Bench:
    bench = Bench()
    bench.control("create", QUEUE, dead_queue=OWN, redelivery_max=0, **settings)
    return bench


def kill(bench: Bench, *bodies: str, address: str = QUEUE, **how: object) -> None:
    bench.send(*bodies, address=address, **how)
    link = len(bench.effects)
    bench.attach(link, address=address)
    tags = list(bench.engine.shard.links[link].unsettled)
    bench.settle(*tags, link=link, outcome=Outcome.REJECTED)
    bench.apply(c.Detach(1, link))
    bench.flush()


@pytest.mark.parametrize("value", ["orders.dead", "topic/t", "temp-queue/a", "queue/mq.x", "queue/", "queue/a*", "queue/\ud800", 1, None, QUEUE])
def test_what_is_no_queue_for_it_is_refused(value) -> None:
    answer = Bench().control("create", QUEUE, dead_queue=value)
    assert answer["refusal"] == "INVALID_SETTING" and "dead_queue must" in answer["detail"]


def test_the_dead_message_queue_of_all_has_none() -> None:
    assert Bench().control("update", DEAD, dead_queue=OWN)["refusal"] == "INVALID_SETTING"


def test_it_is_made_when_the_first_message_dies_and_takes_stored_and_volatile_ones() -> None:
    bench = own()
    assert OWN not in bench.engine.shard.destinations
    kill(bench, "a")
    kill(bench, "b", level=EXPRESS)
    bench.send("c", expires=bench.now - 1)
    assert (bench.depth(OWN), bench.depth(DEAD)) == (3, 0)
    bench.start()
    assert bench.attach(address=OWN) == ["a", "c"]
    assert '"original-destination":"queue/orders"' in bench.delivered(bench.outputs)[0].header.annotations


def test_what_has_died_is_gone_when_it_dies_again() -> None:
    bench = own()
    bench.control("create", OWN, redelivery_max=0)
    kill(bench, "a")
    kill(bench, "not dead before", address=OWN)
    assert (bench.depth(OWN), bench.depth(DEAD)) == (0, 1)
    bench = own()
    kill(bench, "a")
    bench.now += bench.limits.dead_retention_ms
    bench.control("expire")
    bench.flush()
    assert (bench.depth(OWN), bench.depth(DEAD)) == (0, 0)


def test_its_limits_remove_and_never_refuse() -> None:
    bench = own()
    bench.control("create", OWN, max_messages=2, limit_behavior="REJECT_NEWEST")
    kill(bench, "a", "b", "c")
    assert bench.depth(OWN) == 3
    bench.control("update", OWN, limit_behavior="REMOVE_OLDEST")
    kill(bench, "d")
    assert bench.attach(99, address=OWN) == ["c", "d"]
    assert bench.depth(DEAD) == 0


def test_where_there_is_no_room_for_one_more_queue_that_of_all_takes_them() -> None:
    bench = Bench(destinations_max=2)
    bench.control("create", QUEUE, dead_queue=OWN)
    kill(bench, "a")
    assert bench.depth(DEAD) == 1


def test_an_alias_stands_for_the_queue_that_it_names() -> None:
    bench = own()
    bench.control("create_alias", OWN, target="queue/all.dead")
    kill(bench, "a")
    assert OWN not in bench.engine.shard.destinations
    assert bench.depth("queue/all.dead") == 1


def test_what_an_alias_has_lead_back_to_where_it_died_is_in_the_queue_of_all() -> None:
    bench = Bench()
    bench.control("create", QUEUE, dead_queue=OWN, max_messages=2, limit_behavior="REMOVE_OLDEST")
    bench.control("create_alias", OWN, target=QUEUE)
    bench.send("a", "b", "c")
    bench.flush()
    assert (bench.depth(), bench.depth(DEAD)) == (2, 1)
    assert bench.attach() == ["b", "c"]


def test_what_a_policy_has_die_in_the_queue_of_the_dead_itself_is_in_the_queue_of_all() -> None:
    bench = Bench()
    bench.control("set_policy", "queue/**", dead_queue=OWN, redelivery_max=0)
    kill(bench, "a", address=OWN)
    assert (bench.depth(OWN), bench.depth(DEAD)) == (0, 1)
