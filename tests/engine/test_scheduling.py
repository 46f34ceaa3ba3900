"""Delayed messages: never before they are due, in the order in which they are due, once, whatever crashes (JMS 2.0, 7.9; R3)."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.effects import Effects
from broker_core.engine.message import Encoding, Header, Message, StoredBody
from broker_core.engine.reads import ScheduledWanted
from broker_core.engine.upkeep import DiscardScheduled
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, RELIABLE, START, Bench, now_of

YEAR = 365 * 86_400_000
TOPIC = "topic/prices"


def scheduled(bench: Bench) -> list[str]:
    """Bodies of the rows in the store's schedule."""
    return [bytes(row.body).decode() for row in bench.database.tables.scheduled.values()]


def reads(bench: Bench) -> list[ScheduledWanted]:
    return [read for effects in bench.effects for read in effects.reads if isinstance(read, ScheduledWanted)]


def later(bench: Bench, *bodies: str, address: str = QUEUE, level=ASSURED, delay: int = 100, transaction: bytes = b"") -> None:
    """Sends into the open batch."""
    for body in bodies:
        header = Header(b"", 4, level, 0, Encoding.STOMP, delay=delay)
        send = c.Send(1, None if transaction else body, address, Message(header, body.encode(), 10))
        bench.apply(c.Transacted(1, transaction, send) if transaction else send)


# -- what must not happen -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [BEST_EFFORT, EXPRESS, RELIABLE, ASSURED])
def test_a_delayed_message_is_in_no_queue_and_no_segment_before_it_is_due(level) -> None:
    bench = Bench()
    bench.attach()
    assert bench.delivered(bench.send("a", delay=100, level=level)) == []
    assert bench.passes(99) == []
    assert (bench.depth(), bench.destination().octets) == (0, 0)
    assert bench.engine.shard.segments.rows == 0
    assert bench.bodies(bench.passes(1)) == ["a"]


def test_the_row_goes_with_the_commit_that_makes_it_visible() -> None:
    bench = Bench()
    bench.send("a", delay=100)
    assert scheduled(bench) == ["a"]
    bench.now += 100
    commit = bench.engine.flush(bench.now).commit
    assert commit is not None
    assert (len(commit.messages), len(commit.due)) == (1, 1)
    bench.start()  # that commit never was
    assert scheduled(bench) == ["a"]
    assert bench.attach() == ["a"]
    assert scheduled(bench) == []
    bench.start()
    assert (bench.depth(), bench.destination().scheduled) == (1, 0)


@pytest.mark.parametrize("level", [BEST_EFFORT, EXPRESS])
def test_what_is_volatile_does_not_survive_its_node(level) -> None:
    bench = Bench()
    bench.send("gone", delay=100, level=level)
    bench.send("kept", delay=100, level=RELIABLE)
    bench.start()
    assert scheduled(bench) == ["kept"]
    bench.attach()
    assert bench.bodies(bench.passes(100)) == ["kept"]


def test_a_destroyed_destination_takes_its_delayed_messages_along_and_its_namesake_gets_none() -> None:
    bench = Bench()
    bench.send("a", "b", delay=100)
    bench.send("fleeting", delay=100, level=BEST_EFFORT)
    bench.send("other", delay=100, address="queue/other")
    assert bench.control("destroy", QUEUE) == {"discarded": 0, "scheduled": 3}
    bench.send("new")
    bench.flush(report=True)
    assert scheduled(bench) == ["other"]
    bench.attach(address="queue/other")
    assert bench.bodies(bench.passes(200)) == ["other"]
    assert bench.depth() == 1


def test_rows_of_destroyed_destinations_that_a_crash_left_are_deleted_after_it() -> None:
    bench = Bench()
    bench.send("a", "b", delay=YEAR)
    bench.control("destroy", QUEUE)
    assert scheduled(bench) == ["a", "b"]
    bench.start()
    bench.flush(report=True)
    assert scheduled(bench) == []
    assert not [step for effects in bench.effects[-2:] for step in effects.maintenance if not isinstance(step, DiscardScheduled)]


