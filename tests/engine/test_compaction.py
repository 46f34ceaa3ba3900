"""Compaction that an operator asks for: each segment that is closed is looked at once, one at a time, with his threshold; counted before, and told."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine import maintenance
from broker_core.engine.upkeep import CompactSegment
from tests.engine.rig import EXPRESS, Bench


def filled(segments: int = 3, settled: tuple[int, ...] = (2, 3), **limits: float) -> Bench:
    """So many closed segments of four, and one that is open; of each closed one these places are settled, the first being 1."""
    bench = Bench(segment_rows=4, **limits)
    for number in range(4 * segments + 1):
        bench.send(f"m{number}")
    bench.attach(credit=100)
    bench.settle(*[4 * segment + place for segment in range(segments) for place in settled])
    return bench


def told(bench: Bench) -> dict[str, object]:
    compaction = bench.engine.shard.compaction
    assert compaction is not None
    return compaction.told()


def seconds(bench: Bench, number: int) -> list[int]:
    """What is compacted in them."""
    before = len(bench.effects)
    for _ in range(number):
        bench.flush(report=True)
    return [step.segment for effects in bench.effects[before:] for step in effects.maintenance if isinstance(step, CompactSegment)]


def test_what_is_half_unsettled_is_compacted_when_somebody_asks_one_segment_a_second() -> None:
    bench = filled()
    assert seconds(bench, 6) == [], "not by itself"
    assert bench.control("compact", percent=50) == {"percent": 50, "segments": 3}
    assert [seconds(bench, 1) for _ in range(4)] == [[1], [2], [3], []]
    assert told(bench) | {"segments": 3, "compacted": 3, "left": 0, "gone": 0, "rows": 6} == told(bench)
    assert told(bench)["ended"] is not None
    assert len(bench.database.tables.retained) == 6
    seconds(bench, 1)
    assert list(bench.database.tables.segments) == [4]


@pytest.mark.parametrize(("percent", "compacted"), [(49, 0), (50, 3), (100, 3)])
def test_more_than_the_threshold_stays_where_it_is(percent: int, compacted: int) -> None:
    bench = filled()
    bench.control("compact", percent=percent)
    seconds(bench, 5)
    assert (told(bench)["compacted"], told(bench)["left"]) == (compacted, 3 - compacted)


def test_where_nothing_is_settled_nothing_is_won() -> None:
    bench = filled(settled=())
    bench.control("compact", percent=100)
    assert seconds(bench, 5) == []
    assert told(bench)["left"] == 3


def test_what_goes_by_itself_is_not_compacted() -> None:
    bench = filled(settled=(1, 2, 3, 4))
    bench.control("compact", percent=100)
    assert seconds(bench, 5) == []
    assert (told(bench)["gone"], told(bench)["left"]) == (3, 0)


def test_what_was_moved_is_delivered_in_order_also_after_a_crash() -> None:
    bench = filled(page_rows=2, window_rows=2)
    bench.control("compact", percent=50)
    seconds(bench, 5)
    for crash in (False, True):
        if crash:
            bench.start()
        else:
            bench.apply(c.Detach(1, 1))
            bench.flush()
        assert bench.engine.shard.compaction is None or not crash, "it was of the term before"
        bench.attach(2, credit=100)
        held = [bench.body(message) for message in bench.engine.shard.links[2].unsettled.values()]
        assert held == ["m0", "m3", "m4", "m7", "m8", "m11", "m12"]
        if not crash:
            bench.apply(c.Detach(1, 2))
            bench.flush()


def test_the_next_waits_until_one_is_done() -> None:
    bench = filled()
    bench.slow = True
    bench.control("compact", percent=50)
    assert seconds(bench, 3) == [1]
    bench.maintain()
    assert seconds(bench, 3) == [2]


def test_another_takes_its_place_and_none_ends_it() -> None:
    bench = filled()
    bench.control("compact", percent=50)
    assert seconds(bench, 1) == [1]
    assert bench.control("compact", percent=10)["segments"] == 2
    assert seconds(bench, 4) == []
    assert told(bench)["left"] == 2
    bench.control("compact", percent=50)
    bench.control("compact", percent=0)
    assert seconds(bench, 4) == []
    assert told(bench) | {"segments": 0, "compacted": 0} == told(bench)
    assert told(bench)["ended"] is not None


def test_one_that_takes_the_place_of_another_waits_for_what_that_one_is_at_work_on_and_does_not_count_it() -> None:
    bench = filled()
    bench.slow = True
    bench.control("compact", percent=50)
    assert seconds(bench, 1) == [1]
    assert bench.control("compact", percent=50)["segments"] == 2
    bench.control("compact", percent=50)
    assert seconds(bench, 3) == []
    bench.slow = False
    bench.maintain()
    assert seconds(bench, 5) == [2, 3]
    assert told(bench) | {"segments": 2, "compacted": 2, "left": 0, "gone": 0, "rows": 4} == told(bench)


def test_nothing_is_compacted_by_itself_meanwhile() -> None:
    """Four segments are nearly empty and would be, one after the other; an operator has asked for them, too."""
    bench = filled(6, settled=(2, 3, 4), compact_below=0.3)
    bench.slow = True
    bench.control("compact", percent=30)
    assert seconds(bench, 6) == [1]


def test_what_many_subscriptions_need_of_many_lanes_is_not_looked_at_beyond_what_a_segment_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes share one allowance: 250 of them, each within its own, would be 250 times the work."""
    monkeypatch.setattr(maintenance, "SHARED", 2)
    bench = Bench(segment_rows=12)
    for number in range(13):
        bench.send(f"m{number}", priority=2 * (number % 4))
    bench.attach(credit=100)
    bench.settle(1)
    bench.control("compact", percent=100)
    assert seconds(bench, 3) == []
    assert (told(bench)["left"], told(bench)["compacted"]) == (1, 0)


