"""What one flush hands out is bounded, whatever one command sets free; who waits gets on, and others are served in between."""

from __future__ import annotations

from itertools import pairwise

import pytest

from broker_core.engine import commands as c
from broker_core.engine.effects import Effects
from broker_core.engine.message import Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Confirmed, Delivered, Refused
from broker_core.engine.reads import PageWanted
from tests.engine.rig import DEAD, EXPRESS, QUEUE, RELIABLE, START, Bench, deliveries, received


def bench(queues: int, messages: int, **how) -> Bench:
    """So many queues with so many messages each, and peer 2, stopped, with a consumer of each."""
    made = Bench(slow=True, **how)
    made.apply(c.Open(2, "guest"), c.Stop(2))
    for queue in range(1, queues + 1):
        made.apply(c.Attach(2, queue, f"queue/{queue}", credit=1_000))
        for number in range(messages):
            made.apply(c.Send(1, None, f"queue/{queue}", Message(Header(b""), f"m{number}".encode(), 10)))
    until_done(made)
    return made


def until_done(b: Bench) -> list[Effects]:
    before = len(b.effects)
    while len(b.effects) == before or b.reads or b.engine.shard.unserved or b.engine.shard.batch.dirty:
        b.flush()
        b.read()
    return b.effects[before:]


def send(b: Bench, *bodies: str, address: str = QUEUE, level=RELIABLE, priority: int = 4, expires: int = 0) -> None:
    b.apply(*(c.Send(1, None, address, Message(Header(b"", priority, level, expires), body.encode(), 10)) for body in bodies))


def test_a_peer_whose_socket_takes_more_again_gets_what_waited_in_portions() -> None:
    b = bench(40, 10, deliveries=50)
    b.apply(c.Start(2))
    effects = until_done(b)
    assert max(deliveries(each) for each in effects) <= 50
    assert received(b, effects) == {queue: [f"m{number}" for number in range(10)] for queue in range(1, 41)}


def test_one_queue_with_much_in_memory_is_handed_out_in_portions_and_in_order() -> None:
    b = bench(1, 300, deliveries=40)
    b.apply(c.Start(2))
    effects = until_done(b)
    assert max(deliveries(each) for each in effects) <= 40
    assert received(b, effects) == {1: [f"m{number}" for number in range(300)]}


def test_octets_count_towards_a_portion_too() -> None:
    b = Bench(slow=True, deliveries=100)
    for number in range(10):
        b.apply(c.Attach(1, number + 1, f"queue/{number}", credit=10))
        b.apply(*(c.Send(1, None, f"queue/{number}", Message(Header(b""), b"m", 160_000)) for _ in range(4)))
    portions = [deliveries(each) for each in until_done(b)]
    assert sum(portions) == 40
    assert max(portions) <= 8


def test_a_quiet_queue_is_served_at_once_whatever_waits() -> None:
    b = bench(60, 10, deliveries=40)
    b.apply(c.Attach(1, 901, "queue/quiet", credit=10))
    b.flush()
    b.apply(c.Start(2))
    b.flush()
    send(b, "now", address="queue/quiet")
    b.flush()
    assert received(b, b.effects[-1:])[901] == ["now"]
    assert b.engine.shard.unserved
    assert sum(map(len, received(b, until_done(b)).values())) > 400


def test_what_waits_gets_on_whatever_comes() -> None:
    b = bench(30, 10, deliveries=20)
    b.apply(*(c.Attach(1, 900 + number, f"queue/busy{number}", credit=1_000) for number in range(50)))
    b.flush()
    b.apply(c.Start(2))
    before = len(b.effects)
    for _ in range(100):
        for number in range(50):
            send(b, "x", address=f"queue/busy{number}")
        b.flush()
    came = received(b, b.effects[before:])
    assert all(len(came[queue]) == 10 for queue in range(1, 31))