def test_rows_of_a_destroyed_destination_that_are_on_their_way_stay_invisible() -> None:
    bench = Bench(slow=True, schedule_ahead_ms=1000)
    bench.send("a", "b", delay=2000)
    bench.send("other", delay=2000, address="queue/other")
    bench.passes(1500)
    bench.control("destroy", QUEUE)
    bench.read()
    bench.passes(1000)
    assert bench.depth("queue/other") == 1
    assert QUEUE not in bench.engine.shard.destinations


def test_a_destination_with_nothing_but_delayed_messages_is_in_use() -> None:
    bench = Bench(reap_ms=1000)
    bench.send("a", delay=YEAR)
    assert bench.control("destroy", QUEUE, if_unused=True)["refusal"] == "DESTINATION_IN_USE"
    bench.passes(10_000)
    assert bench.control("reap")["reaped"] == 0


def test_delayed_best_effort_is_bounded_and_what_is_too_much_is_dropped() -> None:
    bench = Bench(schedule_octets=3000)
    outputs = bench.send(*"abcdefgh", delay=100, level=BEST_EFFORT)
    assert bench.confirmed(outputs) == list("abcdefgh")
    assert bench.destination().scheduled == 5
    bench.attach()
    assert bench.bodies(bench.passes(100)) == list("abcde")


def test_a_large_body_of_dropped_or_destroyed_best_effort_is_discarded() -> None:
    bench = Bench(schedule_octets=600)
    for body in (1, 2):
        header = Header(b"", reliability=BEST_EFFORT, delay=100)
        bench.apply(c.Send(1, body, QUEUE, Message(header, StoredBody(body, 5000), 5000)))
    bench.flush()
    bench.control("destroy", QUEUE)
    assert sorted(body for effects in bench.effects for body in effects.discarded) == [1, 2]


def test_a_refused_delayed_send_leaves_nothing() -> None:
    bench = Bench()
    bench.control("create", QUEUE)
    bench.control("pause", QUEUE, direction="PRODUCERS")
    assert bench.refused(bench.send("a", delay=100))
    assert scheduled(bench) == []


# -- when it is due -----------------------------------------------------------------------------------------------------------------------
def test_messages_become_visible_in_the_order_in_which_they_are_due_and_of_equals_the_first_sent_first() -> None:
    bench = Bench()
    for body, delay in (("c", 300), ("a", 100), ("d", 300), ("b", 200)):
        bench.send(body, delay=delay)
    bench.attach()
    assert bench.bodies(bench.passes(1000)) == ["a", "b", "c", "d"]


def test_best_effort_keeps_its_place_among_the_others() -> None:
    bench = Bench()
    for body, level in (("a", EXPRESS), ("b", BEST_EFFORT), ("c", EXPRESS), ("d", BEST_EFFORT)):
        bench.send(body, delay=100, level=level)
    bench.attach()
    assert bench.bodies(bench.passes(100)) == ["a", "b", "c", "d"]


def test_the_next_deadline_is_when_the_first_is_due() -> None:
    bench = Bench()
    bench.send("a", delay=500)
    bench.send("b", delay=200, level=BEST_EFFORT)
    assert bench.engine.next_deadline() == START + 200
    bench.passes(200)
    assert bench.engine.next_deadline() == START + 500


def test_it_is_placed_where_producers_are_paused_meanwhile() -> None:
    bench = Bench()
    bench.send("a", delay=100)
    bench.control("pause", QUEUE, direction="PRODUCERS")
    bench.attach()
    assert bench.bodies(bench.passes(100)) == ["a"]


def test_a_message_that_expired_before_it_was_due_is_dead_when_it_is_due() -> None:
    bench = Bench()
    bench.send("stored", delay=100, expires=START + 50)
    bench.send("volatile", delay=100, expires=START + 50, level=EXPRESS)
    bench.attach()
    bench.attach(2, address=DEAD)
    assert bench.passes(99) == []
    dead = [*bench.passes(1), *bench.flush()]
    assert sorted(bench.bodies(dead)) == ["stored", "volatile"]
    assert all('"EXPIRED"' in message.header.annotations for message in bench.delivered(dead))
    assert bench.depth() == 0


def test_a_topic_delivers_it_to_those_who_subscribe_when_it_is_due() -> None:
    bench = Bench()
    early = bench.attach(1, address=TOPIC)
    bench.send("a", address=TOPIC, delay=100)
    bench.send("b", address=TOPIC, delay=100, level=EXPRESS)
    bench.apply(c.Detach(1, 1))
    bench.attach(2, address=TOPIC)
    assert early == []
    assert sorted(bench.bodies(bench.passes(100))) == ["a", "b"]


