"""Deep queues live on disk: pages come when someone wants them, and what the engine learns meanwhile wins over their rows."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Header, Message, Reliability, StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.reads import PositionsWanted
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, Bench

TINY = {"page_rows": 3, "window_rows": 4}


def names(count: int, start: int = 0) -> list[str]:
    return [f"m{number:03}" for number in range(start, start + count)]


def consume(bench: Bench, count: int, link: int = 1) -> list[str]:
    """Everything, acknowledged one by one."""
    got: list[str] = []
    for _ in range(count * 2):
        held = bench.engine.shard.links[link].unsettled
        if not held:
            break
        tag = next(iter(held))
        got.append(bench.body(held[tag]))
        bench.settle(tag, link=link)
    return got


def test_a_deep_queue_is_consumed_in_its_order_through_small_pages() -> None:
    bench = Bench(**TINY)
    for name in names(60):
        bench.send(name)
    bench.attach(credit=2)
    assert consume(bench, 60) == names(60)
    assert (bench.depth(), bench.engine.shard.memory, bench.destination().octets) == (0, 0, 0)


def test_memory_holds_a_window_and_no_more() -> None:
    bench = Bench(**TINY)
    for name in names(60):
        bench.send(name)
    assert len(bench.cursor().ready) == 4
    assert bench.engine.shard.memory == 40


def test_without_consumers_nothing_is_read_ahead() -> None:
    bench = Bench(**TINY)
    for name in names(20):
        bench.send(name)
    assert [read for effects in bench.effects for read in effects.reads] == []


def test_arrivals_while_a_page_is_read_stay_behind_it() -> None:
    bench = Bench(slow=True, **TINY)
    for name in names(10):
        bench.send(name)
    bench.attach(credit=100)
    bench.send("late")
    bench.slow = False
    bench.read()
    bench.flush()
    got = [bench.body(message) for message in bench.engine.shard.links[1].unsettled.values()]
    assert got == [*names(10), "late"]


@pytest.mark.parametrize("verb", ["purge", "destroy"])
def test_a_page_that_comes_after_everything_was_discarded_brings_nothing_back(verb: str) -> None:
    bench = Bench(slow=True, **TINY)
    for name in names(10):
        bench.send(name)
    bench.attach(credit=2)
    bench.settle(1, 2)
    assert bench.reads
    bench.control(verb, QUEUE)
    bench.send("new")
    bench.read()
    bench.slow = False
    bench.flush()
    if verb == "destroy":
        assert bench.attach(2) == ["new"]
    else:
        assert bench.depth() == 3
        assert bench.bodies(bench.settle(3, 4)) == ["new"]
    assert bench.engine.shard.memory == sum(message.size for cursor in bench.destination().subscriptions[0].order for message in cursor.ready)


def test_what_was_acknowledged_before_a_crash_is_not_read_again_into_delivery() -> None:
    bench = Bench(**TINY)
    for name in names(12):
        bench.send(name)
    bench.attach(credit=12)
    bench.settle(2, 5, 6, 9)
    bench.start()
    bench.attach(credit=12)
    got = [bench.body(message) for message in bench.engine.shard.links[1].unsettled.values()]
    assert got == [name for index, name in enumerate(names(12), 1) if index not in (2, 5, 6, 9)]


def test_a_body_that_left_memory_is_read_again_when_its_message_comes_back() -> None:
    bench = Bench(slow=True)
    bench.send("a")
    bench.attach()
    bench.attach(2)
    bench.settle(1, outcome=Outcome.RELEASED)
    assert [type(read) for read in bench.reads] == [PositionsWanted]
    bench.read()
    bench.flush()
    held = [m for link in bench.engine.shard.links.values() for m in link.unsettled.values()]
    assert [bench.body(message) for message in held] == ["a"]


def test_nothing_that_never_left_overtakes_a_body_on_its_way_back() -> None:
    bench = Bench(slow=True)
    bench.send("a", "b")
    bench.attach(credit=1)
    bench.settle(1, outcome=Outcome.RELEASED)
    assert len(bench.engine.shard.links[1].unsettled) == 0
    bench.read()
    assert bench.bodies(bench.flush()) == ["a"]


def test_what_came_back_with_its_body_does_not_overtake_an_earlier_one_whose_body_is_read_again() -> None:
    bench = Bench(slow=True)
    bench.send("small")
    bench.apply(c.Send(1, "large", QUEUE, Message(Header(b"", reliability=ASSURED), StoredBody(1, 50), 50)))
    bench.send("last")
    bench.attach(1)
    bench.apply(c.Detach(1, 1))
    bench.attach(2)
    assert not bench.engine.shard.links[2].unsettled
    bench.read()
    bench.flush()
    assert [message.position for message in bench.engine.shard.links[2].unsettled.values()] == [0, 1, 2]


def test_what_is_read_ahead_for_a_consumer_without_room_is_a_page_in_octets_too() -> None:
    bench = Bench(window_rows=1, page_rows=50, page_octets=100)
    for name in names(60):
        bench.send(name)
    bench.attach(credit=1)
    assert bench.cursor().octets < 2 * 100
    assert consume(bench, 60) == names(60)


def test_while_memory_is_full_who_has_something_reads_no_more_and_who_has_nothing_does() -> None:
    bench = Bench(window_rows=1, page_rows=64, page_octets=640, memory_octets=700)
    for address in ("queue/a", "queue/b", "queue/c"):
        for name in names(64):
            bench.send(name, address=address)
    for link, address in enumerate(("queue/a", "queue/b", "queue/c"), 1):
        bench.attach(link, address=address, credit=1)
    assert all(bench.cursor(address=address).ready for address in ("queue/a", "queue/b", "queue/c"))
    assert bench.engine.shard.memory < 700 + 3 * 10
    for link in (1, 2, 3):
        assert consume(bench, 64, link=link) == names(64)


def test_under_pressure_pages_are_small_and_idle_windows_are_given_up() -> None:
    bench = Bench(window_rows=100, page_rows=64, page_octets=600, memory_octets=1600)
    for name in names(120):
        bench.send(name, address="queue/idle")
    assert bench.engine.shard.memory == 1000
    for name in names(70):
        bench.send(name)
    bench.attach(credit=1)
    assert consume(bench, 70) == names(70)
    assert bench.cursor(address="queue/idle").loaded == 0
    bench.attach(2, address="queue/idle", credit=1)
    assert consume(bench, 120, link=2) == names(120)


# -- volatile messages ----------------------------------------------------------------------------------------------------------------
def test_volatile_messages_that_find_no_room_spill_and_come_in_their_order() -> None:
    bench = Bench(memory_octets=200, page_rows=3, page_octets=60)
    for name in names(40):
        bench.send(name, level=EXPRESS)
    assert sum(len(effects.commit.spilled) for effects in bench.effects if effects.commit) > 20
    bench.attach(credit=2)
    assert consume(bench, 40) == names(40)
    assert bench.engine.shard.memory == 0


def test_best_effort_messages_that_find_no_room_are_dropped_and_only_they() -> None:
    bench = Bench(memory_octets=200, page_octets=64)
    for name in names(20):
        bench.send(name, level=EXPRESS)
    for name in names(20, 20):
        bench.send(name, level=BEST_EFFORT)
    assert bench.depth() == 20
    bench.attach(credit=2)
    assert consume(bench, 40) == names(20)
    assert (bench.depth(), bench.depth(DEAD)) == (0, 0)


@pytest.mark.parametrize("level", [EXPRESS, Reliability.RELIABLE_NONPERSISTENT])
def test_what_spilled_does_not_survive_a_crash(level: Reliability) -> None:
    bench = Bench(memory_octets=200, page_octets=64)
    bench.send("stored", level=ASSURED)
    for name in names(20):
        bench.send(name, level=level)
    bench.start()
    assert bench.attach() == ["stored"]
    bench.settle(1)
    assert bench.destination().octets == 0


def test_a_sweep_ends_what_expired_after_it_was_spilled() -> None:
    bench = Bench(memory_octets=200, page_octets=64)
    for name in names(20):
        bench.send(name, level=EXPRESS)
    bench.send("spilled", level=EXPRESS, expires=bench.now + 10)
    assert bench.engine.shard.timers.entries() == []
    bench.passes(10)
    bench.control("expire")
    assert (bench.depth(), bench.depth(DEAD)) == (20, 1)


def test_a_page_cut_short_is_followed_by_the_next() -> None:
    bench = Bench(page_rows=50, page_octets=45, window_rows=1)
    for name in names(20):
        bench.send(name)
    assert bench.attach(credit=100) == names(20)


def test_reads_for_a_peer_that_left_harm_nobody() -> None:
    bench = Bench(slow=True, **TINY)
    for name in names(10):
        bench.send(name)
    bench.attach(credit=1)
    bench.settle(1)
    bench.settle(2)
    assert bench.reads
    bench.apply(c.PeerLost(1), c.Open(2, "guest"))
    bench.flush()
    bench.slow = False
    bench.read()
    bench.flush()
    bench.attach(2, peer=2, credit=100)
    assert len(bench.engine.shard.links[2].unsettled) == 8


def test_a_lower_priority_waits_while_a_page_of_a_higher_one_is_read() -> None:
    bench = Bench(slow=True, **TINY)
    for high, low in zip(names(10), names(3, 10), strict=False):
        bench.send(high, priority=9)
        bench.send(low, priority=1)
    for name in names(7, 3):
        bench.send(name, priority=9)
    got = bench.attach()
    while bench.reads:
        bench.read(1)
        got += bench.bodies(bench.flush())
    assert got == names(13)


def test_a_lower_priority_waits_for_a_higher_one_that_came_back_and_is_read_again() -> None:
    bench = Bench(slow=True)
    bench.send("high", priority=9)
    bench.attach(credit=1)
    bench.send("low", priority=1)
    assert bench.bodies(bench.settle(1, outcome=Outcome.RELEASED)) == []
    bench.read()
    assert bench.bodies(bench.flush()) == ["high"]


def test_no_priority_waits_for_one_whose_messages_on_disk_are_all_settled() -> None:
    bench = Bench(**TINY)
    for name in names(10):
        bench.send(name, priority=9)
    bench.send("low", priority=1)
    bench.attach(credit=1)
    bench.control("purge", QUEUE)
    bench.send("low again", priority=1)
    assert bench.bodies(bench.settle(1)) == ["low again"]
