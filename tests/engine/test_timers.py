"""Deadlines: nothing fires early, nothing is forgotten, and what is over is not kept until its time."""

from __future__ import annotations

from broker_core.engine.settings import Settings
from broker_core.engine.outcome import Outcome
from tests.engine.rig import EXPRESS, START, Bench


def test_volatile_messages_that_were_consumed_are_not_kept_until_they_would_have_expired() -> None:
    bench = Bench()
    bench.attach()
    for number in range(40):
        bench.send(*[f"{number}.{i}" for i in range(100)], level=EXPRESS, expires=START + 86_400_000)
        bench.settle(upto=(number + 1) * 100)
    assert len(bench.engine.shard.timers.entries()) < 1100


def test_failures_of_volatile_messages_leave_nothing_behind() -> None:
    bench = Bench()
    bench.attach()
    for number in range(1, 21, 2):
        bench.send("again", level=EXPRESS)
        bench.settle(number, outcome=Outcome.FAILED)
        bench.settle(number + 1)
    bench.flush(report=True)
    assert bench.cursor(lane=14).failures_changed == {}


def test_a_message_whose_delay_has_passed_comes_back_and_not_a_moment_earlier() -> None:
    bench = Bench(settings=Settings(redelivery_delay_ms=100))
    bench.send("a")
    bench.attach()
    bench.settle(1, outcome=Outcome.FAILED)
    assert bench.engine.next_deadline() == START + 100
    assert bench.passes(99) == []
    assert bench.bodies(bench.passes(1)) == ["a"]


def test_without_anything_to_wait_for_there_is_no_deadline() -> None:
    bench = Bench()
    bench.send("a", expires=START + 50)
    assert bench.engine.next_deadline() is None