def test_a_topic_without_subscribers_is_over_with_it() -> None:
    bench = Bench()
    bench.send("a", address=TOPIC, delay=100)
    bench.passes(100)
    assert scheduled(bench) == []
    assert (bench.depth(TOPIC), bench.destination(TOPIC).scheduled) == (0, 0)


def test_a_large_body_is_named_by_the_schedule_then_by_its_segment() -> None:
    bench = Bench()
    header = Header(b"", reliability=ASSURED, delay=100)

    async def octets():
        yield b"large"

    body = now_of(bench.store.write_body(octets()))
    bench.apply(c.Send(1, "t", QUEUE, Message(header, StoredBody(body, 5), 5)))
    bench.flush()
    for _ in range(2):
        bench.start()
        assert bench.database.tables.bodies.keys() == {body}
        bench.passes(100)
    assert bench.database.tables.scheduled == {}


def test_a_restart_neither_hastens_nor_forgets() -> None:
    bench = Bench()
    bench.send("soon", delay=1000)
    bench.send("far", delay=YEAR)
    bench.now += 500
    bench.start()
    bench.attach()
    assert bench.passes(499) == []
    assert bench.bodies(bench.passes(1)) == ["soon"]
    bench.settle(1)
    bench.start()
    bench.attach()
    bench.passes(YEAR - 1001)
    assert bench.outputs == []
    assert bench.bodies(bench.passes(1)) == ["far"]


def test_what_was_due_while_no_node_served_is_due_at_once() -> None:
    bench = Bench(page_rows=3)
    bench.send(*"abcdefgh", delay=1000)
    bench.now += 5000
    bench.start()
    bench.attach()
    bench.flush()
    delivered = bench.bodies(bench.outputs)
    while bench.engine.next_deadline() is not None:
        delivered += bench.bodies(bench.flush())
    assert delivered == list("abcdefgh")


def test_while_there_is_no_disk_space_what_is_due_waits_and_no_deadline_is_missed_over_and_over() -> None:
    bench = Bench()
    bench.send("a", delay=100)
    bench.now += 200
    assert bench.engine.flush(bench.now, space_low=True).commit is None
    assert bench.engine.next_deadline() is None
    bench.attach()
    assert bench.bodies(bench.outputs) == ["a"]


# -- transactions -------------------------------------------------------------------------------------------------------------------------
def test_a_transaction_schedules_at_its_commit_and_the_delay_counts_from_the_send() -> None:
    bench = Bench()
    bench.attach()
    bench.apply(c.Begin(1, b"tx"))
    later(bench, "a", transaction=b"tx")
    bench.flush()
    assert scheduled(bench) == []
    bench.now += 60
    bench.apply(c.End(1, b"tx", True))
    assert bench.bodies(bench.flush()) == []
    assert scheduled(bench) == ["a"]
    assert bench.passes(39) == []
    assert bench.bodies(bench.passes(1)) == ["a"]


def test_a_transaction_that_commits_after_the_delay_delivers_at_once_and_one_that_aborts_never() -> None:
    bench = Bench()
    bench.attach()
    for name, commit in ((b"late", True), (b"aborted", False)):
        bench.apply(c.Begin(1, name))
        later(bench, name.decode(), transaction=name)
        bench.now += 150
        bench.apply(c.End(1, name, commit))
        bench.flush()
    bench.passes(500)
    assert bench.bodies(bench.outputs) == ["late"]


def test_a_late_commit_does_not_overtake_what_is_due_and_not_placed_yet() -> None:
    bench = Bench()
    later(bench, "first", delay=50)
    bench.apply(c.Begin(1, b"tx"))
    later(bench, "second", delay=50, transaction=b"tx")
    bench.flush()
    bench.now += 100
    bench.apply(c.End(1, b"tx", True))
    assert bench.attach() == ["first", "second"]
    assert scheduled(bench) == []


