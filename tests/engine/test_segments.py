"""Segments roll when they are full, are compacted when nearly empty, and go when nothing in them is unsettled; no read ever names one that may be gone."""

from __future__ import annotations

from broker_core.engine import commands as c
from broker_core.engine.definitions import SegmentClosed
from broker_core.engine.reads import ExpiredWanted, PageWanted
from broker_core.engine.upkeep import DropSegment, FreezeSegment
from tests.engine.rig import DEAD, EXPRESS, START, Bench


def test_a_page_does_not_name_a_segment_that_is_being_dropped() -> None:
    bench = Bench(slow=True, segment_rows=4, window_rows=2, page_rows=2)
    for number in range(4):  # segment 1: two in memory, two on disk only
        bench.send(f"m{number}", expires=START + 5 if number else 0)
    for number in range(4, 8):  # segment 2: all of it expires
        bench.send(f"m{number}", expires=START + 5)
    bench.send("last")
    bench.now += 10
    bench.control("expire")
    while bench.reads:
        bench.read()
        bench.flush()
    bench.flush(report=True)
    assert DropSegment(2) in bench.steps
    bench.attach()
    bench.settle(1)
    pages = [read for effects in bench.effects for read in effects.reads if isinstance(read, PageWanted)]
    assert pages and all(2 not in read.segments for read in pages)


def test_a_sweep_for_expired_messages_does_not_name_a_segment_that_is_being_dropped() -> None:
    bench = Bench(slow=True, segment_rows=2)
    bench.send("a", "b")
    bench.attach()
    bench.settle(upto=2)
    bench.flush(report=True)
    assert bench.steps == [DropSegment(1)]
    bench.control("expire")
    (sweep,) = [read for read in bench.reads if isinstance(read, ExpiredWanted)]
    assert 1 not in sweep.segments


def test_a_message_dies_from_the_retained_table_even_after_a_crash() -> None:
    bench = Bench(segment_rows=4, compact_below=0.5)
    bench.send("first", expires=START + 50)
    for body in "bcdefghijklmnopqrstuvwx":
        bench.send(body)
    bench.attach()
    bench.settle(*range(2, 15))
    for _ in range(3):
        bench.flush(report=True)
    assert bench.engine.shard.segments.retained
    bench.start()
    bench.passes(100)
    bench.control("expire")
    assert bench.depth(DEAD) == 1
    bench.attach(2, address=DEAD)
    assert bench.body(next(iter(bench.engine.shard.links[2].unsettled.values()))) == "first"


def fill(bench: Bench, bodies: str) -> None:
    for body in bodies:
        bench.send(body)


def test_a_segment_is_closed_by_the_commit_that_fills_it_and_says_what_it_holds() -> None:
    bench = Bench(segment_rows=3)
    fill(bench, "abcd")
    closed = [d for effects in bench.effects if effects.commit for d in effects.commit.definitions if isinstance(d, SegmentClosed)]
    assert [(d.segment, d.lanes) for d in closed] == [(1, {(bench.destination().number, 4): (0, 2)})]
    assert bench.effects[-1].commit is not None and bench.effects[-1].commit.segment == 2


def test_a_segment_is_closed_by_octets_as_well() -> None:
    bench = Bench(segment_octets=25)
    fill(bench, "abcd")
    assert bench.engine.shard.segments.current == 2


def test_a_segment_goes_only_when_all_of_it_is_settled() -> None:
    bench = Bench(segment_rows=3)
    fill(bench, "abcdef")
    bench.attach()
    bench.settle(1, 2)
    bench.flush(report=True)
    assert 1 in bench.database.tables.segments
    bench.settle(3)
    bench.flush(report=True)
    assert 1 not in bench.database.tables.segments


def test_a_segment_that_is_read_from_is_not_dropped() -> None:
    bench = Bench(slow=True, segment_rows=3, window_rows=1, page_rows=1)
    fill(bench, "abc")
    bench.attach(credit=1)
    bench.settle(1)
    assert bench.reads
    bench.control("purge", "queue/orders")
    bench.flush(report=True)
    assert bench.steps == []
    bench.read()
    bench.flush(report=True)
    assert bench.steps == [DropSegment(1)]


def freezes(bench: Bench) -> list[int]:
    """What a second brings."""
    before = len(bench.effects)
    bench.flush(report=True)
    return [step.segment for effects in bench.effects[before:] for step in effects.maintenance if isinstance(step, FreezeSegment)]


def test_segments_that_stay_are_frozen_once_one_at_a_time_and_again_by_the_next_node() -> None:
    bench = Bench(segment_rows=3)
    fill(bench, "abcdefg")
    assert [freezes(bench) for _ in range(4)] == [[], [1], [2], []]
    bench.start()
    assert [freezes(bench) for _ in range(4)] == [[], [1], [2], []]


def test_a_segment_that_is_consumed_as_it_is_filled_is_not_frozen() -> None:
    bench = Bench(segment_rows=3)
    bench.attach(credit=100)
    fill(bench, "abcdefg")
    assert freezes(bench) == []
    bench.settle(upto=6)
    assert [freezes(bench) for _ in range(3)] == [[], [], []]


def test_survivors_of_a_compaction_are_read_from_the_retained_table_and_swept_when_settled() -> None:
    bench = Bench(segment_rows=4, compact_below=0.5, page_rows=2, window_rows=2)
    fill(bench, "abcdefghijklmnopqrstuvwx")
    bench.attach(credit=30)
    bench.settle(*range(2, 17))
    for _ in range(3):
        bench.flush(report=True)
    assert len(bench.database.tables.retained) == 1
    bench.apply(c.Detach(1, 1))
    bench.flush()
    bench.attach(2, credit=1)
    held = [bench.body(message) for message in bench.engine.shard.links[2].unsettled.values()]
    assert held == ["a"]
    bench.settle(1, link=2)
    bench.flush(report=True)
    assert bench.database.tables.retained == {}
    assert bench.engine.shard.segments.retained == {}


def test_rows_that_many_subscriptions_need_count_once_when_a_segment_is_to_be_compacted() -> None:
    bench = Bench(segment_rows=10, compact_below=0.2)
    for number in range(8):
        bench.apply(c.Open(10 + number, "guest", f"client{number}"))
        bench.attach(number + 1, peer=10 + number, address="topic/t", name="d", durable=True, credit=100)
    for number in range(40):
        bench.send(f"m{number}", address="topic/t")
    for number in range(8):
        bench.settle(*range(2, 21), link=number + 1, peer=10 + number)
    for _ in range(4):
        bench.flush(report=True)
    assert len(bench.database.tables.retained) == 1


def test_a_segment_with_volatile_rows_is_not_compacted() -> None:
    bench = Bench(segment_rows=4, compact_below=0.9, memory_octets=40, page_octets=20)
    fill(bench, "abcdefgh")
    for body in "stuv":
        bench.send(body, level=EXPRESS)
    assert any(lane >= 10 for segment in bench.engine.shard.segments.closed.values() for _, lane in segment.lanes)
    for _ in range(5):
        bench.flush(report=True)
    assert not bench.database.tables.retained


def test_when_everything_is_settled_only_the_open_segment_remains() -> None:
    bench = Bench(segment_rows=3, page_rows=2, window_rows=2)
    fill(bench, "abcdefghijklmnopqrstuvwxyz")
    bench.attach(credit=30)
    bench.settle(*range(1, 27))
    for _ in range(4):
        bench.flush(report=True)
    assert list(bench.database.tables.segments) == [bench.engine.shard.segments.current]
