"""Octets that came to a destination, beside the change of what it holds, as the ledger tells."""

from __future__ import annotations

from tests.engine import topic_rig as topics
from tests.engine.rig import EXPRESS, QUEUE, Bench

SIZE = 10


def told(bench: Bench, address: str = QUEUE) -> list[tuple[int, int]]:
    """(change, arrived) by commit, of the effects that are there."""
    number = bench.destination(address).number
    commits = [effects.commit.octets for effects in bench.effects if effects.commit is not None]
    return [(change, arrived) for octets in commits for one, change, arrived in octets if one == number]


def test_what_comes_and_what_leaves_are_told_apart_though_it_is_in_one_commit() -> None:
    bench = Bench()
    bench.send("a", "b", size=SIZE)
    assert told(bench) == [(2 * SIZE, 2 * SIZE)]
    bench.control("create", "queue/last", max_messages=1, limit_behavior="REMOVE_OLDEST")
    bench.send("a", "b", size=SIZE, address="queue/last")
    assert told(bench, "queue/last") == [(SIZE, 2 * SIZE)]


def test_what_only_leaves_has_not_come() -> None:
    bench = Bench()
    bench.send("a", size=SIZE)
    bench.attach()
    bench.effects.clear()
    bench.settle(1)
    assert told(bench) == [(-SIZE, 0)]


def test_volatile_messages_are_in_neither() -> None:
    bench = Bench()
    bench.send("a", size=SIZE, level=EXPRESS)
    assert told(bench) == []


def test_of_a_topic_a_message_counts_once_a_durable_subscription() -> None:
    b = topics.bench()
    topics.durable(b)
    topics.durable(b, 2, peer=3)
    topics.plain(b, 3)
    b.effects.clear()
    topics.publish(b, "a", size=SIZE)
    assert told(b, topics.TOPIC) == [(2 * SIZE, 2 * SIZE)]


def test_a_purge_takes_it_away_and_what_is_given_back_has_come_again() -> None:
    bench = Bench(undo_ms=60_000)
    bench.send("a", "b", size=SIZE)
    bench.effects.clear()
    purged = bench.control("purge", QUEUE, depth=2)
    assert told(bench) == [(-2 * SIZE, 0)]
    bench.control("undo", QUEUE, undo=purged["undo"])
    assert told(bench) == [(-2 * SIZE, 0), (2 * SIZE, 2 * SIZE)]


def test_what_is_moved_has_left_the_one_and_come_to_the_other() -> None:
    bench = Bench()
    bench.send("a", "b", size=SIZE)
    bench.control("create", "queue/other")
    bench.effects.clear()
    bench.control("operate", QUEUE, verb="move", destination="queue/other")
    bench.flush()
    assert sum(change for change, _ in told(bench)) == -2 * SIZE
    assert sum(arrived for _, arrived in told(bench, "queue/other")) == 2 * SIZE
