"""Settings by pattern: what clients create takes those of the pattern that says most about its name."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.policy import POLICIES_MAX
from broker_core.engine.refusal import Refusal
from tests.engine.rig import ASSURED, Bench


def limit(bench: Bench, address: str) -> int:
    bench.send("m", address=address)
    return bench.destination(address).settings.max_messages


@pytest.mark.parametrize("pattern", ["orders.*", "temp-queue/*", "queue/a*", "queue/**.>", "queue/>.a", "queue/", "queue"])
def test_a_pattern_that_makes_no_sense_is_refused(pattern) -> None:
    assert Bench().control("set_policy", pattern, max_messages=1)["refusal"] == "INVALID_PATTERN"


def test_settings_that_make_no_sense_are_refused() -> None:
    bench = Bench()
    assert bench.control("set_policy", "queue/**", max_messages=0)["refusal"] == "INVALID_SETTING"
    assert bench.control("set_policy", "topic/**", max_active_consumers=2)["refusal"] == "INVALID_SETTING"
    assert bench.control("drop_policy", "queue/**")["refusal"] == "INVALID_PATTERN"
    assert bench.engine.shard.policies == {}


def test_there_is_an_end_to_them() -> None:
    bench = Bench()
    bench.engine.shard.policies = {f"queue/a{number}": None for number in range(POLICIES_MAX)}  # type: ignore[assignment]
    assert bench.control("set_policy", "queue/b", max_messages=1)["refusal"] == "INVALID_SETTING"
    bench.engine.shard.policies = {}


def test_the_one_that_says_most_counts_with_all_that_it_says() -> None:
    bench = Bench()
    patterns = ["queue/**", "queue/orders.>", "queue/orders.**", "queue/orders.*", "queue/orders.eu", "queue/*.eu", "topic/orders.*"]
    for number, pattern in enumerate(patterns, 1):
        bench.control("set_policy", pattern, max_messages=number)
    wanted = {
        "queue/orders.eu": 5, "queue/orders.us": 4, "queue/orders.us.west": 3, "queue/orders": 2, "queue/items.eu": 6, "queue/items.us": 1, "queue/other": 1,
        "topic/orders.eu": 7, "topic/other": -1,
    }  # fmt: skip
    assert {address: limit(bench, address) for address in wanted} == wanted


def test_what_exists_and_what_operators_create_keep_their_own() -> None:
    bench = Bench()
    bench.send("m", address="queue/there")
    bench.control("set_policy", "queue/**", max_messages=1, limit_behavior="REJECT_NEWEST")
    bench.control("create", "queue/made")
    assert (limit(bench, "queue/there"), limit(bench, "queue/made"), limit(bench, "queue/new")) == (-1, -1, 1)
    assert bench.refused(bench.send("one too many", address="queue/new")) == [Refusal.DESTINATION_FULL]


def test_they_are_durable_replaced_and_dropped() -> None:
    bench = Bench()
    bench.control("set_policy", "queue/**", max_messages=1, use_dead=False)
    bench.control("set_policy", "queue/a.*", max_messages=2)
    bench.start()
    assert limit(bench, "queue/a.b") == 2
    bench.control("set_policy", "queue/**", max_messages=3)
    bench.control("drop_policy", "queue/a.*")
    bench.start()
    assert (limit(bench, "queue/a.c"), bench.destination("queue/a.c").settings.use_dead) == (3, True)


def test_a_queue_made_for_dead_messages_takes_them_too() -> None:
    bench = Bench()
    bench.control("set_policy", "queue/*.dead", max_messages=1, limit_behavior="REMOVE_OLDEST")
    bench.control("create", "queue/orders", dead_queue="queue/orders.dead")
    bench.attach()
    bench.send("a", "b")
    bench.settle(1, 2, outcome=Outcome.REJECTED)
    assert bench.attach(2, address="queue/orders.dead") == ["b"]


def test_a_commit_that_creates_a_queue_is_refused_where_that_cannot_hold_it() -> None:
    bench = Bench()
    bench.control("set_policy", "queue/**", max_messages=1, limit_behavior="REJECT_NEWEST")
    bench.apply(c.Begin(1, b"t"))
    for body in (b"a", b"b"):
        bench.apply(c.Transacted(1, b"t", c.Send(1, None, "queue/new", Message(Header(b"", 4, ASSURED), body, 10))))
    bench.apply(c.End(1, b"t", commit=True, token="commit"))
    assert bench.refused(bench.flush()) == [Refusal.DESTINATION_FULL]
    assert "queue/new" not in bench.engine.shard.destinations


def test_the_brokers_own_names_have_no_policy() -> None:
    bench = Bench()
    for pattern in ("queue/mq.sys.dmq", "queue/mq.*"):
        told = bench.control("set_policy", pattern, max_messages=1)
        assert told["refusal"] == "INVALID_PATTERN" and "the broker's own" in told["detail"]
    assert bench.engine.shard.policies == {}


def test_a_commit_that_makes_a_queue_takes_its_messages_for_what_they_will_be_there() -> None:
    """Best effort takes no room of a commit's: what does not fit is dropped alone."""
    bench = Bench()
    bench.control(
        "set_policy", "queue/**", default_reliability="best-effort", reliability_override=False, max_messages=1, limit_behavior="REJECT_NEWEST"
    )  # fmt: skip
    bench.apply(c.Begin(1, b"t"))
    for body in (b"a", b"b"):
        bench.apply(c.Transacted(1, b"t", c.Send(1, None, "queue/new", Message(Header(b"", reliability=ASSURED), body, 1))))
    bench.apply(c.End(1, b"t", commit=True, token="done"))
    outputs = bench.flush()
    assert (bench.refused(outputs), bench.confirmed(outputs)) == ([], ["done"])
    assert bench.depth("queue/new") == 1
