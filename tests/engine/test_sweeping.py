"""What was moved to the retained table goes when it is settled, also behind what stays unsettled: in turn by lane, a bounded part at a time."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine import maintenance
from broker_core.engine.commands import Verb
from broker_core.engine.message import Encoding, Header, Message, Reliability, StoredBody
from broker_core.engine.upkeep import SweepRetained
from tests.engine.branch_rig import BranchBench
from tests.engine.rig import ASSURED, QUEUE, Bench

NAMES = [f"m{number}" for number in range(12)]
LEFT = ["m0", "m2", "m3", "m4", "m6", "m7", "m8", "m10", "m11"]
"""Of three segments of four what is moved, as the second of each is settled before."""


def looks(bench: Bench, number: int = 1) -> list[list[tuple[int, int, int, int]]]:
    """The janitor looks, so many times; what each look swept."""
    before = len(bench.effects)
    for _ in range(number):
        bench.flush(report=True)
    return [step.settled for effects in bench.effects[before:] for step in effects.maintenance if isinstance(step, SweepRetained)]


def rounds(bench: Bench, number: int = 1) -> list[list[tuple[int, int, int, int]]]:
    """The same, at the beginning of a round each."""
    swept = []
    for _ in range(number):
        bench.now += maintenance.SWEEP_EVERY
        swept += looks(bench)
    return swept


def fill(bench: Bench, address: str = QUEUE) -> None:
    """Three segments, and one message in the open one: each in a flush of its own, so that segments have four."""
    for name in (*NAMES, "last"):
        bench.send(name, address=address)


def compact(bench: Bench) -> None:
    bench.control("compact", percent=100)
    looks(bench, 6)


def moved(bench: Bench | None = None) -> Bench:
    """Twelve messages that a consumer has got, compacted."""
    bench = bench or Bench(segment_rows=4)
    fill(bench)
    bench.attach(credit=100)
    bench.settle(2, 6, 10)
    compact(bench)
    assert kept(bench) == LEFT
    return bench


def moved_of_topic(*links: int) -> Bench:
    """The same twelve, of a topic: each link's durable subscription has got them. Link n is of peer 10 + n."""
    bench = Bench(segment_rows=4)
    for link in links:
        bench.apply(c.Open(10 + link, "guest", f"client{link}"))
        bench.attach(link, peer=10 + link, address="topic/t", name="d", durable=True, credit=100)
    fill(bench, "topic/t")
    for link in links:
        bench.settle(2, 6, 10, link=link, peer=10 + link)
    compact(bench)
    assert kept(bench) == LEFT
    return bench


def kept(bench: Bench) -> list[Any]:
    """In the retained table."""
    rows = [row for _, row in bench.database.tables.retained.values()]
    return [row.body.decode() if isinstance(row.body, bytes) else row.body for row in sorted(rows, key=lambda row: row.sequence)]


def test_what_is_settled_goes_though_the_oldest_message_stays() -> None:
    bench = moved()
    bench.settle(3, 4, 5, 7, 8, 9, 11, 12)
    rounds(bench)
    assert kept(bench) == ["m0"]
    bench.settle(1)
    looks(bench)
    assert kept(bench) == []


def test_what_is_unsettled_stays_wherever_it_lies_and_comes_back_after_a_crash() -> None:
    bench = moved()
    bench.settle(3, 5, 8, 9, 12)
    rounds(bench, 3)
    left = ["m0", "m3", "m6", "m10"]
    assert kept(bench) == left
    bench.start()
    assert bench.attach(credit=100) == [*left, "last"]


def test_what_was_settled_before_a_crash_goes_after_it() -> None:
    bench = moved()
    bench.settle(3, 4, 5)
    bench.start()
    rounds(bench)
    assert kept(bench) == ["m0", "m6", "m7", "m8", "m10", "m11"]


def test_of_a_topic_goes_what_all_its_subscriptions_have_settled() -> None:
    bench = moved_of_topic(1, 2)
    bench.settle(3, 4, 5, 7, link=1, peer=11)
    bench.settle(4, 5, 7, 8, link=2, peer=12)
    rounds(bench)
    assert kept(bench) == ["m0", "m2", "m7", "m8", "m10", "m11"]


