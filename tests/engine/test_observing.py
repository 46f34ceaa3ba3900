"""What operators are told without anything being counted message by message: how long messages waited, why they died, what is held and what waits;
and what the log is told of traces."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.effects import Death, DestinationStatistics, Turned
from broker_core.engine.observing import CAUSES, WAITED_MS
from broker_core.engine.outcome import Outcome
from broker_core.engine.settings import Settings
from broker_core.server.metrics import gauges
from tests.engine.rig import BEST_EFFORT, QUEUE, Bench

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def told(bench: Bench, address: str = QUEUE) -> DestinationStatistics:
    """What the last report that had anything of it said."""
    bench.flush(report=True)
    return [row for effects in bench.effects for row in effects.statistics if row.address == address][-1]


def noted(bench: Bench) -> list[Death | Turned]:
    return [each for effects in bench.effects for each in effects.noted]


@pytest.mark.parametrize(("waits", "bucket"), [(0, 0), (1, 0), (2, 1), (700, 6), (86_400_001, len(WAITED_MS))])
def test_what_was_acknowledged_is_counted_by_how_long_it_was_there(waits: int, bucket: int) -> None:
    bench = Bench()
    bench.send("a", "b", "c")
    bench.attach()
    bench.now += waits
    bench.settle(upto=2)
    row = told(bench)
    assert [(place, count) for place, count in enumerate(row.waited[:-1]) if count] == [(bucket, 2)]
    assert row.waited[-1] == 2 * waits
    assert gauges(bench.engine.shard)["waited_seconds_buckets"] == list(row.waited[:-1])
    bench.start()
    assert gauges(bench.engine.shard)["waited_seconds_sum"] == 0, "counts begin with the term"


def test_where_nothing_was_acknowledged_and_nothing_died_nothing_is_kept() -> None:
    bench = Bench()
    bench.send("a")
    row = told(bench)
    assert (row.waited, row.died, row.waiting, row.oldest_unsettled_at) == ((), (), 0, None)


@pytest.mark.parametrize(("outcome", "cause"), [(Outcome.REJECTED, "rejected"), (Outcome.FAILED, "undeliverable")])
def test_deaths_are_counted_by_their_cause(outcome: Outcome, cause: str) -> None:
    bench = Bench(settings=Settings(redelivery_max=0))
    bench.send("a")
    bench.attach()
    bench.settle(1, outcome=outcome)
    assert dict(zip(CAUSES, told(bench).died, strict=True)) == dict.fromkeys(CAUSES, 0) | {cause: 1}


def test_what_expired_unread_is_counted_as_expired() -> None:
    bench = Bench()
    bench.send("a", "b", level=BEST_EFFORT, expires=bench.now + 5)
    bench.passes(10)
    assert told(bench).died[CAUSES.index("expired")] == 2
    assert gauges(bench.engine.shard)["died"]["expired"] == 2


def test_it_is_known_since_when_a_consumer_holds_what_it_has_held_longest() -> None:
    bench = Bench()
    bench.send("a", "b")
    bench.attach(credit=1)
    assert told(bench).oldest_unsettled_at == bench.now
    first = bench.now
    bench.now += 5_000
    bench.attach(2)
    bench.send("c")
    bench.now += 1_000
    assert told(bench).oldest_unsettled_at == first
    assert gauges(bench.engine.shard)["oldest_unsettled_seconds"] == 6.0
    bench.settle(1)
    bench.flush(report=True)
    assert told(bench).oldest_unsettled_at == first + 6_000
    bench.settle(1, 2, link=2)
    bench.settle(2)
    assert told(bench).oldest_unsettled_at is None
    assert gauges(bench.engine.shard)["oldest_unsettled_seconds"] is None


def test_sends_that_wait_for_room_are_told_until_none_does() -> None:
    bench = Bench()
    bench.control("create", QUEUE, max_messages=1)
    bench.apply(c.Open(2, "shop"))
    bench.send("a", "b", "c")
    assert told(bench).waiting == 2
    found = gauges(bench.engine.shard)
    assert (found["producers_blocked"], found["destinations_blocked"], found["sends_waiting_for_room"]) == (1, 1, 2)
    bench.apply(c.PeerLost(1))
    assert told(bench).waiting == 0, "though nothing else has changed"
    assert gauges(bench.engine.shard)["producers_blocked"] == 0


# -- traces -----------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("said", "shown"), [(TRACE, TRACE), ("", ""), ("secret", ""), (TRACE.upper(), ""), (f"{TRACE}-more", "")])
def test_a_death_is_told_with_its_trace_if_it_can_be_one(said: str, shown: str) -> None:
    bench = Bench(dead_log=True, settings=Settings(redelivery_max=0))
    bench.send("a", properties={"traceparent": said} if said else {})
    bench.attach()
    bench.settle(1, outcome=Outcome.FAILED)
    (death,) = noted(bench)
    assert isinstance(death, Death)
    assert (death.traceparent, death.destination) == (shown, QUEUE)


@pytest.mark.parametrize("log", [True, False])
def test_a_refused_send_is_told_where_deaths_are(log: bool) -> None:
    bench = Bench(dead_log=log)
    bench.control("create", QUEUE)
    bench.control("pause", QUEUE, direction="PRODUCERS")
    bench.send("a", properties={"traceparent": TRACE})
    assert noted(bench) == ([Turned(QUEUE, "guest", "DESTINATION_PAUSED", QUEUE, TRACE)] if log else [])
