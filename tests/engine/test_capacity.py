"""Limits of destinations: what a full one does with what comes, and that nothing else is touched."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Refused
from broker_core.engine.refusal import Refusal
from broker_core.engine.settings import Settings
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, Bench

TOPIC = "topic/prices"


def bounded(address: str = QUEUE, **settings: object) -> Bench:
    bench = Bench()
    bench.control("create", address, **settings)
    return bench


def left(bench: Bench, address: str = QUEUE) -> list[str]:
    """What a consumer finds there."""
    return bench.attach(99, address=address)


def reasons(bench: Bench) -> list[tuple[str, str]]:
    """Of what is dead: body and reason."""
    bench.attach(98, address=DEAD)
    delivered = [message for output in bench.effects for message in bench.delivered(output.outputs) if "UNDELIVERED_REASON" in message.header.annotations]
    return [(bench.body(message), message.header.annotations.split('_REASON":"')[1].split('"')[0]) for message in delivered]


# -- settings ---------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"max_messages": 0}, "at least 1"),
        ({"max_messages": -2}, "between"),
        ({"max_octets": "1k"}, "a number"),
        ({"limit_behavior": "DROP"}, "REJECT_NEWEST"),
        ({"limit_behavior": 1}, "REJECT_NEWEST"),
        ({"limit_behavior": ["REJECT_NEWEST"]}, "REJECT_NEWEST"),
        ({"time_to_live_ms": 0}, "at least 1"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_with_a_sentence(values, says) -> None:
    bench = Bench()
    answer = bench.control("create", QUEUE, **values)
    assert answer["refusal"] == "INVALID_SETTING" and says in answer["detail"]


def test_the_dead_message_queue_never_refuses() -> None:
    bench = Bench()
    assert bench.control("update", DEAD, limit_behavior="REJECT_NEWEST")["refusal"] == "INVALID_SETTING"
    bench.control("update", DEAD, max_messages=1)
    bench.control("create", QUEUE, redelivery_max=0)
    bench.attach()
    bench.send("a", "b")
    bench.settle(1, 2, outcome=Outcome.FAILED)
    assert left(bench, DEAD) == ["b"]


# -- REJECT_NEWEST ----------------------------------------------------------------------------------------------------------------------
def test_what_does_not_fit_is_refused_precisely_and_nothing_of_it_is_there() -> None:
    bench = bounded(max_messages=2, limit_behavior="REJECT_NEWEST")
    outputs = bench.send("a", "b", "c")
    refused = [output for output in outputs if isinstance(output, Refused)]
    assert [(output.token, output.refusal) for output in refused] == [("c", Refusal.DESTINATION_FULL)]
    assert QUEUE in refused[0].detail and "max_messages is 2" in refused[0].detail
    assert left(bench) == ["a", "b"]


def test_octets_count_as_messages_do() -> None:
    bench = bounded(max_octets=25, limit_behavior="REJECT_NEWEST")
    assert bench.refused(bench.send("a", "b", "c")) == [Refusal.DESTINATION_FULL]
    assert bench.refused(bench.send("tiny", size=5)) == []


def test_a_non_persistent_message_that_does_not_fit_is_dropped_without_a_word() -> None:
    bench = bounded(max_messages=1, limit_behavior="REJECT_NEWEST")
    outputs = bench.send("a", "b", level=EXPRESS)
    assert (bench.refused(outputs), bench.confirmed(outputs)) == ([], ["a", "b"])
    assert left(bench) == ["a"]
    assert bench.engine.shard.turned_away == 1


def test_an_acknowledgement_makes_room_in_the_same_batch() -> None:
    bench = bounded(max_messages=1, limit_behavior="REJECT_NEWEST")
    bench.attach()
    bench.send("a")
    assert bench.refused(bench.send("b")) == [Refusal.DESTINATION_FULL]  # delivered ones count
    bench.apply(c.Settle(1, 1, [1]))
    assert bench.refused(bench.send("c")) == []


def test_a_message_beyond_the_limit_of_one_is_refused_whatever_the_behaviour() -> None:
    bench = bounded(max_message_octets=9, limit_behavior="REMOVE_OLDEST")
    assert bench.refused(bench.send("a")) == [Refusal.MESSAGE_TOO_LARGE]
    assert bench.refused(bench.send("b", level=BEST_EFFORT)) == []
    assert bench.refused(bench.send("c", size=9)) == []
    assert left(bench) == ["c"]


def test_new_limits_count_from_the_next_message_on_and_none_is_lost_by_them() -> None:
    bench = Bench()
    bench.send("a", "b", "c")
    bench.control("update", QUEUE, max_messages=2, limit_behavior="REJECT_NEWEST")
    assert bench.depth() == 3
    assert bench.refused(bench.send("d")) == [Refusal.DESTINATION_FULL]
    bench.control("update", QUEUE, max_messages=-1)
    assert bench.refused(bench.send("e")) == []
    assert left(bench) == ["a", "b", "c", "e"]


def test_limits_hold_after_a_restart() -> None:
    bench = bounded(max_messages=1, limit_behavior="REJECT_NEWEST")
    bench.send("a")
    bench.start()
    assert bench.refused(bench.send("b")) == [Refusal.DESTINATION_FULL]


def test_on_a_topic_the_subscription_that_holds_most_counts() -> None:
    bench = bounded(TOPIC, max_messages=2, limit_behavior="REJECT_NEWEST")
    assert bench.refused(bench.send("for nobody", "for nobody", "for nobody", address=TOPIC)) == []
    for link in (1, 2):
        bench.attach(link, address=TOPIC)
    bench.send("a", "b", address=TOPIC)
    bench.settle(1, 2, link=1)
    assert bench.refused(bench.send("c", address=TOPIC)) == [Refusal.DESTINATION_FULL]
    bench.settle(1, link=2)
    assert bench.refused(bench.send("c", "d", address=TOPIC)) == [Refusal.DESTINATION_FULL]


def test_what_was_accepted_before_is_known_though_it_is_full() -> None:
    bench = bounded(max_messages=1, limit_behavior="REJECT_NEWEST", duplicate_window_ms=1000)
    bench.send("a", duplicate_id="1")
    assert bench.confirmed(bench.send("again", duplicate_id="1")) == ["again"]
    assert bench.refused(bench.send("b", duplicate_id="2")) == [Refusal.DESTINATION_FULL]


def test_a_delayed_message_is_decided_upon_when_it_is_due_and_never_lost() -> None:
    bench = bounded(max_messages=1, limit_behavior="REJECT_NEWEST")
    bench.send("later", delay=100)
    bench.send("a")
    bench.passes(100)
    assert bench.depth() == 2
    assert left(bench) == ["a", "later"]


@pytest.mark.parametrize("behavior", ["REJECT_NEWEST", "REMOVE_OLDEST"])
def test_a_delayed_message_of_a_commit_that_comes_when_it_is_due_already_counts(behavior: str) -> None:
    bench = bounded(max_messages=2, limit_behavior=behavior)
    bench.apply(c.Begin(1, b"t"))
    for body, delay in (("a", 0), ("late", 5), ("b", 0)):
        bench.apply(c.Transacted(1, b"t", c.Send(1, None, QUEUE, Message(Header(b"", 4, ASSURED, delay=delay), body.encode(), 10))))
    bench.now += 50
    bench.apply(c.End(1, b"t", commit=True))
    bench.flush()
    assert left(bench) == (["a", "late", "b"] if behavior == "REJECT_NEWEST" else ["late", "b"])


# -- REMOVE_OLDEST, REMOVE_LOW_PRIORITY -------------------------------------------------------------------------------------------------
def test_the_oldest_is_removed_and_is_dead_with_its_reason() -> None:
    bench = bounded(max_messages=2, limit_behavior="REMOVE_OLDEST")
    assert bench.refused(bench.send("a", "b", "c", "d")) == []
    assert bench.depth() == 2
    assert left(bench) == ["c", "d"]
    assert reasons(bench) == [("a", "OLDEST"), ("b", "OLDEST")]


def test_the_oldest_is_the_oldest_whatever_its_priority_and_mode() -> None:
    bench = bounded(max_messages=2, limit_behavior="REMOVE_OLDEST", use_dead=False)
    bench.send("a", priority=9)
    bench.send("b", level=EXPRESS, priority=0)
    bench.send("c")
    bench.send("d")
    assert left(bench) == ["c", "d"]
    assert bench.depth(DEAD) == 0


def test_of_the_lowest_priority_the_oldest_is_removed() -> None:
    bench = bounded(max_messages=3, limit_behavior="REMOVE_LOW_PRIORITY")
    bench.send("high", priority=9)
    bench.send("low 1", priority=1)
    bench.send("low 2", priority=1, level=EXPRESS)
    bench.send("mid")
    assert left(bench) == ["high", "mid", "low 2"]
    assert reasons(bench) == [("low 1", "LOW_PRIORITY")]


def test_what_a_consumer_or_a_transaction_has_is_never_removed() -> None:
    bench = bounded(max_messages=1, limit_behavior="REMOVE_OLDEST")
    bench.attach(credit=2)
    bench.send("a", "b")
    bench.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 1, [1])))
    bench.send("c", "d")
    assert bench.depth() == 3  # "c" went to the consumer, as the acknowledgement gave its credit back
    bench.apply(c.End(1, b"t", commit=False))
    assert bench.attach(2) == ["a"]


def test_what_has_expired_expires_and_is_not_called_the_oldest() -> None:
    bench = bounded(max_messages=1, limit_behavior="REMOVE_OLDEST")
    bench.send("a", expires=bench.now + 10)
    bench.now += 20
    bench.send("b")
    assert reasons(bench) == [("a", "EXPIRED")]


def test_what_is_on_disk_only_is_read_to_be_removed() -> None:
    bench = Bench(window_rows=2, page_rows=3)
    bench.send(*"abcdefghij")
    bench.control("update", QUEUE, max_messages=2, limit_behavior="REMOVE_OLDEST")
    bench.send("k")
    assert left(bench) == ["j", "k"]
    assert [body for body, _ in reasons(bench)] == list("abcdefghi")


def test_it_is_removed_in_bounded_steps() -> None:
    bench = Bench(removals=8, slow=True)
    bench.send(*"abcdefghij")
    bench.control("update", QUEUE, max_messages=1, limit_behavior="REMOVE_OLDEST")
    bench.send("k")
    depths = [bench.depth()]
    while bench.depth() > 1:
        assert bench.engine.next_deadline() == bench.now
        bench.flush()
        depths.append(bench.depth())
    assert len(depths) > 2


def test_subscriptions_of_a_topic_lose_their_oldest_and_it_is_dead_once() -> None:
    bench = bounded(TOPIC, max_messages=2, limit_behavior="REMOVE_OLDEST")
    bench.apply(c.Open(2, "guest", "one"), c.Open(3, "guest", "two"))
    for peer in (2, 3):
        bench.attach(peer, peer=peer, address=TOPIC, name="s", durable=True, credit=0)
    bench.send("a", "b", "c", address=TOPIC)
    assert bench.depth(TOPIC) == 4
    assert reasons(bench) == [("a", "OLDEST")]
    bench.start()
    assert bench.depth(TOPIC) == 4


def test_volatile_messages_that_a_topic_keeps_are_removed_too() -> None:
    bench = bounded(TOPIC, max_messages=2, limit_behavior="REMOVE_OLDEST")
    bench.apply(c.Open(2, "guest", "one"))
    bench.attach(2, peer=2, address=TOPIC, name="s", durable=True)
    bench.apply(c.Detach(2, 2))
    bench.send("a", "b", "c", "d", address=TOPIC, level=EXPRESS)
    assert bench.attach(2, peer=2, address=TOPIC, name="s", durable=True) == ["c", "d"]


# -- time to live -----------------------------------------------------------------------------------------------------------------------
def test_a_message_without_a_time_to_live_has_the_destinations_and_none_has_more_than_the_most() -> None:
    bench = bounded(time_to_live_ms=100, time_to_live_max_ms=200)
    bench.send("default")
    bench.send("short", expires=bench.now + 50)
    bench.send("long", expires=bench.now + 5000)
    for passed, depth in ((50, 2), (50, 1), (99, 1), (1, 0)):
        bench.now += passed
        bench.control("expire")
        bench.flush()
        assert bench.depth() == depth


def test_volatile_messages_have_it_by_their_timers() -> None:
    bench = bounded(time_to_live_max_ms=100)
    bench.send("a", level=EXPRESS)
    bench.passes(100)
    assert bench.depth() == 0


def test_a_time_to_live_counts_from_the_send_of_a_transaction_and_of_a_delayed_message() -> None:
    bench = bounded(time_to_live_ms=100)
    bench.send("later", delay=150)
    header = Header(b"", 4, ASSURED)
    bench.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Send(1, None, QUEUE, Message(header, b"within", 10))))
    bench.passes(100)
    bench.apply(c.End(1, b"t", commit=True))
    bench.passes(50)
    assert left(bench) == []


# -- producers --------------------------------------------------------------------------------------------------------------------------
def test_a_connection_beyond_the_producers_is_refused_until_another_has_closed() -> None:
    bench = bounded(max_producers=1)
    bench.send("a")
    bench.apply(c.Open(2, "guest"))
    header = Header(b"", 4, ASSURED)
    bench.apply(c.Send(2, "b", QUEUE, Message(header, b"b", 10)))
    assert bench.refused(bench.flush()) == [Refusal.TOO_MANY_PRODUCERS]
    bench.apply(c.PeerLost(1), c.Send(2, "c", QUEUE, Message(header, b"c", 10)))
    assert bench.confirmed(bench.flush()) == ["c"]


def test_of_two_lanes_the_settings_are_those_of_the_destination() -> None:
    assert Settings().limits_messages is False and Settings(max_producers=1).limits_messages
