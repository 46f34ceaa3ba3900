"""What a new term knows is what was durable: the engine of before, less what is volatile."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine import recover
from broker_core.engine.settings import Settings
from broker_core.engine.outcome import Outcome
from broker_core.engine.message import Header, Message
from tests.engine.picture import picture
from tests.engine.rig import ASSURED, EXPRESS, QUEUE, Bench, now_of


def test_octets_of_volatile_messages_are_gone_after_a_crash() -> None:
    bench = Bench()
    bench.send("stored", size=100)
    bench.send("volatile", level=EXPRESS, size=1000)
    bench.flush(report=True)
    bench.start()
    assert bench.destination().octets == 100


def test_message_ids_of_volatile_messages_are_not_given_out_again_after_a_crash() -> None:
    bench = Bench()
    bench.send("stored")
    bench.send("volatile", level=EXPRESS)
    before = bench.engine.shard.sequence
    bench.start()
    bench.send("another", level=EXPRESS)
    assert bench.cursor(lane=14).ready[0].sequence > before


def test_a_restored_checkpoint_moves_the_sequence_beyond_what_the_ledger_behind_it_says() -> None:
    """What the lost broker gave out after its backup is not given again (console.launch.restore)."""
    bench = Bench()
    bench.send("stored")
    bench.database.tables.sequence = 1 << 55
    bench.start()
    assert bench.attach() == ["stored"]
    bench.send("another")
    assert bench.delivered(bench.outputs)[-1].sequence > 1 << 55
    bench.start()
    assert bench.engine.shard.sequence > 1 << 55


def busy(bench: Bench, *, reports: bool) -> None:
    """A little of everything."""
    for number in range(30):
        bench.send(f"a{number}", priority=number % 3 + 3)
        bench.send(f"v{number}", level=EXPRESS)
        if reports and number % 4 == 0:
            bench.flush(report=True)
    bench.attach(credit=20)
    bench.settle(1, 3, 4, 9)
    bench.settle(2, 5, outcome=Outcome.FAILED)
    bench.settle(6, outcome=Outcome.REJECTED)
    bench.control("create", "queue/other", redelivery_max=7)
    bench.send("x", "y", address="queue/other")
    bench.control("pause", "queue/other", direction="CONSUMERS")


@pytest.mark.parametrize("reports", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_recovery_knows_what_the_engine_knew_less_what_is_volatile(reports: bool, last: bool) -> None:
    bench = Bench(settings=Settings(redelivery_delay_ms=60_000), page_rows=3, window_rows=4, segment_rows=16)
    busy(bench, reports=reports)
    if last:
        bench.flush(report=True)
    before = picture(bench)
    bench.start()
    assert picture(bench) == before
    bench.start()
    assert picture(bench) == before


def test_what_expired_or_was_purged_since_the_last_checkpoint_is_not_counted_as_acknowledged() -> None:
    bench = Bench()
    bench.send("acknowledged", "purged")
    bench.attach(credit=1)
    bench.settle(1)
    bench.apply(c.Detach(1, 1))
    bench.flush()
    bench.control("purge", QUEUE)
    bench.send("expired", expires=bench.now + 10)
    bench.now += 20
    assert bench.attach(2) == []
    before = bench.destination()
    assert (before.settled, before.expired) == (1, 1)
    bench.start()
    assert (bench.destination().settled, bench.destination().expired) == (1, 1)


def test_a_message_that_may_have_left_is_flagged_and_one_that_cannot_is_not() -> None:
    bench = Bench()
    bench.send(*"abcd")
    bench.attach(credit=2)
    bench.start()
    bench.attach(credit=4)
    assert [m.redelivered for m in bench.engine.shard.links[1].unsettled.values()] == [True, True, False, False]


def test_a_crash_is_no_failure_and_failures_survive_it() -> None:
    bench = Bench(settings=Settings(redelivery_delay_ms=0, redelivery_max=3))
    bench.send("a", "b")
    bench.attach()
    bench.settle(1, outcome=Outcome.FAILED)
    bench.start()
    bench.attach()
    assert [m.failures for m in bench.engine.shard.links[1].unsettled.values()] == [1, 0]


def test_after_a_crash_a_message_in_its_back_off_is_due_at_once() -> None:
    bench = Bench(settings=Settings(redelivery_delay_ms=60_000))
    bench.send("a")
    bench.attach()
    bench.settle(1, outcome=Outcome.FAILED)
    bench.start()
    assert bench.attach() == ["a"]


def test_positions_and_segments_go_on_where_they_were() -> None:
    bench = Bench(segment_rows=4)
    for body in "abcdef":
        bench.send(body)
    bench.start()
    bench.send("g")
    assert bench.cursor().lane.tail == 7
    assert bench.engine.shard.segments.lanes == {(bench.destination().number, 4): (4, 6)}
    assert bench.attach() == list("abcdefg")


def test_a_commit_that_was_durable_and_never_heard_of_is_found() -> None:
    bench = Bench()
    bench.send("a")
    header = Header(b"", 4, ASSURED)
    bench.apply(c.Send(1, "b", QUEUE, Message(header, b"b", 10)))
    effects = bench.engine.flush(bench.now)
    assert effects.commit is not None
    now_of(bench.store.commit(effects.commit))
    bench.start()
    assert bench.attach() == ["a", "b"]


def test_engine_time_never_goes_back() -> None:
    bench = Bench()
    bench.now += 5000
    bench.send("a")
    found = now_of(bench.database.open(bench.now - 4000).recover())
    assert recover(found, bench.limits, "test").shard.now == bench.now
