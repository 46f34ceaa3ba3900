"""Dead messages of topics go back to the subscription in which they failed, and to no other: the others may have consumed them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_core.engine import commands as c
from broker_core.engine.dead import SUBSCRIPTION
from broker_core.engine.outcome import Outcome
from broker_core.engine.properties import read_annotations
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from broker_core.engine.writes import OperationRow
from tests.engine.operation_rig import operate
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, Bench
from tests.engine.test_fan_out import message, settle_down
from tests.engine.topic_rig import TOPIC, bench, durable, plain, publish, restart

LEVELS = pytest.mark.parametrize("level", [ASSURED, EXPRESS])
RED = Filter(compile_selector("colour = 'red'"))


def retry(b: Bench, **arguments: object) -> OperationRow:
    return operate(b, "retry", DEAD, **arguments)


def one_takes_and_one_rejects(b: Bench, *bodies: str, level=ASSURED, **how) -> None:
    """Durable subscriptions `a` (link 1), which has consumed all, and `b` (link 2), in which all died."""
    durable(b, 1, name="a")
    durable(b, 2, peer=3, name="b")
    publish(b, *bodies, level=level, **how)
    b.settle(len(bodies), link=1, peer=2, upto=len(bodies))
    b.settle(len(bodies), link=2, peer=3, upto=len(bodies), outcome=Outcome.REJECTED)
    assert (b.depth(TOPIC), b.depth(DEAD)) == (0, len(bodies))


def number_of(b: Bench, name: str) -> int:
    return next(subscription.number for subscription in b.destination(TOPIC).subscriptions if subscription.name == name)


def held(b: Bench, link: int) -> list[str]:
    return [b.body(message) for message in b.engine.shard.links[link].unsettled.values()]


@LEVELS
def test_what_failed_in_one_subscription_goes_back_to_that_one_alone(level) -> None:
    b = bench()
    one_takes_and_one_rejects(b, *"xyz", level=level)
    assert retry(b).done == 3
    assert (held(b, 1), held(b, 2)) == ([], list("xyz"))
    b.settle(6, link=2, peer=3, upto=6)
    assert (b.depth(TOPIC), b.depth(DEAD), b.destination(TOPIC).octets) == (0, 0, 0)
    assert publish(b, "next", level=level) == ["next", "next"]


@LEVELS
def test_so_it_does_while_nobody_consumes_there(level) -> None:
    b = bench()
    one_takes_and_one_rejects(b, *"xy", level=level)
    b.apply(c.Detach(2, 1), c.Detach(3, 2))
    assert retry(b).done == 2
    assert durable(b, 1, name="a") == []
    assert durable(b, 2, peer=3, name="b") == list("xy")


@LEVELS
def test_what_went_back_expires_there_on_time_though_nobody_consumes(level) -> None:
    b = bench()
    one_takes_and_one_rejects(b, *"xy", level=level, expires=b.now + 1000)
    b.apply(c.Detach(2, 1), c.Detach(3, 2))
    assert retry(b).done == 2
    assert (b.depth(TOPIC), b.depth(DEAD)) == (2, 0)
    b.passes(1000)
    b.control("expire")
    assert (b.depth(TOPIC), b.depth(DEAD), b.destination(TOPIC).octets) == (0, 2, 0)


def test_after_a_crash_nobody_else_has_it_either() -> None:
    b = bench()
    one_takes_and_one_rejects(b, *"xy")
    restart(b)
    assert retry(b).done == 2
    restart(b)
    assert durable(b, 1, name="a") == []
    assert durable(b, 2, peer=3, name="b") == list("xy")


def test_where_a_topic_has_many_subscriptions_a_step_that_gives_back_is_followed_by_flushes_without_one() -> None:
    b = bench(operation_rows=10, operation_effort=20, slow=True)
    one_takes_and_one_rejects(b, *"xyz")
    for number in range(18):
        durable(b, 10 + number, name=f"idle {number}")
    number = b.control("operate", DEAD, verb="retry")["operation"]
    done = []
    for _ in range(14):
        b.read()
        b.flush()
        done.append(b.database.tables.operations[number].done)
    assert [done.count(count) for count in (1, 2)] == [4, 4] and done[-1] == 3


@LEVELS
def test_each_of_several_subscriptions_has_its_own_back(level) -> None:
    b = bench()
    durable(b, 1, name="a")
    durable(b, 2, peer=3, name="b")
    durable(b, 3, name="c")
    publish(b, *"xy", level=level)
    b.settle(2, link=1, peer=2, outcome=Outcome.REJECTED)  # y
    b.settle(1, link=1, peer=2)
    b.settle(2, link=2, peer=3, upto=2, outcome=Outcome.REJECTED)
    b.settle(2, link=3, peer=2, upto=2)
    assert retry(b).done == 3
    assert (held(b, 1), held(b, 2), held(b, 3)) == (["y"], ["x", "y"], [])


@LEVELS
def test_filters_are_not_asked_again(level) -> None:
    """Of three with one filter and one without: it is for one, whatever was published in the same batch."""
    b = bench()
    for link, name in enumerate("abc", 1):
        durable(b, link, name=name, wanted=RED)
    durable(b, 4, name="all")
    red = {"properties": {"colour": "red"}, "level": level}
    publish(b, "x", **red)
    for link in (1, 2, 4):
        b.settle(1, link=link, peer=2)
    b.settle(1, link=3, peer=2, outcome=Outcome.REJECTED)
    assert retry(b).done == 1
    assert [held(b, link) for link in (1, 2, 3, 4)] == [[], [], ["x"], []]
    publish(b, "y", properties={"colour": "blue"}, level=level)
    publish(b, "z", **red)
    assert [held(b, link) for link in (1, 2, 3, 4)] == [["z"], ["z"], ["x", "z"], ["y", "z"]]


def test_where_the_subscription_is_gone_it_stays_dead_and_says_why() -> None:
    b = bench()
    one_takes_and_one_rejects(b, "x")
    b.apply(c.Detach(3, 2))
    assert "subscription" in b.control("unsubscribe", TOPIC, subscription=number_of(b, "b"))
    ended = retry(b)
    assert (ended.done, ended.failed, b.depth(DEAD)) == (0, 1, 1)
    assert "in which a message failed is gone" in ended.error


def test_a_volatile_subscription_has_back_what_is_in_memory_and_nothing_that_is_stored() -> None:
    b = bench()
    durable(b, 1, name="a")
    plain(b, 2)
    for body, level in ("stored", ASSURED), ("light", EXPRESS):
        publish(b, body, level=level)
    b.settle(2, link=1, peer=2, upto=2)
    b.settle(2, link=2, peer=1, upto=2, outcome=Outcome.REJECTED)
    ended = retry(b)
    assert (ended.done, ended.failed) == (1, 1) and "not durable" in ended.error
    assert (held(b, 1), held(b, 2)) == ([], ["light"])


def test_what_expired_is_dead_once_for_all_and_goes_back_to_all() -> None:
    b = bench()
    for name in "ab":
        durable(b, 1, name=name)
        b.apply(c.Detach(2, 1))
    publish(b, "x", expires=b.now + 10)
    b.now += 20
    b.control("expire")
    assert retry(b).done == 1
    assert (durable(b, 1, name="a"), durable(b, 2, name="b")) == (["x"], ["x"])


def test_it_says_which_subscription_it_failed_in_and_only_then() -> None:
    b = bench()
    one_takes_and_one_rejects(b, "x")
    b.attach(9, address=DEAD)
    (message,) = b.engine.shard.links[9].unsettled.values()
    assert read_annotations(message.header.annotations)[SUBSCRIPTION] == number_of(b, "b")
    b.apply(c.Detach(1, 9))
    retry(b)
    (message,) = b.engine.shard.links[2].unsettled.values()
    assert message.header.annotations == ""


def test_without_room_in_memory_it_comes_back_all_the_same_but_best_effort() -> None:
    b = bench()
    durable(b, 1, name="a")
    durable(b, 2, peer=3, name="b")
    for body, level in ("light", EXPRESS), ("lightest", BEST_EFFORT):
        publish(b, body, level=level)
    b.settle(2, link=1, peer=2, upto=2)
    b.settle(2, link=2, peer=3, upto=2, outcome=Outcome.REJECTED)
    b.engine.shard.limits = replace(b.engine.shard.limits, memory_octets=1)
    assert retry(b).done == 2
    assert (held(b, 1), held(b, 2), b.depth(DEAD)) == ([], ["light"], 0)


@pytest.mark.parametrize("verb", ["move", "retry"])
def test_what_comes_while_others_are_handed_out_is_not_forgotten_behind_them(verb: str) -> None:
    b = bench(slow=True, fan_out=4)
    for link in range(1, 9):
        b.apply(c.Attach(2, link, TOPIC, credit=100, name=f"s{link}", durable=True))
    settle_down(b)
    if verb == "move":
        b.apply(c.Send(1, None, QUEUE, message("late")))
    else:
        b.apply(c.Send(1, None, TOPIC, message("late")))
        settle_down(b)
        for link in range(1, 9):
            b.apply(c.Settle(2, link, [1], 0, Outcome.REJECTED if link < 8 else Outcome.ACCEPTED))
    settle_down(b)
    b.control("operate", QUEUE if verb == "move" else DEAD, **{"verb": verb} | ({"destination": TOPIC} if verb == "move" else {}))
    b.apply(*[c.Send(1, None, TOPIC, message(f"m{number}")) for number in range(3)])
    b.read()
    b.flush()
    assert b.engine.shard.handing and not b.engine.shard.operations.known
    settle_down(b)
    for link in range(1, 9):
        assert sorted(held(b, link)) == (["late"] if verb == "move" or link < 8 else []) + ["m0", "m1", "m2"]
