"""Durable subscriptions that operators make, look at and end."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.outputs import Detached
from tests.engine.rig import Bench
from tests.engine.topic_rig import TOPIC, durable, open_clients, publish, restart

HOW = {"name": "s", "client_id": "two", "account": "guest"}


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    open_clients(bench)
    bench.control("create", TOPIC)
    return bench


@pytest.mark.parametrize("crashes", [False, True])
def test_it_keeps_what_comes_from_now_on_for_its_client(bench: Bench, crashes: bool) -> None:
    publish(bench, "before")
    number = bench.control("subscribe", TOPIC, **HOW)["subscription"]
    publish(bench, "a", "b")
    if crashes:
        restart(bench)
    assert bench.engine.shard.subscriptions[number].idle_since > 0
    assert durable(bench) == ["a", "b"]
    assert bench.engine.shard.links[1].subscription.number == number


def test_it_has_its_selector_and_leaves_out_its_own(bench: Bench) -> None:
    bench.control("subscribe", TOPIC, **HOW, selector="colour = 'red'", no_local=True)
    publish(bench, "a", properties={"colour": "red"})
    publish(bench, "b", properties={"colour": "blue"})
    publish(bench, "c", properties={"colour": "red"}, client_id="two")
    assert bench.depth(TOPIC) == 1


def test_one_without_a_client_is_shared_by_the_account(bench: Bench) -> None:
    bench.control("subscribe", TOPIC, name="s", account="guest", shared=True)
    publish(bench, "a")
    assert bench.attach(1, peer=2, address=TOPIC, name="s", durable=True, shared=True, of_any_client=True) == ["a"]


@pytest.mark.parametrize(
    ("address", "how", "sentence"),
    [
        ("queue/orders", {}, "of a topic"),
        ("topic/none", {}, "topic/none"),
        (TOPIC, {"selector": "colour ="}, "selector"),
        (TOPIC, {"client_id": "", "no_local": True, "shared": True}, "client_id"),
        (TOPIC, {"client_id": ""}, TOPIC),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(bench: Bench, address: str, how: dict, sentence: str) -> None:
    assert sentence in bench.control("subscribe", address, **(HOW | how))["detail"]


def test_there_is_one_of_a_name(bench: Bench) -> None:
    bench.control("subscribe", TOPIC, **HOW)
    assert bench.control("subscribe", TOPIC, **HOW)["refusal"] == "SUBSCRIPTION_IN_USE"


def test_it_is_ended_with_what_it_keeps(bench: Bench) -> None:
    number = bench.control("subscribe", TOPIC, **HOW)["subscription"]
    publish(bench, "a", "b")
    assert bench.control("unsubscribe", subscription=number) == {"subscription": number, "discarded": 2}
    assert bench.depth(TOPIC) == 0
    assert bench.control("unsubscribe", subscription=number)["refusal"] == "NO_SUCH_SUBSCRIPTION"


def test_one_that_is_used_is_ended_only_by_force_and_its_consumer_is_told(bench: Bench) -> None:
    number = bench.control("subscribe", TOPIC, **HOW)["subscription"]
    durable(bench)
    publish(bench, "a")
    assert bench.control("unsubscribe", subscription=number)["refusal"] == "SUBSCRIPTION_IN_USE"
    assert bench.control("unsubscribe", subscription=number, force=True)["discarded"] == 1
    told = [output for output in bench.outputs if isinstance(output, Detached)]
    assert "an operator ended the subscription s" in told[0].detail
    restart(bench)
    assert number not in bench.engine.shard.subscriptions


def test_of_a_pattern_it_is_ended_as_a_whole(bench: Bench) -> None:
    bench.attach(1, peer=2, address="topic/*", name="s", durable=True)
    bench.apply(c.Detach(2, 1))
    bench.flush()
    publish(bench, "a")
    member = bench.destination(TOPIC).subscriptions[0]
    assert member.wildcard is not None
    assert "of the pattern" in bench.control("unsubscribe", subscription=member.number)["detail"]
    assert bench.control("unsubscribe", subscription=member.wildcard.number)["discarded"] == 1
    assert not bench.destination(TOPIC).subscriptions


def test_what_it_holds_is_told() -> None:
    bench = Bench(segment_rows=2)
    open_clients(bench)
    bench.control("create", TOPIC)
    number = bench.control("subscribe", TOPIC, **HOW)["subscription"]
    for body in "abcde":
        publish(bench, body)
    told = bench.control("subscriptions", numbers=[number, 99])["subscriptions"]
    assert told == {str(number): {"depth": 5, "unsettled": 0, "consumers": 0, "segments": 2, "growth": None, "growth_since": None}}


def growth(bench: Bench, number: int) -> tuple[float | None, int | None]:
    told = bench.control("subscriptions", numbers=[number])["subscriptions"][str(number)]
    return told["growth"], told["growth_since"]


def pass_ms(bench: Bench, milliseconds: int) -> None:
    bench.now += milliseconds
    bench.flush(report=True)


def test_how_its_backlog_grows_is_unknown_for_a_minute_then_told_since_when(bench: Bench) -> None:
    number = bench.control("subscribe", TOPIC, **HOW)["subscription"]
    pass_ms(bench, 1000)
    assert growth(bench, number) == (None, None)
    for _ in range(10):
        publish(bench, "a", "b", "c")
        pass_ms(bench, 12_000)
    assert growth(bench, number) == (15.0, bench.now - 60_000)
    later = bench.now
    for _ in range(5):
        publish(bench, "a")
        pass_ms(bench, 12_000)
    assert growth(bench, number) == (5.0, later), "what was before is over"
    pass_ms(bench, 60_000)
    assert growth(bench, number) == (0.0, later + 60_000)
    pass_ms(bench, 86_400_000)
    assert growth(bench, number) == (0.0, later + 60_000), "nothing has changed since"


def test_a_backlog_that_is_worked_off_shrinks(bench: Bench) -> None:
    number = bench.control("subscribe", TOPIC, **HOW)["subscription"]
    publish(bench, *"abcdef")
    pass_ms(bench, 1000)
    began = bench.now
    durable(bench, credit=6)
    bench.settle(1, 2, 3, 4, peer=2)
    pass_ms(bench, 120_000)
    assert growth(bench, number) == (-2.0, began)


def test_of_a_pattern_its_topics_are_added_up_and_after_a_crash_nobody_knows(bench: Bench) -> None:
    bench.attach(1, peer=2, address="topic/*", name="s", durable=True)
    bench.apply(c.Detach(2, 1))
    publish(bench, "a")
    bench.send("a", address="topic/other")
    number = bench.destination(TOPIC).subscriptions[0].wildcard.number
    pass_ms(bench, 1000)
    publish(bench, "b", "c")
    bench.send("b", address="topic/other")
    pass_ms(bench, 60_000)
    assert growth(bench, number) == (3.0, bench.now - 60_000)
    restart(bench)
    pass_ms(bench, 1000)
    assert growth(bench, number) == (None, None)
    pass_ms(bench, 60_000)
    assert growth(bench, number) == (0.0, bench.now - 60_000)
