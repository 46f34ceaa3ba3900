"""The invariants are looked at after every flush of every test here; each of them can fail."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from broker_core.engine import commands as c
from broker_core.engine.settings import Settings
from broker_core.engine.outcome import Outcome
from broker_core.engine.invariants import check
from tests.engine.rig import Bench


def busy() -> Bench:
    """Messages ready, delayed, outstanding and on disk; a page on its way, a failure, closed segments."""
    bench = Bench(slow=True, page_rows=2, window_rows=3, segment_rows=4, settings=Settings(redelivery_delay_ms=1000))
    for number in range(12):
        bench.send(f"m{number}")
    bench.send("x", "y", address="queue/idle")
    bench.attach(credit=3)
    bench.settle(1, outcome=Outcome.FAILED)
    bench.read()
    bench.apply(c.Open(2, "guest", session="s2"), c.Attach(2, 2, "temp-queue/s2.a", credit=1))
    bench.flush()
    check(bench.engine)
    return bench


def _put_twice(bench: Bench) -> None:
    cursor = bench.cursor()
    cursor.ready.appendleft(next(iter(bench.engine.shard.links[1].unsettled.values())))


def _lose_one(bench: Bench) -> None:
    bench.cursor().delayed.clear()


def _settle_one_that_is_held(bench: Bench) -> None:
    message = next(iter(bench.engine.shard.links[1].unsettled.values()))
    bench.cursor().progress.settle(message.position, message.position)


def _miscount_memory(bench: Bench) -> None:
    bench.engine.shard.memory += 1


def _miscount_octets(bench: Bench) -> None:
    bench.destination().octets -= 1000


def _miscount_link(bench: Bench) -> None:
    bench.engine.shard.links[1].octets += 1


def _forget_offered(bench: Bench) -> None:
    bench.cursor().offered = -1


def _tell_of_what_never_left(bench: Bench) -> None:
    bench.cursor(address="queue/idle").offered = 1


def _forget_timer(bench: Bench) -> None:
    bench.engine.shard.timers = type(bench.engine.shard.timers)()


def _leave_dead_link(bench: Bench) -> None:
    link = bench.engine.shard.links[1]
    link.number = 99
    bench.destination().subscriptions[0].hungry.append(link)


def _serve_out_of_turn(bench: Bench) -> None:
    bench.destination().subscriptions[0].turns = [deque()]


def _think_links_alike(bench: Bench) -> None:
    bench.engine.shard.links[1].priority = 1


def _misname_hungry(bench: Bench) -> None:
    bench.engine.shard.links[1].hungry = not bench.engine.shard.links[1].hungry


def _forget_segment(bench: Bench) -> None:
    bench.engine.shard.segments.closed.clear()


def _forget_reader(bench: Bench) -> None:
    next(iter(bench.engine.shard.segments.closed.values())).readers += 1


def _go_beyond_the_tail(bench: Bench) -> None:
    bench.cursor().loaded = 99


def _miscount_ahead(bench: Bench) -> None:
    bench.cursor().progress.ahead += 1


def _disorder(bench: Bench) -> None:
    bench.cursor(address="queue/idle").ready.reverse()


def _outlive_the_owner(bench: Bench) -> None:
    bench.engine.shard.peers[2].temporaries.clear()


def _belong_to_another(bench: Bench) -> None:
    bench.destination("temp-queue/s2.a").owner = bench.engine.shard.peers[1]


def _store_the_temporary(bench: Bench) -> None:
    bench.destination("temp-queue/s2.a").lanes[4] = bench.destination().lanes[4]


BREAKS = [value for name, value in list(globals().items()) if name.startswith("_") and callable(value) and getattr(value, "__module__", "") == __name__]


@pytest.mark.parametrize("breaks", BREAKS, ids=lambda breaks: breaks.__name__.strip("_"))
def test_what_is_broken_is_named(breaks: Callable[[Bench], None]) -> None:
    bench = busy()
    breaks(bench)
    with pytest.raises(AssertionError, match=r"queue/|link|memory|segment"):
        check(bench.engine)
