"""What sessions of the database send (R17): each row is taken over once, with the commit that makes its message visible, and nothing is lost silently."""

from __future__ import annotations

import json

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Encoding, Header, Message, StoredBody
from broker_core.engine.message_group import GROUP_ID
from broker_core.engine.outputs import Delivered
from broker_core.engine.refusal import Refusal
from broker_core.engine.writes import Commit
from broker_core.store import CommitLost
from tests.engine.rig import ASSURED, DEAD, EXPRESS, QUEUE, START, Bench, now_of

TOPIC = "topic/prices"


def sent(
    bench: Bench, *bodies: str, address: str = QUEUE, level=ASSURED, delay: int = 0, name: str = "", group: str = "", ago: int = 0, large: int = 0,
) -> list[int]:  # fmt: skip
    """A transaction of somebody's, committed."""
    entries = []
    for body in bodies:
        entry = bench.database.number()
        lines = f"{GROUP_ID}:{group}".encode() if group else b""
        header = Header(lines, 4, level, 0, Encoding.STOMP, f"ID:sql-{entry}", delay=delay, duplicate_id=name)
        octets = StoredBody(large, 10) if large else body.encode()
        bench.database.send(c.TakeOver(entry, address, Message(header, octets, len(lines) + 10), bench.now - ago))
        entries.append(entry)
    return entries


def take(bench: Bench) -> list[str]:
    """All that is there is taken over; what came of it for consumers."""
    bench.apply(*now_of(bench.store.inbox(100, 1 << 20)))
    return bench.bodies(bench.flush())


def last_commit(bench: Bench) -> Commit:
    return next(effects.commit for effects in reversed(bench.effects) if effects.commit is not None)


def deaths(bench: Bench) -> list[tuple[str, str]]:
    """Bodies and comments of what is in the dead message queue."""
    bench.attach(9, address=DEAD)
    messages = bench.delivered(bench.outputs)
    return [(bench.body(message), json.loads(message.header.annotations)["JMS_SUN_DMQ_UNDELIVERED_COMMENT"]) for message in messages]


# -- refused ------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("address", "refusal"),
    [
        ("queue/unknown", Refusal.NO_SUCH_DESTINATION),
        ("queue/a*", Refusal.INVALID_DESTINATION),
        (DEAD, Refusal.DESTINATION_RESERVED),
        ("temp-queue/test-1-1.replies", Refusal.TEMPORARY_DESTINATION_GONE),
    ],
)
def test_what_may_not_be_sent_is_dead_with_the_reason(address: str, refusal: Refusal) -> None:
    bench = Bench(auto_create=False)
    sent(bench, "a", address=address)
    assert take(bench) == []
    assert bench.database.tables.inbox == {}
    assert deaths(bench) == [("a", refusal.value)]


def test_a_queue_that_is_paused_and_a_body_that_is_too_large_refuse_too() -> None:
    bench = Bench(message_octets_max=9)
    sent(bench, "a")
    take(bench)
    assert deaths(bench) == [("a", Refusal.MESSAGE_TOO_LARGE.value)]
    bench = Bench()
    bench.send("first")
    bench.control("pause", QUEUE, direction="PRODUCERS")
    sent(bench, "a")
    assert take(bench) == []
    assert deaths(bench) == [("a", Refusal.DESTINATION_PAUSED.value)]


def test_the_dead_one_tells_where_it_was_to_go_and_when_it_was_sent_and_outlives_the_node() -> None:
    bench = Bench(auto_create=False)
    (entry,) = sent(bench, "a", address="queue/unknown", ago=500)
    take(bench)
    bench.start()
    assert bench.attach(address=DEAD) == ["a"]
    (message,) = bench.delivered(bench.outputs)
    told = json.loads(message.header.annotations)
    assert (told["original-destination"], told["original-timestamp"], told["JMS_SUN_DMQ_DELIVERY_COUNT"]) == ("queue/unknown", START - 500, 0)
    assert message.header.message_id == f"ID:sql-{entry}"


# -- lost and kept commits ----------------------------------------------------------------------------------------------------------------
def test_a_commit_that_is_lost_takes_nothing() -> None:
    bench = Bench()
    bench.attach()
    entries = sent(bench, "a", "b")
    bench.apply(*now_of(bench.store.inbox(100, 1 << 20)))
    commit = bench.engine.flush(bench.now).commit
    assert commit is not None
    assert (commit.taken, len(commit.messages)) == (entries, 2)
    bench.start()  # that commit never was
    assert list(bench.database.tables.inbox) == entries
    assert bench.attach() == []
    assert take(bench) == ["a", "b"]
    bench.start()
    assert bench.database.tables.inbox == {}
    assert bench.depth() == 2


def test_a_commit_whose_row_somebody_deleted_fails_whole() -> None:
    bench = Bench()
    entries = sent(bench, "a", "b")
    found = now_of(bench.store.inbox(100, 1 << 20))
    del bench.database.tables.inbox[entries[0]]
    bench.apply(*found)
    with pytest.raises(CommitLost):
        bench.flush()
    bench.start()
    assert bench.attach() == []
    assert take(bench) == ["b"]