def test_deaths_by_the_thousand_end_in_portions() -> None:
    b = Bench(slow=True, deliveries=80)
    send(b, *(f"m{number}" for number in range(100)), expires=START + 10)
    b.flush()
    b.now += 10
    b.apply(c.Attach(1, 1, QUEUE, credit=1_000))
    settled = [len(each.commit.settled) for each in until_done(b) if each.commit is not None]
    assert (b.depth(), b.depth(DEAD), sum(settled)) == (0, 100, 100)
    assert max(settled) <= 11


def test_timers_that_are_due_at_one_instant_fire_in_portions() -> None:
    b = Bench(slow=True, timers=10, expiry_steps=1_000_000)
    send(b, *(f"m{number}" for number in range(55)), level=EXPRESS, expires=START + 10)
    b.flush()
    b.now += 10
    depths = [b.depth()]
    while b.depth():
        assert b.engine.next_deadline() == b.now
        b.flush()
        depths.append(b.depth())
    assert max(before - after for before, after in pairwise(depths)) == 10


def test_expired_messages_of_a_higher_priority_in_memory_do_not_hold_up_lower_ones() -> None:
    b = Bench(slow=True)
    send(b, *(f"old{number}" for number in range(50)), priority=9, expires=START + 10)
    send(b, "low", priority=1)
    b.flush()
    b.now += 10
    b.apply(c.Attach(1, 1, QUEUE, credit=10))
    b.flush()
    assert received(b, b.effects[-1:]) == {1: ["low"]}


def test_expired_messages_of_a_higher_priority_on_disk_hold_up_lower_ones_for_one_page() -> None:
    b = Bench(slow=True, page_rows=5, window_rows=5)
    send(b, *(f"old{number}" for number in range(100)), priority=9, expires=START + 10)
    send(b, "high", priority=9)
    send(b, "low", priority=1)
    b.flush()
    b.start()
    b.now += 10
    b.apply(c.Attach(1, 1, QUEUE, credit=10))
    before, pages = len(b.effects), 0
    while 1 not in received(b, b.effects[before:]):
        b.flush()
        pages += sum(isinstance(read, PageWanted) and read.lane == 9 for read in b.reads)
        b.read()
    assert received(b, b.effects[before:]) == {1: ["low"]}
    assert pages <= 2
    assert received(b, until_done(b)) == {1: ["high"]}


def test_what_is_alive_of_a_higher_priority_on_disk_comes_first_all_the_same() -> None:
    b = Bench(slow=True, page_rows=5, window_rows=5)
    send(b, *(f"old{number}" for number in range(4)), priority=9, expires=START + 10)
    send(b, *(f"high{number}" for number in range(10)), priority=9)
    send(b, "low", priority=1)
    b.flush()
    b.start()
    b.now += 10
    b.apply(c.Attach(1, 1, QUEUE, credit=100))
    assert received(b, until_done(b)) == {1: [*(f"high{number}" for number in range(10)), "low"]}


def holding(messages: int, **how) -> Bench:
    """The consumer of peer 2 holds so many, and five more are in the queue."""
    made = Bench(slow=True, **how)
    made.apply(c.Open(2, "guest"), c.Attach(2, 1, QUEUE, credit=messages))
    send(made, *(f"m{number}" for number in range(messages + 5)))
    until_done(made)
    return made


def test_what_a_lost_connection_held_comes_back_in_portions_and_before_what_was_never_delivered() -> None:
    b = holding(200, returns=20, fan_out=80)
    b.apply(c.Attach(1, 2, QUEUE, credit=1_000), c.PeerLost(2))
    before, back = len(b.effects), [len(b.cursor().returned)]
    while b.engine.shard.handing:
        b.flush()
        back.append(len(b.cursor().returned) + deliveries(b.effects[-1]))
    steps = [after - earlier for earlier, after in pairwise(back)]
    assert max(steps[:-1]) <= 20
    b.read()
    came = [output for each in [*b.effects[before:], *until_done(b)] for output in each.outputs if isinstance(output, Delivered)]
    assert [b.body(m) for output in came for m in output.messages] == [f"m{number}" for number in range(205)]
    assert [m.redelivered for output in came for m in output.messages] == [True] * 200 + [False] * 5


