"""Dead messages go back to where they died."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome
from tests.engine.operation_rig import OTHER, operate, ready
from tests.engine.rig import ASSURED, DEAD, EXPRESS, QUEUE, Bench


@pytest.fixture
def bench() -> Bench:
    return ready(operation_rows=3, operation_effort=61)


def _dead(bench: Bench, *bodies: str, address: str = QUEUE, **how: object) -> None:
    bench.send(*bodies, address=address, **how)
    bench.attach(50, address=address)
    bench.apply(c.Settle(1, 50, upto=len(bodies), outcome=Outcome.REJECTED), c.Detach(1, 50))
    bench.flush()


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_dead_messages_go_back_to_where_each_of_them_died(bench: Bench, level) -> None:
    _dead(bench, *"abc", level=level)
    _dead(bench, *"xy", address=OTHER, level=level)
    assert bench.depth(DEAD) == 5
    assert operate(bench, "retry", DEAD).done == 5
    assert bench.depth(DEAD) == 0
    assert bench.attach(address=QUEUE) == list("abc")
    assert bench.attach(2, address=OTHER) == list("xy")


def test_what_was_retried_is_as_it_was_and_may_die_again(bench: Bench) -> None:
    _dead(bench, "a")
    operate(bench, "retry", DEAD)
    bench.attach(credit=1)
    (message,) = bench.engine.shard.links[1].unsettled.values()
    assert message.header.annotations == "" and message.header.expiration == 0 and message.failures == 0
    bench.settle(1, outcome=Outcome.REJECTED)
    assert bench.depth(DEAD) == 1


def test_a_time_to_live_that_has_not_passed_holds_again(bench: Bench) -> None:
    _dead(bench, "a", expires=bench.now + 5_000)
    operate(bench, "retry", DEAD)
    bench.attach(credit=1)
    (message,) = bench.engine.shard.links[1].unsettled.values()
    assert message.header.expiration == bench.now + 5_000


def test_what_expired_comes_back_without_its_time_to_live(bench: Bench) -> None:
    bench.send("a", expires=bench.now + 10)
    bench.now += 20
    bench.control("expire")
    assert bench.depth(DEAD) == 1
    operate(bench, "retry", DEAD)
    assert bench.attach() == ["a"]


def test_what_has_no_origin_stays_where_it_is(bench: Bench) -> None:
    bench.send("a")
    ended = operate(bench, "retry", QUEUE)
    assert (ended.done, ended.failed) == (0, 1) and "has not died" in ended.error


def test_a_queue_that_is_gone_is_made_again(bench: Bench) -> None:
    _dead(bench, "a")
    bench.control("destroy", QUEUE, depth=0)
    assert operate(bench, "retry", DEAD).done == 1
    assert bench.attach() == ["a"]


def test_what_lost_its_body_is_not_sent_back_without() -> None:
    bench = Bench(dead_truncate_body=True)
    _dead(bench, "a")
    ended = operate(bench, "retry", DEAD)
    assert ended.failed == 1 and "body" in ended.error


def test_dead_messages_of_a_reason_go_back(bench: Bench) -> None:
    _dead(bench, *"ab")
    bench.send("c", expires=bench.now + 10)
    bench.now += 20
    bench.control("expire")
    assert operate(bench, "retry", DEAD, filter={"reason": "EXPIRED"}).done == 1
    assert bench.attach() == ["c"]