def test_what_a_prepared_branch_has_acknowledged_stays() -> None:
    bench = BranchBench(segment_rows=4)
    fill(bench)
    bench.attach(credit=100)
    bench.settle(2, 6, 10)
    bench.prepared(tags=(4, 5))
    compact(bench)
    bench.settle(3, 7, 8)
    rounds(bench)
    assert kept(bench) == ["m0", "m3", "m4", "m8", "m10", "m11"]
    bench.say(Verb.COMMIT)
    rounds(bench)
    assert kept(bench) == ["m0", "m8", "m10", "m11"]


def test_what_can_be_undone_stays_until_that_lapses() -> None:
    bench = moved(Bench(segment_rows=4, undo_ms=60_000))
    bench.settle(3)
    bench.apply(c.Detach(1, 1))
    bench.flush()
    bench.attach(2, credit=1)  # holds the oldest: a purge leaves it alone
    bench.control("purge", QUEUE)
    rounds(bench)
    assert kept(bench) == [name for name in LEFT if name != "m2"]
    bench.now += 60_000
    looks(bench)
    rounds(bench)
    assert kept(bench) == ["m0"]


def test_a_large_body_on_its_way_to_a_browser_stays_until_it_has_left() -> None:
    bench = Bench(segment_rows=4)
    bench.send("m0")
    bench.send("m1")
    large = Message(Header(b"", 4, Reliability.ASSURED, 0, Encoding.STOMP), StoredBody(1, 50), 50)
    bench.apply(c.Send(1, 1, QUEUE, large))
    bench.flush()
    bench.send("m3")
    bench.send("last")
    bench.attach(credit=100)
    bench.settle(2)
    compact(bench)
    bench.apply(c.Browse(1, 9, QUEUE))
    bench.flush()
    bench.settle(3, 4)
    rounds(bench)
    assert kept(bench) == ["m0", StoredBody(1, 50)]
    bench.settle(2, link=9)
    rounds(bench)
    assert kept(bench) == ["m0"]


def test_a_look_sweeps_a_bounded_part_and_the_next_one_goes_on_in_the_next_lane_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "SWEEP_RANGES", 2)
    bench = Bench(segment_rows=8)
    for number in range(8):
        for priority in (4, 6):
            bench.send(f"{priority}.{number}", priority=priority, level=ASSURED)
    bench.send("last")
    bench.attach(credit=100)
    tags = {bench.body(message): tag for tag, message in bench.engine.shard.links[1].unsettled.items()}
    bench.settle(tags["4.1"], tags["6.5"])
    compact(bench)
    bench.settle(*[tags[f"{priority}.{number}"] for priority in (4, 6) for number in (1, 3, 5)])
    bench.now += maintenance.SWEEP_EVERY
    swept = looks(bench, 6)
    assert [len(settled) for settled in swept] == [2, 2, 2]
    assert [lane for settled in swept for _, lane, _, _ in settled] == [4, 4, 4, 6, 6, 6]
    assert sorted(kept(bench)) == sorted(f"{priority}.{number}" for priority in (4, 6) for number in (0, 2, 4, 6, 7))


def test_a_look_ends_with_its_effort_and_the_next_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three subscriptions need the same rows of the lane: each look asks about two ranges only, and comes past one row."""
    bench = moved_of_topic(1, 2, 3)
    for link in (1, 2, 3):
        bench.settle(4, 8, link=link, peer=10 + link)
    monkeypatch.setattr(maintenance, "SWEEP_EFFORT", 2)
    assert rounds(bench) == []
    assert [len(settled) for settled in looks(bench, 8)] == [1, 1, 1, 1, 1], "m1, m3, m5, m7, m9"
    assert kept(bench) == [name for name in LEFT if name not in ("m3", "m7")]


def test_a_long_interval_is_looked_at_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little is unsettled there: going through what is settled takes time, too."""
    bench = moved()
    bench.settle(3, 4, 5, 7, 8, 9, 11)
    monkeypatch.setattr(maintenance, "BLOCK", 1)
    monkeypatch.setattr(maintenance, "SWEEP_EFFORT", 10)
    rounds(bench)
    assert kept(bench) == ["m0", "m6", "m7", "m8", "m10", "m11"]
    looks(bench, 2)
    assert kept(bench) == ["m0", "m11"]


def test_between_two_rounds_nothing_is_looked_for() -> None:
    bench = moved()
    rounds(bench)
    assert looks(bench, 3) == []
    bench.settle(4)
    assert looks(bench, 3) == []
    rounds(bench)
    assert "m3" not in kept(bench)