@pytest.mark.parametrize("level", [EXPRESS, ASSURED])
def test_a_crash_of_the_database_brings_back_nothing_that_was_seen(level) -> None:
    """The commit waits for the disk, whatever the level: else the row would be there again."""
    bench = Bench()
    bench.attach()
    sent(bench, "a", level=level)
    assert take(bench) == ["a"]
    assert last_commit(bench).synchronous
    bench.database.crash()
    bench.start()
    assert now_of(bench.store.inbox(100, 1 << 20)) == []


# -- as any other message -----------------------------------------------------------------------------------------------------------------
def test_it_comes_in_the_order_of_the_numbers_and_keeps_its_identifier() -> None:
    bench = Bench()
    bench.attach()
    entries = sent(bench, "a", "b", "c")
    assert take(bench) == ["a", "b", "c"]
    messages = bench.delivered(bench.outputs)
    assert [bench.engine.shard.message_id(message) for message in messages] == [f"ID:sql-{entry}" for entry in entries]


def test_what_was_committed_late_is_taken_though_its_number_is_lower() -> None:
    bench = Bench()
    bench.attach()
    late = bench.database.number()
    sent(bench, "a")
    assert take(bench) == ["a"]
    bench.database.send(c.TakeOver(late, QUEUE, Message(Header(b"", 4, ASSURED), b"late", 4), bench.now))
    assert take(bench) == ["late"]


def test_a_topic_gives_it_to_all_its_subscriptions_and_without_one_only_the_row_goes() -> None:
    bench = Bench()
    sent(bench, "nobody's", address=TOPIC)
    assert take(bench) == []
    assert bench.database.tables.inbox == {}
    for link in (1, 2):
        bench.attach(link, address=TOPIC)
    sent(bench, "a", address=TOPIC)
    assert take(bench) == ["a", "a"]


def test_its_delay_counts_from_the_call() -> None:
    bench = Bench()
    bench.attach()
    sent(bench, "a", delay=100, ago=60)
    assert take(bench) == []
    assert bench.bodies(bench.passes(39)) == []
    assert bench.bodies(bench.passes(1)) == ["a"]
    sent(bench, "b", delay=100, ago=200)
    assert take(bench) == ["b"]


def test_its_name_is_known_and_a_second_one_is_dropped_with_its_row() -> None:
    bench = Bench()
    bench.control("create", QUEUE, duplicate_window_ms=1000)
    bench.attach()
    sent(bench, "a", name="n")
    sent(bench, "again", name="n")
    assert take(bench) == ["a"]
    assert bench.database.tables.inbox == {}
    assert bench.bodies(bench.send("by a client", duplicate_id="n")) == []


def test_a_message_group_is_recognized() -> None:
    bench = Bench()
    bench.attach(1)
    bench.attach(2)
    for body in "abcd":
        sent(bench, body, group="g")
    assert take(bench) == ["a", "b", "c", "d"]
    assert len({output.link for output in bench.outputs if isinstance(output, Delivered)}) == 1


def test_a_large_body_is_named_by_the_message_that_was_taken() -> None:
    bench = Bench()
    bench.database.tables.bodies[7] = (1, [b"0123456789"])
    sent(bench, "", large=7)
    take(bench)
    bench.start()
    assert 7 in bench.database.tables.bodies
    assert bench.database.tables.named_bodies() == {7}


def test_who_sends_otherwise_takes_nothing() -> None:
    bench = Bench()
    bench.send("a")
    assert last_commit(bench).taken == []


@pytest.mark.parametrize("level", [EXPRESS, ASSURED])
def test_what_a_full_queue_rejects_is_dead_with_that_reason_and_what_is_delayed_waits(level: int) -> None:
    bench = Bench()
    bench.control("create", QUEUE, max_messages=2, limit_behavior="REJECT_NEWEST")
    sent(bench, "a", "b", "c", level=level)
    sent(bench, "later", level=level, delay=100)
    take(bench)
    assert (bench.depth(), bench.engine.shard.destinations[QUEUE].scheduled) == (2, 1)
    assert deaths(bench) == [("c", Refusal.DESTINATION_FULL.value)]


# -- levels and aliases ------------------------------------------------------------------------------------------------------------------
def test_what_asks_for_more_than_its_destination_takes_is_dead_with_that_reason() -> None:
    bench = Bench()
    bench.control("create", QUEUE, maximum_reliability="express")
    sent(bench, "a")
    take(bench)
    assert deaths(bench) == [("a", Refusal.RELIABILITY_EXCEEDED.value)]


def test_what_is_sent_to_an_alias_goes_to_its_target_at_the_level_that_it_has_there() -> None:
    bench = Bench()
    bench.control("create_alias", "queue/alias", target=QUEUE, default_reliability="express", reliability_override=False)
    sent(bench, "a", address="queue/alias")
    take(bench)
    assert (bench.depth(), bench.attach()) == (1, ["a"])
    assert "queue/alias" not in bench.engine.shard.destinations
    assert [message.header.reliability for message in bench.delivered(bench.outputs)] == [EXPRESS]
