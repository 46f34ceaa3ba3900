"""Purges, and operations that delete, are undone (R14)."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine.definitions import UndoEnd
from broker_core.engine.outcome import Outcome
from broker_core.engine.settings import REMOVE_OLDEST, Settings
from broker_core.engine.message import StoredBody
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, RELIABLE, Bench
from tests.engine.topic_rig import TOPIC, durable, open_clients, publish, restart

HOUR = 3_600_000


def benched(**limits: Any) -> Bench:
    return Bench(undo_ms=HOUR, operation_rows=3, operation_effort=61, **limits)


@pytest.fixture
def bench() -> Bench:
    return benched()


def purge(bench: Bench, address: str = QUEUE) -> int:
    """The number under which it can be undone."""
    return bench.control("purge", address)["undo"]


def undo(bench: Bench, number: int, address: str = QUEUE) -> dict[str, Any]:
    return bench.control("undo", address, undo=number)


def flags(bench: Bench, link: int = 1) -> list[tuple[str, bool]]:
    return [(bench.body(message), message.redelivered) for message in bench.engine.shard.links[link].unsettled.values()]


# -- purges ---------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [ASSURED, RELIABLE])
@pytest.mark.parametrize("crashes", [False, True])
def test_an_undone_purge_is_as_if_it_had_not_been(bench: Bench, level, crashes: bool) -> None:
    bench.send(*"abc", level=level)
    octets = bench.destination().octets
    answer = bench.control("purge", QUEUE)
    assert (answer["purged"], answer["undoable"]) == (3, 3)
    assert bench.database.tables.undo[answer["undo"]].lapses_at == bench.now + HOUR
    assert (bench.depth(), bench.destination().octets) == (0, 0)
    bench.send("d", level=level)
    if crashes:
        bench.start()
    assert undo(bench, answer["undo"]) == {"undo": answer["undo"], "restored": 3}
    assert bench.destination().octets == octets + 10
    if crashes:
        bench.start()
    assert bench.attach() == list("abcd")
    assert not any(flag for _, flag in flags(bench)) or crashes


def test_what_came_since_waits_behind_it(bench: Bench) -> None:
    bench.send(*"abc")
    number = purge(bench)
    bench.send(*"de")
    assert bench.attach(credit=1) == ["d"]
    undo(bench, number)
    bench.apply(c.Grant(1, 10))
    assert bench.bodies(bench.flush()) == ["a", "b", "c", "e"]


def test_what_had_been_offered_is_flagged_and_nothing_else(bench: Bench) -> None:
    bench.send(*"abcd")
    bench.attach(credit=2)
    bench.apply(c.PeerLost(1))
    bench.flush()
    number = purge(bench)
    bench.apply(c.Open(1, "guest"))
    bench.send("e")
    assert bench.attach(2) == ["e"]
    undo(bench, number)
    assert flags(bench, 2) == [("e", False), ("a", True), ("b", True), ("c", False), ("d", False)]


def test_failures_are_remembered() -> None:
    bench = benched(settings=Settings(redelivery_max=1, redelivery_delay_ms=0))
    bench.send("a", "b")
    bench.attach(credit=1)
    bench.control("pause", QUEUE, direction="CONSUMERS")
    bench.settle(1, outcome=Outcome.FAILED)
    number = purge(bench)
    bench.start()
    undo(bench, number)
    bench.start()
    bench.control("resume", QUEUE)
    assert bench.attach() == ["a", "b"]
    bench.settle(1, 2, outcome=Outcome.FAILED)
    assert bench.depth(DEAD) == 1
    assert bench.attach(2, address=DEAD) == ["a"]


def test_what_a_consumer_or_a_transaction_holds_is_left_alone_by_both(bench: Bench) -> None:
    bench.send(*"abcd")
    assert bench.attach(credit=2) == ["a", "b"]
    bench.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 1, [1])))
    number = purge(bench)
    undo(bench, number)
    assert bench.depth() == 4
    bench.apply(c.End(1, b"t", commit=True))
    bench.settle(2)
    assert flags(bench) == [("c", False), ("d", False)]


def test_it_is_undone_once(bench: Bench) -> None:
    bench.send("a")
    number = purge(bench)
    undo(bench, number)
    assert "can be undone" in undo(bench, number)["detail"]
    assert bench.depth() == 1


def test_of_another_destination_it_is_not_found(bench: Bench) -> None:
    bench.send("a")
    bench.control("create", "queue/other")
    assert "no purge" in undo(bench, purge(bench), "queue/other")["detail"]


def test_two_purges_are_undone_in_any_order(bench: Bench) -> None:
    bench.send(*"ab")
    first = purge(bench)
    bench.send(*"cd")
    second = purge(bench)
    bench.send("e")
    undo(bench, second)
    undo(bench, first)
    assert bench.attach() == list("abcde")


def test_what_is_in_memory_only_does_not_come_back(bench: Bench) -> None:
    bench.send("a")
    bench.send("b", level=EXPRESS)
    bench.send("c", level=BEST_EFFORT)
    answer = bench.control("purge", QUEUE)
    assert (answer["purged"], answer["undoable"]) == (3, 1)
    undo(bench, answer["undo"])
    assert bench.attach() == ["a"]


def test_of_nothing_that_is_stored_there_is_nothing_to_undo(bench: Bench) -> None:
    bench.send("a", level=EXPRESS)
    assert bench.control("purge", QUEUE) == {"purged": 1, "outstanding": 0}
    assert not bench.engine.shard.records.known


@pytest.mark.parametrize(("service", "own", "kept"), [(0, -1, False), (0, 1000, True), (HOUR, 0, False), (HOUR, -1, True)])
def test_a_destination_has_its_own_time_or_the_services(service: int, own: int, kept: bool) -> None:
    bench = Bench(undo_ms=service)
    bench.control("create", QUEUE, undo_ms=own)
    bench.send("a")
    assert ("undo" in bench.control("purge", QUEUE)) is kept


def test_what_expired_meanwhile_is_dead_then(bench: Bench) -> None:
    bench.send("a", expires=bench.now + 1000)
    bench.send("b")
    number = purge(bench)
    bench.passes(2000)
    bench.control("expire")
    undo(bench, number)
    assert (bench.depth(), bench.depth(DEAD)) == (1, 1)
    assert bench.attach() == ["b"]


def test_of_a_topic_each_durable_subscription_has_its_own_back(bench: Bench) -> None:
    open_clients(bench)
    durable(bench, 1, peer=2, name="s")
    durable(bench, 2, peer=3, name="t")
    bench.apply(c.Detach(2, 1), c.Detach(3, 2))
    publish(bench, *"abc")
    durable(bench, 3, peer=2, name="s")
    bench.settle(1, link=3, peer=2)
    bench.apply(c.Detach(2, 3))
    bench.flush()
    answer = bench.control("purge", TOPIC)
    assert (answer["purged"], answer["undoable"]) == (5, 5)
    restart(bench)
    assert undo(bench, answer["undo"], TOPIC)["restored"] == 5
    assert durable(bench, 4, peer=2, name="s") == ["b", "c"]
    assert durable(bench, 5, peer=3, name="t") == ["a", "b", "c"]


def test_a_subscription_that_ended_meanwhile_stays_ended(bench: Bench) -> None:
    open_clients(bench)
    for link, name in ((1, "s"), (2, "t")):
        durable(bench, link, name=name)
        bench.apply(c.Detach(2, link))
    publish(bench, "a")
    number = purge(bench, TOPIC)
    bench.apply(c.Unsubscribe(2, "s"))
    assert undo(bench, number, TOPIC)["restored"] == 1
    assert durable(bench, 3, name="t") == ["a"]


def test_a_message_of_a_topic_that_expires_after_an_undo_is_dead_once(bench: Bench) -> None:
    open_clients(bench)
    for link, name in ((1, "s"), (2, "t")):
        durable(bench, link, name=name)
        bench.apply(c.Detach(2, link))
    publish(bench, "a", expires=bench.now + 1000)
    number = purge(bench, TOPIC)
    publish(bench, "b", expires=bench.now + 1)
    bench.passes(500)
    bench.control("expire")
    bench.flush(report=True)
    undo(bench, number, TOPIC)
    bench.passes(1000)
    bench.control("expire")
    assert bench.depth(TOPIC) == 0
    assert sorted(bench.attach(9, address=DEAD)) == ["a", "b"]


# -- segments -------------------------------------------------------------------------------------------------------------------------
def test_segments_stay_as_long_as_it_can_be_undone() -> None:
    bench = benched(segment_rows=4)
    bench.send(*"abcdefgh")
    number = purge(bench)
    bench.flush(report=True)
    assert len(bench.database.tables.segments) >= 2
    undo(bench, number)
    assert bench.attach() == list("abcdefgh")


def test_what_survives_of_a_compacted_segment_comes_back_from_the_retained_table() -> None:
    bench = benched(segment_rows=10, compact_below=0.5)
    bench.send(*[f"a{number}" for number in range(10)])
    bench.attach()
    bench.settle(*range(1, 9))
    bench.apply(c.PeerLost(1))
    bench.flush()
    number = purge(bench)
    bench.apply(c.Open(1, "guest"))
    for _ in range(4):
        bench.send(*[f"b{number}" for number in range(10)])
    for _ in range(20):
        bench.flush(report=True)
    assert len(bench.database.tables.retained) == 2
    undo(bench, number)
    assert bench.attach()[:2] == ["a8", "a9"]


@pytest.mark.parametrize("crashes", [False, True])
def test_when_its_time_is_over_segments_go(crashes: bool) -> None:
    bench = benched(segment_rows=4)
    bench.send(*"abcdefgh")
    number = purge(bench)
    if crashes:
        bench.start()
    bench.now += HOUR - 1
    bench.flush(report=True)
    assert number in bench.engine.shard.records.known
    bench.now += 1
    bench.flush(report=True)
    assert bench.database.tables.undo_ended == {number: UndoEnd.LAPSED}
    bench.flush(report=True)
    assert not list(bench.database.tables.rows())
    assert "can be undone" in undo(bench, number)["detail"]


def test_when_disk_space_is_low_the_oldest_go_first(bench: Bench) -> None:
    bench.send("a")
    first = purge(bench)
    bench.send("b")
    second = purge(bench)
    effects = bench.engine.flush(bench.now, report=True, space_low=True)
    assert effects.given_up == [(first, QUEUE, 10)]
    assert list(bench.engine.shard.records.known) == [second]
    bench.engine.released()


def test_an_operator_may_want_the_disk_back(bench: Bench) -> None:
    bench.send("a")
    number = purge(bench)
    assert bench.control("give_up", QUEUE, undo=number) == {"undo": number}
    assert bench.database.tables.undo_ended == {number: UndoEnd.GIVEN_UP}


def test_too_many_of_them_or_too_scattered_ones_cannot_be_undone() -> None:
    bench = benched(undo_records_max=1, undo_ranges_max=8)
    bench.send(*"abcdef")
    bench.attach(credit=6)
    bench.settle(2, 4)
    bench.apply(c.PeerLost(1))
    bench.flush()
    bench.apply(c.Open(1, "guest"))
    assert "undo" not in bench.control("purge", QUEUE)
    bench.send("g")
    first = purge(bench)
    bench.send("h")
    purge(bench)
    assert bench.database.tables.undo_ended == {first: UndoEnd.CROWDED}


def test_with_its_destination_it_ends(bench: Bench) -> None:
    bench.send("a")
    number = purge(bench)
    bench.control("destroy", QUEUE)
    assert bench.database.tables.undo_ended == {number: UndoEnd.DESTROYED}
    bench.flush(report=True)


def test_a_destination_with_a_purge_to_undo_is_not_reaped(bench: Bench) -> None:
    bench.send("a")
    assert bench.destination().automatic
    purge(bench)
    bench.now += bench.limits.reap_ms + 1
    assert bench.control("reap")["reaped"] == 0
    bench.now += HOUR
    bench.flush(report=True)
    assert bench.control("reap")["reaped"] == 1


def test_where_the_oldest_would_be_removed_it_has_to_fit(bench: Bench) -> None:
    bench.control("create", QUEUE, max_messages=2, limit_behavior=REMOVE_OLDEST)
    bench.send("a", "b")
    number = purge(bench)
    bench.send("c")
    assert "raise max_messages" in undo(bench, number)["detail"]
    bench.control("update", QUEUE, max_messages=3)
    assert undo(bench, number)["restored"] == 2


def test_a_large_body_comes_back(bench: Bench) -> None:
    async def octets():
        yield b"large"

    number = _now(bench.store.write_body(octets()))
    from broker_core.engine.message import Encoding, Header, Message

    bench.apply(c.Send(1, "a", QUEUE, Message(Header(b"", 4, ASSURED, 0, Encoding.STOMP), StoredBody(number, 5), 5)))
    bench.flush()
    record = purge(bench)
    bench.flush(report=True)
    undo(bench, record)
    assert bench.attach() == [f"body {number}"]
    assert number in bench.database.tables.bodies


def _now(work):
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


# -- operations -----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("verb", ["delete", "purge"])
@pytest.mark.parametrize("crashes", [False, True])
def test_an_operation_that_deletes_is_undone(bench: Bench, verb: str, crashes: bool) -> None:
    for number in range(8):
        bench.send(str(number), properties={"colour": "red" if number % 3 == 0 else "blue"})
    number = bench.control("operate", QUEUE, verb=verb, filter={"selector": "colour = 'red'"})["operation"]
    assert bench.depth() == 5
    kept = bench.database.tables.undo[number]
    assert (kept.verb, kept.messages, kept.octets, kept.lapses_at) == (verb, 3, 30, bench.now + HOUR)
    if crashes:
        bench.start()
    assert undo(bench, number)["restored"] == 3
    assert bench.attach() == list("01234567")


def test_one_that_still_runs_is_cancelled_first() -> None:
    bench = Bench(undo_ms=HOUR, operation_rows=2, operation_effort=13, slow=True)
    bench.send(*"abcd")
    request = bench.database.request("operate")
    bench.apply(c.Control(request, "operate", QUEUE, {"verb": "delete"}))
    while bench.depth() == 4:
        bench.read()
        bench.flush()
    assert bench.depth() > 0
    bench.now += 2 * HOUR
    bench.flush(report=True)
    assert "cancel it first" in undo(bench, request)["detail"]
    bench.control("cancel", QUEUE, operation=request)
    undo(bench, request)
    assert bench.depth() == 4


def test_an_operation_that_goes_on_after_a_crash_is_undone_as_a_whole() -> None:
    bench = Bench(undo_ms=HOUR, operation_rows=2, operation_effort=13, slow=True)
    bench.send(*"abcdef")
    request = bench.database.request("operate")
    bench.apply(c.Control(request, "operate", QUEUE, {"verb": "delete"}))
    while bench.depth() == 6:
        bench.read()
        bench.flush()
    assert bench.depth() > 0
    bench.start()
    for _ in range(20):
        bench.read()
        bench.flush()
    assert bench.depth() == 0
    assert undo(bench, request)["restored"] == 6


def test_what_was_only_counted_is_no_matter_of_undoing(bench: Bench) -> None:
    bench.send("a")
    bench.control("operate", QUEUE, verb="delete", dry_run=True)
    assert not bench.engine.shard.records.known
