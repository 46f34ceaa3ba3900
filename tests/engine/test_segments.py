"""Segments roll when they are full, are compacted when nearly empty, and go when nothing in them is unsettled; no read ever names one that may be gone."""

from __future__ import annotations

from broker_core.engine.effects import DropSegment, ExpiredWanted, PageWanted
from tests.engine.rig import DEAD, START, Bench


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