def test_octets_are_added_up() -> None:
    bench = filled()
    bench.slow = True
    bench.control("compact", percent=50)
    seconds(bench, 1)
    bench.steps = []
    bench.apply(c.SegmentCompacted(1, 1000, 100))
    bench.flush()
    assert (told(bench)["octets_before"], told(bench)["octets_after"]) == (1000, 100)


def test_volatile_segments_are_left() -> None:
    bench = Bench(segment_rows=4, memory_octets=40, page_octets=20)
    for body in "abcdefgh":
        bench.send(body)
    for body in "stuv":
        bench.send(body, level=EXPRESS)
    bench.control("compact", percent=100)
    seconds(bench, 6)
    assert told(bench)["compacted"] == 0


# -- counted before -------------------------------------------------------------------------------------------------------------------
def test_a_count_says_what_would_be_done_and_does_nothing() -> None:
    bench = filled()
    expected = {"segments": 3, "looked_at": 3, "rows": 12, "unsettled": 6, "numbers": [1, 2, 3]}
    assert bench.control("compactable", percent=50) == {"percent": 50, **expected}
    assert bench.control("compactable", percent=40)["numbers"] == []
    assert bench.engine.shard.compaction is None
    assert seconds(bench, 5) == []


def test_a_count_that_would_be_long_work_ends_before_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "COUNT_EFFORT", 3)
    bench = filled(segments=5)
    found = bench.control("compactable", percent=50)
    assert (found["segments"], found["looked_at"], found["numbers"]) == (5, 1, [1])


@pytest.mark.parametrize("percent", [-1, 101, "50", None, True])
def test_what_is_no_percentage_is_refused(percent: object) -> None:
    bench = filled()
    for verb in ("compact", "compactable"):
        assert bench.control(verb, percent=percent)["refusal"] == "INVALID_SETTING"
    assert bench.engine.shard.compaction is None
