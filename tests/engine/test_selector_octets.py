"""The text of an account's selectors is bounded, as each octet of it takes forty of memory: on topics and queues together, whoever subscribes."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.outputs import Refused
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import QUEUE, Bench

TOPIC, OTHER = "topic/t", "topic/t.*"
TEN, ELEVEN = Filter(compile_selector("a > 1 + 10")), Filter(compile_selector("abc > 1 + 2"))
DURABLE = {"name": "d", "durable": True}


def bench(**how) -> Bench:
    made = Bench(account_selector_octets_max=20, **how)
    made.apply(c.Open(2, "guest", "two"), c.Open(3, "other", "three"))
    return made


def refusals(b: Bench, link: int, address: str, wanted: Filter, peer: int = 2, **how) -> list[tuple[Refusal, str]]:
    b.apply(c.Attach(peer, link, address, wanted=wanted, **how))
    return [(output.refusal, output.detail) for output in b.flush() if isinstance(output, Refused)]


def used(b: Bench) -> dict[str, int]:
    return dict(b.engine.shard.selector_octets)


@pytest.mark.parametrize("address", [TOPIC, QUEUE, OTHER])
def test_what_is_too_much_is_refused_with_the_figures(address: str) -> None:
    b = bench()
    assert refusals(b, 1, address, TEN) == []
    told = "those of account guest have 10 octets, this one 11, and 20 are allowed"
    assert refusals(b, 2, address, ELEVEN) == [(Refusal.TOO_MANY_SELECTORS, told)]
    assert refusals(b, 2, address, ELEVEN, peer=3) == []
    assert refusals(b, 3, address, Filter()) == []
    assert used(b) == {"guest": 10, "other": 11}


def test_topics_and_queues_count_together() -> None:
    b = bench()
    assert refusals(b, 1, TOPIC, TEN) + refusals(b, 2, QUEUE, TEN) == []
    assert [refusal for refusal, _ in refusals(b, 3, OTHER, TEN)] == [Refusal.TOO_MANY_SELECTORS]


@pytest.mark.parametrize("address", [TOPIC, QUEUE, OTHER])
@pytest.mark.parametrize("how", ["detached", "lost"])
def test_whoever_goes_makes_room(address: str, how: str) -> None:
    b = bench()
    b.send("m", address="topic/t.1")
    refusals(b, 1, address, TEN)
    refusals(b, 2, address, TEN)
    b.apply(c.PeerLost(2) if how == "lost" else c.Detach(2, 1))
    b.flush()
    assert used(b) == ({} if how == "lost" else {"guest": 10})


@pytest.mark.parametrize("address", [TOPIC, QUEUE])
def test_what_is_destroyed_makes_room(address: str) -> None:
    b = bench()
    refusals(b, 1, address, TEN)
    b.control("destroy", address)
    assert used(b) == {}


def test_a_topic_of_a_pattern_counts_nothing_of_its_own() -> None:
    b = bench()
    for number in range(3):
        b.send("m", address=f"topic/t.{number}")
    refusals(b, 1, OTHER, TEN)
    b.send("m", address="topic/t.9")
    b.control("destroy", "topic/t.1")
    assert used(b) == {"guest": 10}


@pytest.mark.parametrize("address", [TOPIC, OTHER])
def test_a_durable_subscription_counts_until_it_is_ended_also_after_a_restart(address: str) -> None:
    b = bench()
    refusals(b, 1, address, TEN, **DURABLE)
    b.apply(c.PeerLost(2))
    b.flush()
    b.start()
    assert used(b) == {"guest": 10}
    b.apply(c.Open(2, "guest", "two"))
    assert refusals(b, 1, address, ELEVEN, **DURABLE) == []  # it replaces the other
    assert used(b) == {"guest": 11}
    b.apply(c.Detach(2, 1), c.Unsubscribe(2, "d"))
    b.flush()
    assert used(b) == {}
