"""How long producers of a destination waited for room, as the ledger tells."""

from __future__ import annotations

from typing import Any

from broker_core.engine import commands as c
from broker_core.engine.blocking import NOTED_MS, UNTOLD_MAX
from tests.engine.rig import EXPRESS, START, Bench
from tests.engine.test_flow_control import OTHER, ask, commit, full, send

SECOND = 1000


def told(bench: Bench) -> list[Any]:
    """(since, until) of the queue, in ms since the beginning, by commit."""
    number = bench.destination().number
    return [[(since - START, until - START) for one, since, until in blocked if one == number] for blocked in _commits(bench)]


def _commits(bench: Bench) -> list[list[tuple[int, int, int]]]:
    return [effects.commit.blocked for effects in bench.effects if effects.commit is not None and effects.commit.blocked]


def settled_after(bench: Bench, ms: int, tag: int) -> None:
    bench.now += ms
    bench.settle(tag)


def test_the_commit_that_lets_in_what_waited_tells_since_when_and_until_when() -> None:
    bench = full()
    bench.attach(credit=1)
    bench.now += SECOND
    send(bench, "c")
    bench.flush()
    settled_after(bench, 5 * SECOND, 1)
    assert told(bench) == [[(SECOND, 6 * SECOND)]]


def test_it_lasts_until_nothing_waits_any_more() -> None:
    bench = full()
    bench.attach(credit=1)
    bench.send("c", "d")
    settled_after(bench, 3 * SECOND, 1)
    assert told(bench) == []
    settled_after(bench, 4 * SECOND, 2)
    assert told(bench) == [[(0, 7 * SECOND)]]


def test_what_comes_in_at_once_was_not_held_up() -> None:
    bench = full()
    bench.send("c")
    bench.attach(credit=1)
    bench.settle(1)
    assert told(bench) == []


def test_while_it_lasts_it_is_told_once_a_minute_by_a_commit_of_its_own_if_there_is_no_other() -> None:
    bench = full()
    bench.send("c")
    for _ in range(3 * 60 + 59):
        bench.now += SECOND
        bench.flush(report=True)
    assert told(bench) == [[(minute * NOTED_MS, (minute + 1) * NOTED_MS)] for minute in range(3)]
    bench.now += SECOND // 2
    bench.send("d", address=OTHER)
    assert len(told(bench)) == 3, "what lasts is told when the next minute is full"


def test_a_term_that_ends_loses_a_minute_at_the_most() -> None:
    bench = full()
    bench.send("c")
    for _ in range(90):
        bench.now += SECOND
        bench.flush(report=True)
    bench.start()
    assert told(bench) == [[(0, NOTED_MS)]]
    bench.now += SECOND
    bench.send("d", address=OTHER)
    assert told(bench) == [[(0, NOTED_MS)]]


def test_a_commit_whose_receipt_is_withheld_is_waiting() -> None:
    bench = full()
    commit(bench, "c")
    bench.attach(credit=3)
    settled_after(bench, SECOND, 1)
    assert told(bench) == [[(0, SECOND)]]


def test_who_closes_its_connection_waits_no_more() -> None:
    bench = full()
    bench.apply(c.Open(2, "guest"))
    send(bench, "c", peer=2)
    bench.flush()
    bench.now += SECOND
    bench.apply(c.PeerLost(2))
    bench.flush()
    bench.now += SECOND
    bench.send("d", address=OTHER)
    assert told(bench) == [[(0, SECOND)]]


def test_what_waits_for_a_destroyed_destination_has_waited_for_that_until_another_has_its_name() -> None:
    bench = full()
    old = bench.destination().number
    bench.send("c")
    bench.now += SECOND
    ask(bench, "destroy", depth=2)
    bench.flush()
    assert _commits(bench) == [[(old, START, START + SECOND)]]


def test_volatile_messages_alone_make_a_commit_for_it_when_there_is_much_to_tell_or_it_is_a_minute_old() -> None:
    bench = full()
    bench.attach(credit=1)
    for turn in range(UNTOLD_MAX + 3):
        send(bench, "v", level=EXPRESS)
        bench.flush()
        settled_after(bench, 1, turn + 1)
    stored = [1, 1]
    assert [len(row) for row in told(bench)] == [*stored, UNTOLD_MAX]
    bench.now += NOTED_MS
    bench.flush()
    assert [len(row) for row in told(bench)] == [*stored, UNTOLD_MAX, 1]
