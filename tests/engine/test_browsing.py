"""Browsers see what a queue holds and change nothing of it."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.browser import Doing
from broker_core.engine.settings import Settings
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Browsed, Delivered
from broker_core.engine.message import Encoding, Header, Message, Reliability, StoredBody
from broker_core.engine.reads import PageWanted
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import ASSURED, EXPRESS, QUEUE, Bench

END = Browsed(1, 9)


def names(count: int, first: int = 0) -> list[str]:
    return [f"m{number}" for number in range(first, first + count)]


# -- what is shown ----------------------------------------------------------------------------------------------------------------------
def test_a_browser_is_shown_everything_in_order_and_then_told_that_this_was_all() -> None:
    bench = Bench()
    bench.send("a", "b", "c")
    bench.apply(c.Browse(1, 9, QUEUE))
    outputs = bench.flush()
    assert bench.bodies(outputs) == ["a", "b", "c"]
    assert outputs[-1] == END
    assert bench.bodies(bench.send("d")) == [], "that was all"


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
@pytest.mark.parametrize("memory", [100 << 20, 300])
def test_a_deep_queue_is_shown_page_by_page_from_memory_and_disk(level: Reliability, memory: int) -> None:
    bench = Bench(page_rows=3, window_rows=4, memory_octets=memory, page_octets=64, segment_rows=5)
    bench.send(*names(20), level=level)
    assert bench.browse() == names(20)


def test_the_highest_priority_is_shown_first() -> None:
    bench = Bench(page_rows=2)
    for body, priority, level in (("low", 1, ASSURED), ("a", 4, EXPRESS), ("high", 9, ASSURED), ("b", 4, ASSURED)):
        bench.send(body, priority=priority, level=level)
    assert bench.browse() == ["high", "b", "a", "low"]


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_messages_that_consumers_hold_or_gave_back_are_shown_in_their_places(level: Reliability) -> None:
    bench = Bench(page_rows=2, settings=Settings(redelivery_delay_ms=1000))
    bench.attach(1, credit=5)
    bench.send(*names(8), level=level)
    bench.settle(1)
    bench.settle(3, outcome=Outcome.FAILED)
    bench.apply(c.Detach(1, 1))
    bench.flush()
    bench.attach(2, credit=1)
    assert bench.browse(9) == names(7, first=1)


def test_what_a_transaction_has_acknowledged_is_shown_until_it_commits() -> None:
    bench = Bench()
    bench.send("a", "b", level=EXPRESS)
    bench.attach(credit=10)
    bench.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 1, [1])))
    assert bench.browse(8) == ["a", "b"]
    bench.apply(c.End(1, b"t", commit=True))
    assert bench.browse(9) == ["b"]


def test_what_failed_before_is_flagged_and_says_how_often() -> None:
    bench = Bench(settings=Settings(redelivery_delay_ms=0))
    bench.send("a", "b")
    bench.attach(credit=2)
    bench.settle(1, outcome=Outcome.FAILED)
    bench.settle(3, outcome=Outcome.FAILED)
    bench.apply(c.Browse(1, 9, QUEUE))
    shown = [message for output in bench.flush() if isinstance(output, Delivered) and output.link == 9 for message in output.messages]
    assert [(message.redelivered, message.failures) for message in shown] == [(True, 2), (False, 0)]


def test_only_what_was_there_at_the_beginning_is_shown() -> None:
    bench = Bench(slow=True, page_rows=2)
    bench.send(*names(4))
    bench.apply(c.Browse(1, 9, QUEUE))
    shown = bench.bodies(bench.flush())
    bench.send("later")
    while bench.engine.shard.browsing.browsers[9].doing is not Doing.NOTHING:
        bench.read()
        shown += bench.bodies(bench.flush())
    assert shown == names(4)


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_what_is_settled_or_expires_before_the_browser_comes_by_is_left_out(level: Reliability) -> None:
    bench = Bench(slow=True, page_rows=2)
    bench.send(*names(4), level=level)
    bench.send("short", level=level, expires=bench.now + 10)
    bench.apply(c.Attach(1, 1, QUEUE, credit=10), c.Browse(1, 9, QUEUE))
    bench.flush()
    bench.apply(c.Settle(1, 1, [3, 4]))
    bench.now += 10
    while END not in bench.outputs:
        bench.read()
        bench.flush()
    shown = [bench.body(m) for output in bench.outputs if isinstance(output, Delivered) and output.link == 9 for m in output.messages]
    assert shown == ["m0", "m1"]


def test_what_was_settled_while_its_page_was_read_is_left_out() -> None:
    bench = Bench(slow=True)
    bench.send("a", "b")
    bench.attach()
    bench.apply(c.Browse(1, 9, QUEUE))
    bench.flush()
    assert [type(read) for read in bench.reads] == [PageWanted]
    bench.apply(c.Settle(1, 1, [1]))
    bench.read()
    assert bench.bodies(bench.flush()) == ["b"]


def test_a_selector_chooses_what_is_shown() -> None:
    bench = Bench(page_rows=2)
    for body, priority in (("a", 4), ("b", 6), ("c", 4), ("d", 7)):
        bench.send(body, priority=priority)
    assert bench.browse(wanted=Filter(compile_selector("JMSPriority > 4"))) == ["d", "b"]
    assert bench.outputs[-1] == Browsed(1, 1)


def test_large_gaps_of_what_is_settled_are_not_read() -> None:
    bench = Bench(page_rows=10, window_rows=100)
    bench.attach(credit=1000)
    bench.send(*names(100))
    bench.settle(*range(2, 100))
    bench.reads.clear()
    reads = len(bench.effects)
    assert bench.browse(9) == ["m0", "m99"]
    asked = [read for effects in bench.effects[reads:] for read in effects.reads if isinstance(read, PageWanted)]
    assert [(read.after, read.upto) for read in asked] == [(-1, 0), (98, 99)]


# -- what is not changed ----------------------------------------------------------------------------------------------------------------
def test_browsing_moves_nothing_and_writes_nothing() -> None:
    bench = Bench(page_rows=2)
    bench.send(*names(7))
    cursor = bench.cursor()
    before = cursor.loaded, cursor.offered, len(cursor.ready), cursor.progress.floor, bench.depth(), bench.engine.shard.memory
    commits = bench.engine.shard.commit_number
    bench.browse(9)
    assert (cursor.loaded, cursor.offered, len(cursor.ready), cursor.progress.floor, bench.depth(), bench.engine.shard.memory) == before
    assert bench.engine.shard.commit_number == commits
    assert [message.redelivered for message in bench.delivered([*bench.flush()])] == []
    bench.apply(c.Attach(1, 1, QUEUE, credit=100))
    assert [message.redelivered for message in bench.delivered(bench.flush())] == [False] * 7


def test_an_acknowledgement_of_a_copy_means_nothing() -> None:
    bench = Bench()
    bench.send("a")
    bench.browse(9)
    assert bench.confirmed(bench.settle(1, link=9, token="t")) == ["t"]
    assert bench.depth() == 1


def test_looking_at_a_queue_that_is_not_there_makes_none() -> None:
    bench = Bench()
    bench.apply(c.Browse(1, 9, "queue/nowhere", token="t"))
    outputs = bench.flush()
    assert bench.confirmed(outputs) == ["t"] and outputs[-1] == END
    assert "queue/nowhere" not in bench.engine.shard.destinations


def test_a_browser_is_no_consumer() -> None:
    bench = Bench()
    bench.send("a")
    bench.browse(9)
    assert bench.destination().consumers == 0


# -- bounds -----------------------------------------------------------------------------------------------------------------------------
def test_the_next_page_is_read_when_the_last_one_has_left() -> None:
    bench = Bench(slow=True, page_rows=2)
    bench.send(*names(5))
    bench.apply(c.Browse(1, 9, QUEUE))
    bench.flush()
    bench.read()
    effects = bench.engine.flush(bench.now)
    assert len(bench.delivered(effects.outputs)) == 2
    assert not bench.engine.flush(bench.now).reads, "its copies have not left"
    bench.engine.released()
    bench.engine.released()
    assert bench.engine.next_deadline() == bench.now
    assert bench.engine.flush(bench.now).reads


def test_a_stopped_peer_reads_no_further_until_it_is_started() -> None:
    bench = Bench(page_rows=2)
    bench.send(*names(4))
    bench.apply(c.Stop(1))
    assert bench.browse(9) == []
    assert bench.engine.next_deadline() is None
    bench.apply(c.Start(1))
    assert bench.bodies(bench.flush()) == names(4)


def test_one_browser_reads_at_a_time_and_all_get_everything() -> None:
    bench = Bench(slow=True, page_rows=2)
    bench.send(*names(6))
    bench.apply(*(c.Browse(1, link, QUEUE) for link in (7, 8, 9)))
    bench.flush()
    shown: dict[int, list[str]] = {7: [], 8: [], 9: []}
    while sum(isinstance(output, Browsed) for output in bench.outputs) < 3:
        assert len(bench.reads) <= 1
        bench.read()
        outputs = bench.flush()
        assert len(bench.delivered(outputs)) <= 2
        for output in outputs:
            if isinstance(output, Delivered):
                shown[output.link] += bench.bodies([output])
    assert shown == {7: names(6), 8: names(6), 9: names(6)}


def test_a_flush_hands_out_a_page_of_rows_at_the_most_whoever_browses() -> None:
    bench = Bench(slow=True, page_rows=3)
    bench.send(*names(6), level=EXPRESS)
    bench.apply(*(c.Browse(1, link, QUEUE) for link in (7, 8, 9)))
    counts = []
    while sum(isinstance(output, Browsed) for output in bench.outputs) < 3:
        counts.append(len(bench.delivered(bench.flush())))
    assert max(counts) == 3 and sum(counts) == 18


def test_what_a_browser_was_read_counts_as_memory_until_it_has_left() -> None:
    bench = Bench(slow=True, page_octets=1000)
    bench.send("a", "b", size=10)
    bench.apply(c.Browse(1, 9, QUEUE))
    idle = bench.engine.shard.memory
    bench.flush()
    assert bench.engine.shard.memory == idle + 1000
    bench.read()
    bench.engine.flush(bench.now)
    assert bench.engine.shard.memory == idle + 20
    bench.engine.released()
    assert bench.engine.shard.memory == idle


def test_browsers_are_bounded_for_each_peer_and_in_all() -> None:
    bench = Bench(browsers_max=3, peer_browsers_max=2)
    bench.apply(c.Open(2, "guest"), c.Browse(1, 1, QUEUE), c.Browse(1, 2, QUEUE), c.Browse(1, 3, QUEUE))
    assert bench.refused(bench.flush()) == [Refusal.TOO_MANY_BROWSERS]
    bench.apply(c.Browse(2, 11, QUEUE), c.Browse(2, 12, QUEUE))
    assert bench.refused(bench.flush()) == [Refusal.TOO_MANY_BROWSERS]
    bench.apply(c.Detach(1, 1), c.Browse(2, 12, QUEUE))
    assert bench.refused(bench.flush()) == []


@pytest.mark.parametrize(
    ("address", "refusal"),
    [
        ("topic/t", Refusal.NOT_SUPPORTED),
        ("temp-topic/other.1", Refusal.NOT_SUPPORTED),
        ("temp-queue/other.1", Refusal.NOT_THE_OWNER),
        ("queue/mq.own", Refusal.NO_SUCH_DESTINATION),
        ("queue/", Refusal.INVALID_DESTINATION),
    ],
)
def test_what_cannot_be_looked_at_is_refused(address: str, refusal: Refusal) -> None:
    bench = Bench()
    bench.apply(c.Browse(1, 9, address))
    assert bench.refused(bench.flush()) == [refusal]
    assert not bench.engine.shard.browsing.browsers


def test_a_link_in_use_is_refused() -> None:
    bench = Bench()
    bench.attach(1)
    bench.apply(c.Browse(1, 1, QUEUE), c.Browse(1, 9, QUEUE), c.Browse(1, 9, QUEUE))
    assert bench.refused(bench.flush()) == [Refusal.LINK_IN_USE, Refusal.LINK_IN_USE]


# -- closing ----------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("end", [c.Detach(2, 9), c.PeerLost(2)], ids=["detached", "lost"])
@pytest.mark.parametrize("flushes", [0, 1, 2])
def test_a_browser_may_be_closed_at_any_moment_and_leaves_nothing(end: c.Command, flushes: int) -> None:
    bench = Bench(slow=True, page_rows=2)
    bench.send(*names(5))
    bench.apply(c.Open(2, "guest"), c.Browse(2, 9, QUEUE), c.Browse(1, 8, QUEUE))
    for _ in range(flushes):
        bench.flush()
        bench.read()
    bench.apply(end)
    while END not in bench.outputs and Browsed(1, 8) not in bench.outputs:
        bench.flush()
        bench.read()
    shard = bench.engine.shard
    assert list(shard.browsing.browsers) == [8]
    assert shard.memory == bench.cursor().octets


def test_a_browser_of_a_queue_that_is_purged_or_destroyed_meanwhile_is_through() -> None:
    for verb in ("purge", "destroy"):
        bench = Bench(slow=True, page_rows=2)
        bench.send(*names(6))
        bench.apply(c.Browse(1, 9, QUEUE))
        bench.flush()
        bench.control(verb, QUEUE)
        bench.read()
        assert bench.bodies(bench.flush()) == []
        assert END in bench.outputs


# -- segments and large bodies ----------------------------------------------------------------------------------------------------------
def test_a_segment_is_not_dropped_while_a_browser_reads_it() -> None:
    bench = Bench(slow=True, segment_rows=2, page_rows=10)
    bench.attach(credit=10)
    bench.send("a", "b")
    bench.apply(c.Browse(1, 9, QUEUE))
    bench.flush()
    bench.settle(1, 2)
    bench.flush(report=True)
    assert bench.steps == []
    bench.read()
    assert bench.bodies(bench.flush()) == []
    bench.flush(report=True)
    assert len(bench.steps) == 1


def large(bench: Bench, level: Reliability, body: int = 1) -> None:
    message = Message(Header(b"", 4, level, 0, Encoding.STOMP), StoredBody(body, 50), 50)
    bench.apply(c.Send(1, body, QUEUE, message))
    bench.flush()


def test_a_large_body_on_its_way_to_a_browser_stays_though_its_message_is_consumed() -> None:
    bench = Bench(segment_rows=1)
    bench.attach(credit=10)
    large(bench, ASSURED)
    bench.apply(c.Browse(1, 9, QUEUE))
    bench.flush()
    bench.settle(1)
    bench.flush(report=True)
    assert bench.depth() == 0 and list(bench.engine.shard.segments.closed) == [1]
    bench.settle(1, link=9)
    bench.flush(report=True)
    assert not bench.engine.shard.segments.closed


def test_a_large_body_of_a_compacted_message_stays_in_the_retained_table_until_it_has_left() -> None:
    bench = Bench(segment_rows=2, compact_below=0.9)
    bench.attach(credit=20)
    large(bench, ASSURED)
    for name in names(9):
        bench.send(name)
    bench.settle(2)
    for _ in range(6):
        bench.flush(report=True)
    assert bench.engine.shard.segments.retained
    bench.apply(c.Browse(1, 9, QUEUE))
    bench.flush()
    bench.settle(1)
    bench.flush(report=True)
    assert len(bench.database.tables.retained) == 1
    bench.settle(1, link=9)
    bench.flush(report=True)
    assert not bench.database.tables.retained


def test_a_large_body_on_its_way_to_a_browser_stays_though_its_queue_is_destroyed() -> None:
    bench = Bench(segment_rows=1)
    large(bench, ASSURED)
    bench.browse(9)
    bench.control("destroy", QUEUE)
    bench.flush(report=True)
    assert list(bench.engine.shard.segments.closed) == [1]
    bench.settle(1, link=9)
    bench.flush(report=True)
    assert not bench.engine.shard.segments.closed


@pytest.mark.parametrize("end", [c.Settle(2, 9, [1]), c.PeerLost(2)], ids=["left", "lost"])
def test_a_large_body_of_a_volatile_message_goes_when_it_is_consumed_and_has_left(end: c.Command) -> None:
    bench = Bench()
    bench.attach(credit=10)
    large(bench, EXPRESS)
    bench.apply(c.Open(2, "guest"), c.Browse(2, 9, QUEUE))
    bench.flush()
    bench.settle(1)
    bench.apply(c.Detach(2, 9))
    bench.flush()
    assert not [effects for effects in bench.effects if effects.discarded], "it is on its way, though the browser is closed"
    bench.apply(end)
    bench.flush()
    assert [effects.discarded for effects in bench.effects if effects.discarded] == [[1]]


def test_a_large_body_that_left_while_its_message_waits_is_kept_for_the_consumer() -> None:
    bench = Bench()
    large(bench, EXPRESS)
    bench.browse(9)
    bench.settle(1, link=9)
    bench.attach()
    bench.settle(1)
    assert [effects.discarded for effects in bench.effects if effects.discarded] == [[1]]
