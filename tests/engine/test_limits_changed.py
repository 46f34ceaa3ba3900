"""What waits under FLOW_CONTROL when an operator changes, pauses or destroys the destination: it is never left waiting for what cannot come."""

from __future__ import annotations

import pytest

from broker_core.engine.message import Reliability
from broker_core.engine.outputs import Waiting
from broker_core.engine.refusal import Refusal
from tests.engine.rig import ASSURED, EXPRESS, QUEUE, Bench
from tests.engine.test_flow_control import ask, full, send


def with_one_that_waits() -> Bench:
    bench = full()
    send(bench, "c")
    assert [type(output) for output in bench.flush()] == [Waiting]
    bench.outputs = []
    return bench


def test_a_pause_does_not_outlive_the_destination_that_was_paused() -> None:
    bench = with_one_that_waits()
    bench.control("pause", QUEUE, direction="PRODUCERS")
    bench.control("destroy", QUEUE, depth=2)
    assert bench.confirmed(bench.outputs) == ["c"]
    assert bench.attach(credit=9) == ["c"]


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
@pytest.mark.parametrize("limit", ["max_octets", "max_message_octets"])
def test_what_can_never_fit_any_more_holds_up_nobody(limit: str, level: Reliability) -> None:
    bench = full(max_octets=30)
    for body in "cd":
        send(bench, body, level=level)
    bench.flush()
    bench.outputs = []
    bench.control("update", QUEUE, **{limit: 5})
    bench.control("purge", QUEUE, depth=2)
    refused = [] if level is EXPRESS else [Refusal.MESSAGE_TOO_LARGE] * 2
    assert bench.refused(bench.outputs) == refused
    assert bench.confirmed(bench.outputs) == (["c", "d"] if level is EXPRESS else [])
    assert bench.depth() == 0 and not bench.engine.shard.blocked


def test_what_can_never_fit_into_the_next_of_its_name_is_refused() -> None:
    bench = with_one_that_waits()
    bench.control("set_policy", "queue/**", max_octets=5)
    bench.control("destroy", QUEUE, depth=2)
    assert bench.refused(bench.outputs) == [Refusal.MESSAGE_TOO_LARGE]


@pytest.mark.parametrize("token", ["d", None])
def test_where_room_is_made_from_now_on_what_waits_comes_in_before_what_is_sent(token: str | None) -> None:
    bench = with_one_that_waits()
    send(bench, "d")
    bench.flush()
    ask(bench, "update", limit_behavior="REMOVE_OLDEST")
    send(bench, "e", token=token)
    bench.flush()
    bench.flush()  # makes room for what has come in
    assert bench.depth() == 2
    assert bench.confirmed(bench.outputs) == ["c", "d", *filter(None, [token])]
    assert bench.attach(credit=9) == ["d", "e"]


@pytest.mark.parametrize("token", ["d", None])
def test_where_there_is_no_limit_from_now_on_what_waits_comes_in_before_what_is_sent(token: str | None) -> None:
    bench = with_one_that_waits()
    ask(bench, "update", max_messages=-1)
    send(bench, "d", token=token)
    bench.flush()
    assert bench.refused(bench.outputs) == []
    assert bench.attach(credit=9) == ["a", "b", "c", "d"]


def test_what_waits_where_the_newest_is_refused_from_now_on_keeps_its_place() -> None:
    bench = with_one_that_waits()
    bench.control("update", QUEUE, limit_behavior="REJECT_NEWEST")
    send(bench, "d")
    assert bench.refused(bench.flush()) == [Refusal.DESTINATION_FULL]
    assert bench.attach(credit=9) == ["a", "b"]
    assert bench.confirmed(bench.settle(1)) == ["c"]
