"""Large bodies of volatile messages: no commit names them and no segment takes them along, so whatever ends their messages discards them."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import APART_OCTETS, Header, Message, StoredBody
from tests.engine.rig import DEAD, EXPRESS, QUEUE, Bench

ROOM = 4 * APART_OCTETS
"""For three volatile messages with large bodies."""
PAGE = APART_OCTETS

def send_large(bench: Bench, *bodies: int, expires: int = 0) -> None:
    """Bodies by their numbers in the store."""
    for body in bodies:
        header = Header(b"", reliability=EXPRESS, expiration=expires)
        bench.apply(c.Send(1, body, QUEUE, Message(header, StoredBody(body, 50), 50)))
    bench.flush()


def discarded(bench: Bench) -> list[int]:
    return sorted(body for effects in bench.effects for body in effects.discarded)


@pytest.mark.parametrize("verb", ["purge", "destroy"])
def test_bodies_in_memory_and_on_disk_are_discarded_with_their_messages(verb: str) -> None:
    bench = Bench(memory_octets=ROOM, page_octets=PAGE)
    send_large(bench, *range(1, 9))
    assert sum(len(effects.commit.spilled) for effects in bench.effects if effects.commit) == 5
    bench.control(verb, QUEUE)
    assert discarded(bench) == [*range(1, 9)]


@pytest.mark.parametrize("verb", ["purge", "destroy"])
def test_bodies_on_their_way_from_disk_are_discarded_once(verb: str) -> None:
    bench = Bench(slow=True, memory_octets=ROOM, page_octets=ROOM, page_rows=50)
    send_large(bench, *range(1, 9))
    bench.attach(credit=0)
    assert bench.reads
    bench.control(verb, QUEUE)
    bench.read()
    bench.flush()
    assert discarded(bench) == [*range(1, 9)]


def test_a_destroyed_queue_takes_along_what_is_delivered_and_a_purged_one_leaves_it() -> None:
    bench = Bench(memory_octets=ROOM, page_octets=PAGE)
    send_large(bench, *range(1, 9))
    bench.apply(c.Attach(1, 1, QUEUE, credit=6))
    bench.flush()
    held = [m.body for m in bench.engine.shard.links[1].unsettled.values()]
    assert held == [StoredBody(number, 50) for number in range(1, 7)]
    bench.control("purge", QUEUE)
    assert discarded(bench) == [7, 8]
    bench.control("destroy", QUEUE)
    assert discarded(bench) == [*range(1, 9)]


def test_bodies_that_expired_on_disk_are_discarded_once_and_those_of_the_dead_are_kept() -> None:
    bench = Bench(memory_octets=ROOM, page_octets=PAGE)
    send_large(bench, *range(1, 5))
    send_large(bench, 5, 6, expires=bench.now + 10)
    bench.control("update", QUEUE, use_dead=False)
    bench.passes(10)
    bench.control("expire")
    assert discarded(bench) == [5, 6]
    send_large(bench, 7, 8, expires=bench.now + 10)
    bench.control("update", QUEUE, use_dead=True)
    bench.passes(10)
    bench.control("expire")
    bench.control("purge", QUEUE)
    assert discarded(bench) == [*range(1, 7)]
    assert bench.depth(DEAD) == 2