@pytest.mark.parametrize("how", ["lost", "timed out"])
def test_what_a_transaction_held_comes_back_in_portions_when_nobody_waits_for_it(how: str) -> None:
    b = holding(200, returns=20, fan_out=80)
    b.apply(c.Begin(2, b"t"), c.Transacted(2, b"t", c.Settle(2, 1, (), 200)))
    b.flush()
    assert len(b.cursor().reserved) == 200
    if how == "lost":
        b.apply(c.PeerLost(2))
    else:
        b.now += b.limits.transaction_ms_max
    reserved = [200]
    b.flush(report=True)
    while b.engine.shard.handing:
        reserved.append(len(b.cursor().reserved))
        b.flush()
    assert len(reserved) > 5 and max(before - after for before, after in pairwise(reserved)) <= 20
    assert not b.cursor().reserved
    assert b.depth() == 205


@pytest.mark.parametrize("how", ["ABORT", "COMMIT that is refused", "NACK", "NACK for good"])
def test_what_a_client_gives_back_comes_in_portions_and_it_is_told_when_all_of_it_has_come(how: str) -> None:
    b = holding(200, returns=20, fan_out=80)
    if "NACK" in how:
        outcome = Outcome.FAILED if how == "NACK" else Outcome.REJECTED
        b.apply(c.Settle(2, 1, (), 200, outcome, "given back"))
    else:
        b.apply(c.Begin(2, b"t"), c.Transacted(2, b"t", c.Settle(2, 1, (), 200)))
        if how != "ABORT":
            b.apply(c.Transacted(2, b"t", c.Settle(2, 1, [1])))
        b.apply(c.End(2, b"t", how != "ABORT", "given back"))
    b.apply(c.Sync(2, "farewell"))
    before, reserved = len(b.effects), [200]
    b.engine.shard.batch.outputs.clear()
    while b.engine.shard.handing:
        assert not [output for each in b.effects[before:] for output in each.outputs if isinstance(output, Confirmed | Refused)]
        b.flush()
        reserved.append(len(b.cursor().reserved))
    assert len(reserved) > 5 and max(earlier - after for earlier, after in pairwise(reserved)) <= 20
    told = [output.token for output in b.effects[-1].outputs if isinstance(output, Confirmed | Refused)]
    assert told == ["given back", "farewell"]
    assert len(b.cursor().failures) == (0 if how == "NACK for good" else 200)
    until_done(b)
    assert (b.depth(), b.depth(DEAD)) == ((5, 200) if how == "NACK for good" else (205, 0))


def test_a_transaction_of_many_acknowledgements_comes_back_as_one() -> None:
    b = holding(200, returns=20, fan_out=80)
    b.apply(c.Begin(2, b"t"), *(c.Transacted(2, b"t", c.Settle(2, 1, [tag])) for tag in range(1, 201)), c.End(2, b"t", False, "a"))
    assert len(b.engine.shard.handing) == 1
    before = len(b.effects)
    until_done(b)
    came = [output for each in b.effects[before:] for output in each.outputs if isinstance(output, Delivered)]
    assert [b.body(m) for output in came for m in output.messages] == [f"m{number}" for number in range(200)]


def test_while_it_comes_back_other_queues_are_served() -> None:
    b = holding(100, returns=10, fan_out=40)
    b.apply(c.Attach(1, 2, "queue/other", credit=10), c.PeerLost(2))
    send(b, "now", address="queue/other")
    b.flush()
    assert received(b, b.effects[-1:]) == {2: ["now"]}
    assert b.engine.shard.handing


def test_a_queue_that_is_destroyed_meanwhile_leaves_nothing_behind() -> None:
    b = holding(100, returns=10, fan_out=40)
    b.apply(c.PeerLost(2))
    b.flush()
    b.control("destroy", QUEUE)
    b.flush()
    assert (len(b.engine.shard.handing), b.engine.shard.memory) == (0, 0)
