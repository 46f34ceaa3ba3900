"""Duplicate detection: what is sent again with the same identifier is there once, whatever was lost in between, as long as the window says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Encoding, Header, Message, StoredBody
from broker_core.engine.refusal import Refusal
from broker_core.engine.upkeep import TrimDuplicates
from tests.engine.rig import ASSURED, BEST_EFFORT, EXPRESS, QUEUE, RELIABLE, Bench

WINDOW = 10_000
TOPIC = "topic/prices"
OTHER = "queue/other"
LEVELS = [BEST_EFFORT, EXPRESS, RELIABLE, ASSURED]


def detecting(*addresses: str, window: int = WINDOW, **how) -> Bench:
    bench = Bench(**how)
    for address in addresses or (QUEUE,):
        assert "refusal" not in opened(bench, address, window)
    return bench


def opened(bench: Bench, address: str, window: int) -> dict:
    """An operator sets the window of a queue; a topic comes into being by its use first."""
    if address not in bench.engine.shard.destinations and address.startswith("topic/"):
        bench.send("first", address=address)
    return bench.control("update" if address in bench.engine.shard.destinations else "create", address, duplicate_window_ms=window)


def send(bench: Bench, body: str, identifier: str, *, address: str = QUEUE, level=ASSURED, delay: int = 0, transaction: bytes = b"") -> None:
    """Into the open batch."""
    header = Header(b"", 4, level, 0, Encoding.STOMP, delay=delay, duplicate_id=identifier)
    command = c.Send(1, None if transaction else body, address, Message(header, body.encode(), 10))
    bench.apply(c.Transacted(1, transaction, command) if transaction else command)


def rows(bench: Bench) -> list[str]:
    """Identifiers in the store."""
    return [identifier for identifiers in bench.database.tables.duplicates.values() for identifier in identifiers]


def trims(bench: Bench) -> list[TrimDuplicates]:
    return [step for effects in bench.effects for step in effects.maintenance if isinstance(step, TrimDuplicates)]


# -- what must not happen ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", LEVELS)
def test_what_is_sent_again_is_confirmed_and_dropped(level) -> None:
    bench = detecting()
    assert bench.confirmed(bench.send("a", duplicate_id="1", level=level)) == ["a"]
    assert bench.confirmed(bench.send("again", duplicate_id="1", level=level)) == ["again"]
    assert bench.attach() == ["a"]
    assert (bench.depth(), bench.destination().accepted) == (1, 1)
    assert bench.engine.shard.duplicates.dropped == 1


def test_also_when_the_first_has_been_consumed_long_ago() -> None:
    bench = detecting()
    bench.attach()
    bench.send("a", duplicate_id="1")
    bench.settle(1)
    assert bench.bodies(bench.send("again", duplicate_id="1")) == []
    assert bench.depth() == 0


@pytest.mark.parametrize("level", [RELIABLE, ASSURED])
def test_a_crash_between_the_commit_and_its_receipt_leaves_the_message_and_its_identifier(level) -> None:
    bench = detecting()
    send(bench, "a", "1", level=level)
    effects = bench.engine.flush(bench.now)
    bench._commit(effects)  # and nobody hears of it
    bench.start()
    assert bench.confirmed(bench.send("again", duplicate_id="1", level=level)) == ["again"]
    assert bench.attach() == ["a"]


def test_a_crash_before_the_commit_leaves_neither() -> None:
    bench = detecting()
    send(bench, "a", "1")
    bench.engine.flush(bench.now)
    bench.start()
    bench.send("again", duplicate_id="1")
    assert bench.attach() == ["again"]


@pytest.mark.parametrize("level", [BEST_EFFORT, EXPRESS])
def test_a_volatile_message_and_its_identifier_go_with_the_node(level) -> None:
    bench = detecting()
    bench.send("a", duplicate_id="1", level=level)
    assert rows(bench) == []
    bench.start()
    bench.send("again", duplicate_id="1", level=level)
    assert bench.attach() == ["again"]


def test_two_of_one_batch_are_one_and_both_are_confirmed_with_its_commit() -> None:
    bench = detecting()
    send(bench, "a", "1")
    send(bench, "again", "1")
    effects = bench.engine.flush(bench.now)
    assert effects.commit is not None
    assert [message.body for message in effects.commit.messages] == [b"a"]
    assert effects.commit.remembered == [(bench.destination().number, ["1"])]
    assert effects.commit.synchronous
    assert bench.confirmed(effects.outputs) == ["a", "again"]


@pytest.mark.parametrize("again", [True, False])
def test_what_was_refused_is_not_remembered(again: bool) -> None:
    bench = detecting()
    bench.control("pause", QUEUE, direction="PRODUCERS")
    assert bench.refused(bench.send("a", duplicate_id="1")) == [Refusal.DESTINATION_PAUSED]
    bench.control("resume", QUEUE, direction="ALL")
    if again:
        bench.start()
    bench.send("b", duplicate_id="1")
    assert bench.attach() == ["b"]


def test_the_large_body_of_what_is_dropped_is_discarded() -> None:
    bench = detecting()
    for body in (1, 2):
        header = Header(b"", reliability=ASSURED, duplicate_id="1")
        bench.apply(c.Send(1, body, QUEUE, Message(header, StoredBody(body, 5000), 5000)))
    assert bench.engine.flush(bench.now).discarded == [2]


# -- transactions ----------------------------------------------------------------------------------------------------------------------
def test_a_duplicate_in_a_transaction_is_dropped_alone() -> None:
    bench = detecting()
    bench.send("a", duplicate_id="1")
    bench.apply(c.Begin(1, b"t"))
    for body, identifier in (("again", "1"), ("b", "2"), ("b again", "2"), ("c", "")):
        send(bench, body, identifier, transaction=b"t")
    bench.apply(c.End(1, b"t", True, "done"))
    assert bench.confirmed(bench.flush()) == ["done"]
    assert bench.attach() == ["a", "b", "c"]


def test_it_is_checked_at_the_commit_and_not_before() -> None:
    bench = detecting()
    bench.apply(c.Begin(1, b"t"))
    send(bench, "in it", "1", transaction=b"t")
    bench.send("meanwhile", duplicate_id="1")
    bench.apply(c.End(1, b"t", True, "done"))
    assert bench.confirmed(bench.flush()) == ["done"]
    assert bench.attach() == ["meanwhile"]


@pytest.mark.parametrize("how", ["abort", "lost"])
def test_a_transaction_that_is_rolled_back_is_not_remembered(how: str) -> None:
    bench = detecting()
    bench.apply(c.Begin(1, b"t"))
    send(bench, "a", "1", transaction=b"t")
    bench.apply(c.End(1, b"t", False, "done") if how == "abort" else c.PeerLost(1))
    bench.flush()
    bench.start()
    bench.send("b", duplicate_id="1")
    assert bench.attach() == ["b"]


# -- which destinations ------------------------------------------------------------------------------------------------------------------
def test_without_a_window_identifiers_mean_nothing() -> None:
    bench = Bench()
    bench.send("a", "b", duplicate_id="1")
    assert bench.attach() == ["a", "b"]
    assert (rows(bench), bench.engine.shard.duplicates.ids) == ([], 0)


def test_messages_without_one_are_all_accepted() -> None:
    bench = detecting()
    bench.send("a", "b")
    assert bench.attach() == ["a", "b"]
    assert rows(bench) == []


def test_each_destination_remembers_for_itself() -> None:
    bench = detecting(QUEUE, OTHER)
    bench.send("a", duplicate_id="1")
    bench.send("b", duplicate_id="1", address=OTHER)
    assert (bench.attach(), bench.attach(2, address=OTHER)) == (["a"], ["b"])


@pytest.mark.parametrize("crash", [False, True])
def test_a_topic_gives_each_durable_subscription_one(crash: bool) -> None:
    bench = detecting(TOPIC)
    bench.apply(c.Open(2, "guest", client_id="me"))
    for name, link in (("one", 1), ("two", 2)):
        bench.attach(link, peer=2, address=TOPIC, name=name, durable=True, credit=0)
    bench.send("a", duplicate_id="1", address=TOPIC)
    if crash:
        bench.start()
    bench.send("again", duplicate_id="1", address=TOPIC)
    assert bench.depth(TOPIC) == 2


def test_what_nobody_of_a_topic_takes_is_remembered_as_long_as_the_node_lives() -> None:
    bench = detecting(TOPIC)
    bench.send("a", duplicate_id="1", address=TOPIC)
    assert bench.attach(address=TOPIC) == []
    assert bench.bodies(bench.send("again", duplicate_id="1", address=TOPIC)) == []
    assert rows(bench) == []
    bench.start()
    bench.attach(address=TOPIC)
    assert bench.bodies(bench.send("again", duplicate_id="1", address=TOPIC)) == ["again"]


def test_a_temporary_destination_never_detects() -> None:
    bench = Bench()
    bench.apply(c.Open(2, "guest", session="s"), c.CreateTemporary(2, "temp-queue/s.replies"))
    bench.flush()
    bench.control("update", "temp-queue/s.replies", duplicate_window_ms=WINDOW)
    bench.send("a", "b", duplicate_id="1", address="temp-queue/s.replies")
    assert bench.attach(peer=2, address="temp-queue/s.replies") == ["a", "b"]


@pytest.mark.parametrize("level", LEVELS)
def test_a_delayed_message_is_known_from_its_acceptance_on(level) -> None:
    bench = detecting()
    bench.send("a", duplicate_id="1", delay=100, level=level)
    bench.send("again", duplicate_id="1", level=level)
    assert (bench.depth(), bench.destination().scheduled) == (0, 1)
    bench.attach()
    assert bench.bodies(bench.passes(100)) == ["a"]
    bench.send("again", duplicate_id="1", delay=100, level=level)
    assert bench.bodies(bench.passes(100)) == []


@pytest.mark.parametrize("level", [RELIABLE, ASSURED])
def test_a_delayed_message_is_known_after_a_crash(level) -> None:
    bench = detecting()
    bench.send("a", duplicate_id="1", delay=100, level=level)
    bench.start()
    bench.send("again", duplicate_id="1", delay=50, level=level)
    bench.attach()
    assert bench.bodies(bench.passes(100)) == ["a"]


# -- the window --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("crash", [False, True])
def test_it_counts_from_the_acceptance_and_a_duplicate_does_not_prolong_it(crash: bool) -> None:
    bench = detecting()
    bench.send("a", duplicate_id="1")
    bench.passes(WINDOW - 1)
    if crash:
        bench.start()
    bench.send("again", duplicate_id="1")
    bench.passes(1)
    bench.send("b", duplicate_id="1")
    bench.passes(WINDOW - 1)
    bench.send("again", duplicate_id="1")
    assert bench.attach() == ["a", "b"]


def test_what_is_too_old_is_forgotten_in_the_background_and_so_are_its_rows() -> None:
    bench = detecting()
    for body in "abc":
        bench.send(body, duplicate_id=body)
        bench.passes(1000)
    bench.passes(WINDOW - 2000)
    assert bench.engine.shard.duplicates.ids == 3
    bench.flush(report=True)
    assert bench.engine.shard.duplicates.ids == 1
    assert rows(bench) == ["c"]
    bench.passes(WINDOW)
    bench.flush(report=True)
    assert (bench.engine.shard.duplicates.ids, rows(bench)) == (0, [])
    asked = len(trims(bench))
    for _ in range(3):
        bench.passes(1000)
        bench.flush(report=True)
    assert len(trims(bench)) == asked


def test_only_some_are_forgotten_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.engine.duplicates.FORGOTTEN_MAX", 2)
    monkeypatch.setattr("broker_core.engine.duplicates.LOOKS", 1)
    bench = detecting(QUEUE, OTHER)
    for body in "abc":
        for address in (QUEUE, OTHER):
            bench.send(body, duplicate_id=body, address=address)
    bench.passes(WINDOW)
    left = []
    for _ in range(5):
        bench.flush(report=True)
        left.append(bench.engine.shard.duplicates.ids)
    assert left == [4, 3, 1, 0, 0]
    bench.send("c", duplicate_id="c")
    assert bench.depth() == 4


@pytest.mark.parametrize("crash", [False, True])
def test_of_too_many_the_oldest_is_forgotten(crash: bool) -> None:
    bench = detecting(duplicate_ids_max=3)
    for body in "abcd":
        bench.send(body, duplicate_id=body)
    if crash:
        bench.start()
    for body in "bcda":
        bench.send(f"{body} again", duplicate_id=body)
    assert bench.attach() == ["a", "b", "c", "d", "a again"]


def test_when_all_destinations_remember_too_many_each_has_its_share() -> None:
    bench = detecting(QUEUE, OTHER, duplicate_ids_total_max=6)
    for body in "abcdef":
        bench.send(body, duplicate_id=body)
    for body in "uvwxyz":
        bench.send(body, duplicate_id=body, address=OTHER)
    assert [len(bench.destination(address).known_ids) for address in (QUEUE, OTHER)] == [6, 3]
    bench.send("g", "h", duplicate_id="g")
    assert [body for body in "abcdefgh" if body in bench.destination().known_ids] == list("cdefg")


def test_after_a_recovery_all_destinations_together_remember_no_more_than_they_may() -> None:
    bench = detecting(QUEUE, OTHER)
    for body in "abcdef":
        bench.send(body, duplicate_id=body)
        bench.send(body, duplicate_id=body, address=OTHER)
    bench.limits = replace(bench.limits, duplicate_ids_total_max=6)
    bench.start()
    assert [len(bench.destination(address).known_ids) for address in (QUEUE, OTHER)] == [3, 3]
    assert all(body in bench.destination().known_ids for body in "def")


# -- what operators do ----------------------------------------------------------------------------------------------------------------
def test_a_purge_forgets_nothing() -> None:
    bench = detecting()
    bench.send("a", duplicate_id="1")
    bench.control("purge", QUEUE, depth=1)
    bench.start()
    bench.send("again", duplicate_id="1")
    assert bench.depth() == 0


def test_destroying_forgets_all_and_the_namesake_begins_anew() -> None:
    bench = detecting(QUEUE, OTHER)
    bench.send("kept", duplicate_id="1", address=OTHER)
    bench.send("a", duplicate_id="1")
    bench.control("destroy", QUEUE)
    bench.control("create", QUEUE, duplicate_window_ms=WINDOW)
    bench.send("b", duplicate_id="1")
    assert bench.attach() == ["b"]
    bench.passes(1)
    bench.flush(report=True)
    assert rows(bench) == ["1", "1"]


@pytest.mark.parametrize("verb", ["destroy", "update"])
def test_rows_that_a_crash_left_of_whoever_remembers_no_more_are_deleted_after_it(verb: str) -> None:
    bench = detecting()
    bench.send("a", duplicate_id="1")
    bench.control(verb, QUEUE, **({"duplicate_window_ms": 0} if verb == "update" else {}))
    bench.start()
    assert rows(bench) == ["1"]
    bench.passes(1)
    bench.flush(report=True)
    assert rows(bench) == []


def test_a_window_that_is_closed_and_opened_begins_anew_and_what_is_remembered_then_stays() -> None:
    bench = detecting()
    bench.send("a", duplicate_id="1")
    bench.control("update", QUEUE, duplicate_window_ms=0)
    bench.send("b", duplicate_id="1")
    bench.control("update", QUEUE, duplicate_window_ms=WINDOW)
    bench.send("c", duplicate_id="1")
    bench.passes(1)
    bench.flush(report=True)
    bench.start()
    bench.send("again", duplicate_id="1")
    assert bench.attach() == ["a", "b", "c"]


def test_rows_of_a_closed_window_that_are_being_deleted_take_none_of_the_new_one_along() -> None:
    bench = detecting()
    bench.send("a", duplicate_id="1")
    bench.control("update", QUEUE, duplicate_window_ms=0)
    bench.slow = True
    bench.flush(report=True)
    bench.control("update", QUEUE, duplicate_window_ms=WINDOW)
    bench.send("b", duplicate_id="1")
    bench.passes(1)
    bench.flush(report=True)
    bench.maintain()
    bench.start()
    bench.slow = False
    bench.send("again", duplicate_id="1")
    assert bench.attach() == ["a", "b"]


def test_a_shorter_window_counts_at_once() -> None:
    bench = detecting()
    bench.send("a", duplicate_id="1")
    bench.passes(1000)
    bench.control("update", QUEUE, duplicate_window_ms=1000)
    bench.send("b", duplicate_id="1")
    assert bench.attach() == ["a", "b"]


@pytest.mark.parametrize("window", [-1, 7 * 86_400_000 + 1, 1.5, "1"])
def test_a_window_that_is_none_is_refused(window) -> None:
    assert opened(Bench(), QUEUE, window)["refusal"] == "INVALID_SETTING"


def test_a_clock_that_was_set_back_before_a_recovery_costs_no_rows() -> None:
    bench = detecting()
    bench.send("a", duplicate_id="1")
    bench.flush(report=True)
    bench.now -= 5000
    bench.start()
    bench.send("b", duplicate_id="2")
    bench.passes(10)
    bench.flush(report=True)
    bench.start()
    bench.send("again", duplicate_id="1")
    bench.send("again", duplicate_id="2")
    assert bench.attach() == ["a", "b"]