# -- memory and reads ---------------------------------------------------------------------------------------------------------------------
def test_what_is_due_much_later_is_not_in_memory_and_costs_no_read_until_it_is_due_soon() -> None:
    bench = Bench(schedule_ahead_ms=60_000)
    before = bench.engine.shard.memory
    bench.send(*[f"m{number}" for number in range(500)], delay=1_000_000)
    assert bench.engine.shard.memory == before
    assert bench.destination().scheduled == 500
    asked = len(reads(bench))
    bench.passes(900_000)
    while (deadline := bench.engine.next_deadline()) is not None and deadline < START + 1_000_000:
        bench.now = max(deadline, bench.now)
        bench.flush()
    assert len(reads(bench)) - asked <= 5
    bench.now = START + 1_000_000
    bench.flush()
    assert bench.depth() == 500


def test_a_flood_that_is_due_at_one_instant_is_read_and_placed_page_by_page_in_bounded_memory() -> None:
    bench = Bench(page_rows=10, schedule_rows=40, schedule_octets=40_000)
    names = [f"m{number:03}" for number in range(300)]
    for name in names:
        bench.send(name, delay=1000)
    assert bench.engine.shard.memory <= 40_000
    bench.attach()
    bench.now += 1000
    while bench.engine.next_deadline() is not None:
        bench.settle(upto=1 << 30)
    assert bench.bodies(bench.outputs) == names
    assert max(len(effects.commit.due) for effects in bench.effects if effects.commit) == 10
    assert bench.engine.shard.schedule.memory == 0


def test_what_comes_while_its_interval_is_being_read_is_neither_lost_nor_doubled() -> None:
    bench = Bench(slow=True, schedule_ahead_ms=1000)
    bench.send("a", "b", delay=1400)
    bench.passes(600)
    assert len(bench.reads) == 1  # of (600, 1600]
    bench.send("between", delay=700)
    bench.send("behind", delay=900)
    bench.read()
    bench.flush()
    bench.attach()
    bench.passes(1000)
    bench.read()
    bench.flush()
    assert bench.bodies(bench.outputs) == ["between", "a", "b", "behind"]


def test_a_flood_of_what_is_due_earlier_takes_back_how_far_a_read_goes() -> None:
    bench = Bench(slow=True, schedule_ahead_ms=1000, schedule_rows=4)
    bench.send("x", "y", delay=1400)
    bench.passes(600)
    read = bench.reads.pop()
    found = now_of(bench.store.read(read))
    bench.send(*"abcdef", delay=500)
    owned = bench.engine.shard.schedule.owned
    assert owned is not None and owned < (START + 1400, 0)
    bench.slow = False
    bench.apply(c.PageLoaded(read.read, *found))
    bench.attach()
    bench.passes(500)
    bench.passes(300)
    assert bench.bodies(bench.outputs) == list("abcdefxy")


def test_nothing_overtakes_what_is_still_being_read() -> None:
    bench = Bench(schedule_ahead_ms=100)
    bench.send("far", delay=1000)
    bench.slow = True
    bench.now += 995
    bench.flush()
    bench.send("near", delay=10)
    bench.attach()
    bench.passes(50)
    assert bench.bodies(bench.outputs) == []
    bench.read()
    assert bench.bodies(bench.flush()) == ["far", "near"]


def test_a_message_due_before_its_own_commit_has_ended_is_placed_as_another_object() -> None:
    bench = Bench()
    later(bench, "a", delay=1)
    effects: Effects = bench.engine.flush(bench.now)
    assert effects.commit is not None
    (row,) = effects.commit.scheduled
    told = (row.sequence, row.accepted_at)
    bench.engine.released()
    bench.now += 5
    bench.engine.flush(bench.now)
    assert (row.sequence, row.accepted_at) == told


def test_scheduled_messages_are_counted_and_counted_again_after_a_crash() -> None:
    bench = Bench()
    bench.send("a", "b", delay=100, size=30)
    bench.send("c", delay=200, size=5)
    bench.flush(report=True)
    (row,) = [row for row in bench.effects[-1].statistics if row.address == QUEUE]
    assert (row.depth, row.scheduled, row.scheduled_octets) == (0, 3, 65)
    bench.start()
    assert (bench.destination().scheduled, bench.destination().scheduled_octets) == (3, 65)
    bench.passes(100)
    assert (bench.destination().scheduled, bench.destination().scheduled_octets) == (1, 5)
