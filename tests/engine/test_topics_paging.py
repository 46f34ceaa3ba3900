"""Subscribers of a topic that fall behind together read together."""

from __future__ import annotations

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome
from broker_core.engine.reads import PageWanted
from tests.engine.rig import Bench
from tests.engine.topic_rig import TOPIC, bench, durable, publish, restart

TINY = {"page_rows": 4, "window_rows": 4}


def names(count: int) -> list[str]:
    return [f"m{number:02}" for number in range(count)]


def behind(count: int = 12, **limits: int) -> Bench:
    """Two durable subscriptions, of peers 2 and 3, whose consumers have no credit, and so many messages."""
    b = bench(**TINY | limits)
    durable(b, 1, credit=0)
    durable(b, 2, peer=3, credit=0)
    for name in names(count):
        publish(b, name)
    return b


def pages(b: Bench) -> list[PageWanted]:
    return [read for effects in b.effects for read in effects.reads if isinstance(read, PageWanted)]


def held(b: Bench, link: int) -> list[str]:
    return [b.body(message) for message in b.engine.shard.links[link].unsettled.values()]


def test_two_that_are_equally_behind_read_each_page_once_and_each_gets_all_of_it() -> None:
    b = behind()
    before = len(pages(b))
    b.apply(c.Grant(1, 100), c.Grant(2, 100))
    b.flush()
    assert (held(b, 1), held(b, 2)) == (names(12), names(12))
    assert [(read.after, read.limit) for read in pages(b)[before:]] == [(3, 4), (7, 4)]
    assert b.engine.shard.memory == 0


def test_one_that_is_a_little_ahead_takes_its_part_of_the_page() -> None:
    b = behind(4)
    b.apply(c.Grant(2, 1))
    b.flush()
    publish(b, "a")
    publish(b, "b")
    b.slow = True
    b.apply(c.Grant(1, 100), c.Grant(2, 100))
    b.flush()
    assert len(b.reads) == 1
    b.read()
    b.slow = False
    b.flush()
    assert (held(b, 1), held(b, 2)) == ([*names(4), "a", "b"], [*names(4), "a", "b"])


def test_one_that_is_far_ahead_reads_for_itself() -> None:
    b = behind(4)
    b.apply(c.Grant(2, 3))
    b.flush()
    for name in ("a", "b", "c", "d"):
        publish(b, name)
    b.slow = True
    b.apply(c.Grant(1, 100), c.Grant(2, 100))
    b.flush()
    assert len(b.reads) == 2
    b.read()
    b.slow = False
    b.flush()
    assert held(b, 1) == held(b, 2) == [*names(4), "a", "b", "c", "d"]


def test_what_was_offered_to_one_alone_is_flagged_for_it_alone() -> None:
    b = behind()
    b.apply(c.Grant(1, 12))
    b.flush()
    restart(b)
    durable(b, 1)
    durable(b, 2, peer=3)
    assert (held(b, 1), held(b, 2)) == (names(12), names(12))
    flags = [{message.redelivered for message in b.engine.shard.links[link].unsettled.values()} for link in (1, 2)]
    assert flags == [{True}, {False}]


def test_what_failed_for_one_has_not_failed_for_the_other() -> None:
    b = behind()
    b.apply(c.Grant(1, 12))
    b.flush()
    b.settle(*range(1, 13), link=1, peer=2, outcome=Outcome.FAILED)
    restart(b)
    durable(b, 1)
    durable(b, 2, peer=3)
    failures = [{message.failures for message in b.engine.shard.links[link].unsettled.values()} for link in (1, 2)]
    assert failures == [{1}, {0}]


def test_a_subscription_that_ends_while_it_waits_for_another_ones_page_gets_nothing() -> None:
    b = behind()
    b.slow = True
    b.apply(c.Grant(1, 100), c.Grant(2, 100))
    b.flush()
    assert len(b.reads) == 1
    b.apply(c.Detach(3, 2), c.Unsubscribe(3, "s"))
    b.flush()
    b.read()
    b.slow = False
    b.flush()
    assert held(b, 1) == names(12)
    assert b.depth(TOPIC) == 12
    assert b.engine.shard.memory == 0
