"""What is remembered of volatile messages has no bodies beyond what memory may hold: not for their time to live, not for their back-off, and not once
they are over."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Header, Message, Reliability
from broker_core.engine.message_group import MessageGroup
from broker_core.engine.outcome import Outcome
from broker_core.engine.settings import Settings
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, START, Bench

ROOM, PAGE, BODY = 40_000, 640, 1_000
TOPIC = "topic/news"
HOUR = 3_600_000


def small(**limits: int) -> Bench:
    return Bench(memory_octets=ROOM, page_octets=PAGE, **limits)


def send(bench: Bench, count: int, *, address: str = QUEUE, expires: int = 0, level: Reliability = EXPRESS) -> None:
    for number in range(count):
        bench.apply(c.Send(1, number, address, Message(Header(b"", reliability=level, expiration=expires), b"%04d" % number + bytes(BODY - 4), BODY)))
        if number % 50 == 49:
            bench.flush()
    bench.flush()


def octets_of(messages: Iterable[Message]) -> int:
    """Of distinct bodies."""
    return sum({id(m.body): len(m.body) for m in messages if isinstance(m.body, bytes)}.values())


def remembered(bench: Bench) -> int:
    """Octets of bodies that timers keep, and what they have found."""
    shard = bench.engine.shard
    return octets_of([m for _, m in shard.timers.entries()] + [m for run in shard.expiring for m in run.messages])


def spilled(bench: Bench) -> int:
    return sum(len(effects.commit.spilled) for effects in bench.effects if effects.commit)


def reasons(bench: Bench) -> dict[str, int]:
    """Of the dead, how many died of what; with their bodies."""
    told: dict[str, int] = {}
    bench.attach(99, address=DEAD, credit=10_000, presettled=True)
    for output in bench.outputs:
        for message in getattr(output, "messages", ()):
            reason = json.loads(message.header.annotations or "{}").get("JMS_SUN_DMQ_UNDELIVERED_REASON")
            if reason:
                assert len(bench.body(message)) == BODY
                told[reason] = told.get(reason, 0) + 1
    return told


# -- time to live ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("behind", [0, 3], ids=["a queue", "a topic"])
def test_of_spilled_messages_that_expire_later_nothing_is_remembered(behind: int) -> None:
    bench = small()
    for number in range(behind):
        bench.apply(c.Attach(1, number, TOPIC, name=f"s{number}", durable=True, shared=True, of_any_client=True, credit=0), c.Detach(1, number))
    address = TOPIC if behind else QUEUE
    send(bench, 400, address=address, expires=START + HOUR)
    assert spilled(bench) > 350
    assert len(bench.engine.shard.timers.entries()) == 400 - spilled(bench)
    assert remembered(bench) == 0
    assert bench.engine.shard.memory <= ROOM


def test_messages_that_were_consumed_leave_no_bodies_behind_though_they_would_have_lived_on() -> None:
    bench = small()
    bench.attach(credit=10_000)
    for number in range(10):
        send(bench, 50, expires=START + HOUR)
        bench.settle(upto=(number + 1) * 50)
    assert bench.engine.shard.timers.entries() and remembered(bench) == 0


def test_header_sections_of_what_is_over_are_forgotten_before_they_are_many() -> None:
    bench = Bench()
    bench.attach(credit=10_000)
    for number in range(100):
        section = b"name:" + b"%05d" % number + bytes(10_000)
        bench.apply(c.Send(1, number, QUEUE, Message(Header(section, reliability=EXPRESS, expiration=START + HOUR), b"", len(section))))
        bench.flush()
        bench.settle(number + 1)
    assert sum(len(m.header.octets) for _, m in bench.engine.shard.timers.entries()) < 300_000


@pytest.mark.parametrize("level", [EXPRESS, ASSURED], ids=["not persistent", "persistent"])
def test_what_expires_is_dead_with_its_body_whether_it_was_in_memory_or_spilled(level: Reliability) -> None:
    bench = small(dead_retention_ms=10 * HOUR)
    send(bench, 100, expires=START + 10, level=level)
    bench.now += 10
    bench.control("expire")
    assert (bench.depth(), bench.depth(DEAD), bench.destination().octets) == (0, 100, 0)
    assert remembered(bench) == 0 and bench.engine.shard.memory <= ROOM
    assert reasons(bench) == {"EXPIRED": 100}


def test_the_dead_that_are_not_persistent_are_kept_for_days_on_disk_and_end_there() -> None:
    bench = small(dead_retention_ms=14 * 24 * HOUR)
    send(bench, 200, expires=START + 10)
    bench.now += 10
    bench.control("expire")
    assert bench.depth(DEAD) == 200
    assert remembered(bench) == 0 and len(bench.engine.shard.timers.entries()) < 2 * ROOM // BODY
    bench.passes(14 * 24 * HOUR)
    bench.control("expire")
    assert (bench.depth(DEAD), bench.destination(DEAD).octets, bench.engine.shard.memory) == (0, 0, 0)


def test_what_had_expired_when_it_came_and_was_spilled_is_found_by_a_sweep_that_was_past_its_instant() -> None:
    bench = small()
    bench.control("expire")
    send(bench, 60)
    send(bench, 1, expires=START - 500)
    assert bench.depth() == 61
    bench.control("expire")
    assert (bench.depth(), bench.depth(DEAD)) == (60, 1)


def test_what_was_spilled_and_died_is_still_of_its_group() -> None:
    bench = small()
    send(bench, 40, address="queue/other")
    bench.send("grouped", group="g", expires=START + 10, level=EXPRESS)
    assert spilled(bench) > 0
    bench.control("purge", "queue/other")
    bench.passes(10)
    bench.control("expire")
    assert bench.attach(9, address=DEAD) == ["grouped"]
    assert [m.header.group for m in bench.engine.shard.links[9].unsettled.values()] == [MessageGroup("g")]


def test_what_spilled_of_a_topic_because_nothing_durable_wanted_it_expires_in_the_lane_that_it_is_in() -> None:
    bench = small()
    bench.attach(address=TOPIC, credit=0)
    send(bench, 100, address=TOPIC, expires=START + 10, level=ASSURED)
    assert spilled(bench) > 50
    bench.now += 10
    bench.control("expire")
    assert (bench.depth(TOPIC), bench.depth(DEAD)) == (0, 100)


def test_from_the_middle_of_what_waits_only_what_expired_goes_with_its_own_body() -> None:
    bench = Bench()
    for number in range(100):
        bench.send(f"m{number}", level=EXPRESS, expires=START + 10 if number % 3 == 1 else 0)
    bench.passes(10)
    assert bench.depth() == 67
    assert bench.attach(9, address=DEAD) == [f"m{number}" for number in range(100) if number % 3 == 1]
    assert bench.attach() == [f"m{number}" for number in range(100) if number % 3 != 1]


# -- topics with many consumers -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [EXPRESS, ASSURED], ids=["not persistent", "persistent"])
def test_what_is_still_to_be_handed_to_many_consumers_is_within_bounds_and_comes_all_the_same(level: Reliability) -> None:
    bench = Bench(memory_octets=ROOM, page_octets=PAGE, fan_out=5, slow=True)
    for link in range(1, 9):
        bench.apply(c.Attach(1, link, TOPIC, credit=10_000))
    bench.flush()
    bench.apply(c.Open(2, "guest"), c.Attach(2, 99, TOPIC, name="behind", durable=True, shared=True, of_any_client=True, credit=0), c.Detach(2, 99))
    for number in range(100):
        bench.apply(c.Send(1, number, TOPIC, Message(Header(b"", reliability=level), bytes(BODY), BODY)))
    fan_out = bench.destination(TOPIC).fan_out
    assert fan_out is not None
    assert octets_of([message for _, _, message in fan_out._entries]) <= bench.engine.shard.memory <= ROOM
    bench.slow = False
    for _ in range(60):
        bench.flush()
        for link in range(1, 9):
            bench.settle(*bench.engine.shard.links[link].unsettled, link=link)
    assert all(bench.engine.shard.links[link].tag == 100 for link in range(1, 9))


# -- back-off -------------------------------------------------------------------------------------------------------------------------
def failing(delay_ms: int = 60_000, **limits: int) -> Bench:
    limits = {"memory_octets": ROOM, "page_octets": PAGE, **limits}
    return Bench(settings=Settings(redelivery_delay_ms=delay_ms, redelivery_delay_max_ms=delay_ms), **limits)


def fail_all(bench: Bench, link: int = 1) -> int:
    """Whatever the consumer has; how much it was."""
    failed = 0
    while tags := list(bench.engine.shard.links[link].unsettled):
        bench.settle(*tags, link=link, outcome=Outcome.FAILED)
        failed += len(tags)
    return failed


def delayed(bench: Bench) -> int:
    return octets_of(bench.cursor(lane=14).delayed.values())


def test_what_waits_for_its_back_off_counts_until_it_is_back_and_settled() -> None:
    bench = failing()
    bench.attach()
    send(bench, 5)
    assert bench.engine.shard.memory == 0
    fail_all(bench)
    assert bench.engine.shard.memory == delayed(bench) == 5 * BODY
    assert len(bench.bodies(bench.passes(60_000))) == 5
    assert bench.engine.shard.memory == 0 and bench.cursor(lane=14).delayed_octets == 0


@pytest.mark.parametrize("how", ["purge", "destroy", "expiry"])
def test_what_ends_while_it_waits_for_its_back_off_counts_no_more_and_its_timer_keeps_no_body(how: str) -> None:
    bench = failing()
    bench.attach()
    send(bench, 5, expires=START + 10)
    fail_all(bench)
    bench.apply(c.Detach(1, 1))
    bench.flush()
    if how == "expiry":
        bench.control("update", QUEUE, use_dead=False)
        bench.passes(10)
    else:
        bench.control(how, QUEUE)
    assert bench.engine.shard.memory == 0
    assert bench.engine.shard.timers.entries() and remembered(bench) == 0


def test_who_fails_whatever_comes_has_no_more_in_back_off_than_memory_holds_and_the_rest_waits_on_disk() -> None:
    bench = failing()
    bench.attach(credit=10_000)
    for _ in range(40):
        send(bench, 10)
        fail_all(bench)
    assert bench.engine.shard.memory <= ROOM + 10 * BODY
    assert remembered(bench) == 0 and delayed(bench) <= ROOM + 10 * BODY
    assert spilled(bench) > 300 and bench.depth() == 400


def test_beyond_it_best_effort_is_dropped() -> None:
    bench = failing()
    bench.attach(credit=10_000)
    for _ in range(40):
        send(bench, 10, level=BEST_EFFORT)
        fail_all(bench)
    assert spilled(bench) == 0 and bench.depth() <= ROOM // BODY + 10


def test_everything_comes_in_the_end_when_failures_end() -> None:
    bench = failing(delay_ms=100)
    bench.attach(credit=10_000)
    for _ in range(10):
        send(bench, 10)
        fail_all(bench)
    assert bench.depth() == 100
    for _ in range(50):
        bench.settle(*bench.engine.shard.links[1].unsettled)
        bench.passes(100)
    assert (bench.depth(), bench.engine.shard.memory) == (0, 0)


def test_others_are_served_meanwhile_and_who_has_little_in_back_off_too() -> None:
    bench = failing(page_octets=64 * BODY)  # little is a 64th of it
    bench.attach(2, address="queue/other", credit=10)
    bench.attach(3, address="queue/little", credit=10)
    send(bench, 1, address="queue/little")
    fail_all(bench, 3)
    bench.attach(credit=10_000)
    for _ in range(6):
        send(bench, 10)
        fail_all(bench)
    assert bench.engine.shard.cooling
    assert bench.cursor(address="queue/little", lane=14).delayed_octets == BODY
    for link, address in ((2, "queue/other"), (3, "queue/little")):
        send(bench, 1, address=address)
        assert len(bench.engine.shard.links[link].unsettled) == 1


def test_it_goes_on_within_a_second_when_memory_has_room_again_for_other_reasons() -> None:
    bench = failing()
    bench.attach(credit=10_000)
    bench.control("create", "queue/other")
    send(bench, 28, address="queue/other")
    send(bench, 14)
    fail_all(bench)
    send(bench, 1)
    assert not bench.engine.shard.links[1].unsettled
    bench.control("purge", "queue/other")
    bench.flush(report=True)
    assert len(bench.engine.shard.links[1].unsettled) == 1
