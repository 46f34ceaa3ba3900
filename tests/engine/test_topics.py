"""Topics: who gets what, what is kept for whom, and what a restart leaves (checklist items 40 to 46, 69, 70, 91 to 110)."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import VOLATILE, Encoding, Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS
from tests.engine.topic_rig import TOPIC, bench, durable, plain, publish, restart, rows


# -- who gets what ----------------------------------------------------------------------------------------------------------------------
def test_every_subscription_gets_a_copy_and_the_message_is_stored_once() -> None:
    b = bench()
    plain(b, 1)
    durable(b, 2)
    durable(b, 3, peer=3)
    assert publish(b, "m") == ["m", "m", "m"]
    assert rows(b) == 1


def test_what_is_published_to_nobody_is_confirmed_and_gone() -> None:
    b = bench()
    b.apply(c.Send(1, "receipt", TOPIC, Message(Header(b"", 4, ASSURED, 0, Encoding.STOMP), b"m", 10)))
    assert b.confirmed(b.flush()) == ["receipt"]
    assert b.depth(TOPIC) == 0
    assert rows(b) == 0
    assert plain(b) == []


def test_a_subscriber_that_comes_later_gets_nothing_of_before() -> None:
    b = bench()
    durable(b, 1)
    publish(b, "before")
    assert plain(b, 2) == []
    assert durable(b, 3, peer=3) == []
    assert publish(b, "after") == ["after"] * 3


def test_an_acknowledgement_ends_the_message_for_its_own_subscription_only() -> None:
    b = bench()
    durable(b, 1)
    durable(b, 2, peer=3)
    publish(b, "m")
    b.settle(1, link=1, peer=2)
    assert b.depth(TOPIC) == 1
    b.settle(1, link=2, peer=3)
    assert b.depth(TOPIC) == 0
    assert b.destination(TOPIC).octets == 0


def test_a_failure_in_one_subscription_does_not_show_in_another() -> None:
    b = bench()
    durable(b, 1)
    durable(b, 2, peer=3, credit=0)
    publish(b, "m")
    b.settle(1, link=1, peer=2, outcome=Outcome.FAILED)
    b.apply(c.Grant(2, 10))
    (message,) = b.delivered(b.flush())
    assert (message.redelivered, message.failures) == (False, 0)


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_a_body_is_there_for_the_last_of_many_subscriptions(level) -> None:
    b = bench()
    for link in range(1, 6):
        plain(b, link)
    durable(b, 6, credit=0)
    assert publish(b, "m", level=level) == ["m"] * 5
    b.apply(c.Grant(6, 1))
    assert b.bodies(b.flush()) == ["m"]


# -- the matrix of item 109 -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("level", "kept"), [(ASSURED, ["m"]), (EXPRESS, [])])
def test_what_was_kept_for_an_inactive_durable_subscription_survives_a_restart_if_it_is_persistent(level, kept) -> None:
    b = bench()
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    publish(b, "m", level=level)
    assert b.depth(TOPIC) == 1
    restart(b)
    assert durable(b, 1) == kept


@pytest.mark.parametrize("level", [ASSURED, EXPRESS, BEST_EFFORT])
def test_an_inactive_durable_subscription_gets_what_was_sent_meanwhile_if_the_broker_stays_up(level) -> None:
    b = bench()
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    publish(b, "m", level=level)
    assert durable(b, 1) == ["m"]


def test_a_persistent_message_for_volatile_subscriptions_only_is_never_written() -> None:
    b = bench()
    plain(b, 1)
    assert publish(b, "m") == ["m"]
    assert rows(b) == 0
    restart(b)
    assert plain(b, 1) == []


def test_what_a_volatile_subscription_holds_of_stored_messages_ends_with_it() -> None:
    b = bench()
    durable(b, 1)
    plain(b, 2)
    publish(b, "m")
    b.apply(c.Detach(1, 2))
    b.flush()
    assert b.depth(TOPIC) == 1
    assert len(b.destination(TOPIC).subscriptions) == 1
    b.settle(1, link=1, peer=2)
    assert b.destination(TOPIC).octets == 0


def test_delivered_and_not_acknowledged_comes_back_flagged_after_a_restart() -> None:
    b = bench()
    durable(b, 1)
    publish(b, "m")
    restart(b)
    b.apply(c.Attach(2, 1, TOPIC, credit=10, name="s", durable=True))
    (message,) = b.delivered(b.flush())
    assert message.redelivered


def test_what_was_acknowledged_before_a_restart_stays_acknowledged_for_each() -> None:
    b = bench()
    durable(b, 1)
    durable(b, 2, peer=3)
    publish(b, "a", "b", "c")
    b.settle(1, 3, link=1, peer=2)
    b.settle(1, 2, link=2, peer=3)
    restart(b)
    assert durable(b, 1) == ["b"]
    assert durable(b, 2, peer=3) == ["c"]


# -- names, clients, sharing --------------------------------------------------------------------------------------------------------------
def test_the_same_name_with_another_client_is_another_subscription() -> None:
    b = bench()
    durable(b, 1)
    durable(b, 2, peer=3)
    assert len(b.destination(TOPIC).subscriptions) == 2


def test_a_durable_subscription_that_is_not_shared_has_one_consumer() -> None:
    b = bench()
    durable(b, 1)
    b.apply(c.Attach(2, 2, TOPIC, credit=1, name="s", durable=True))
    assert b.refused(b.flush()) == [Refusal.SUBSCRIPTION_IN_USE]


def test_without_a_client_identifier_there_is_no_durable_subscription_of_ones_own() -> None:
    b = bench()
    b.apply(c.Attach(1, 1, TOPIC, credit=1, name="s", durable=True))
    assert b.refused(b.flush()) == [Refusal.CLIENT_ID_REQUIRED]


def test_consumers_of_a_shared_subscription_share_its_messages() -> None:
    b = bench()
    durable(b, 1, shared=True)
    durable(b, 2, shared=True)
    assert sorted(publish(b, "a", "b", "c", "d")) == ["a", "b", "c", "d"]
    held = [len(link.unsettled) for link in b.engine.shard.links.values()]
    assert held == [2, 2]


def test_a_shared_volatile_subscription_ends_with_its_last_consumer() -> None:
    b = bench()
    plain(b, 1, name="v", shared=True)
    plain(b, 2, name="v", shared=True)
    b.apply(c.Detach(1, 1))
    assert publish(b, "m") == ["m"]
    b.apply(c.Detach(1, 2))
    b.flush()
    assert b.destination(TOPIC).subscriptions == []


def test_unsubscribing_discards_what_was_kept_and_never_into_the_dead_message_queue() -> None:
    b = bench()
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    publish(b, "m")
    b.apply(c.Unsubscribe(2, "s", "done"))
    assert b.confirmed(b.flush()) == ["done"]
    assert (b.depth(TOPIC), b.destination(TOPIC).octets, b.depth(DEAD)) == (0, 0, 0)
    restart(b)
    assert b.destination(TOPIC).subscriptions == []
    assert durable(b, 1) == []


@pytest.mark.parametrize(("active", "refusal"), [(True, Refusal.SUBSCRIPTION_IN_USE), (None, Refusal.NO_SUCH_SUBSCRIPTION)])
def test_unsubscribing_from_what_is_in_use_or_not_there_is_refused(active, refusal) -> None:
    b = bench()
    if active:
        durable(b, 1)
    b.apply(c.Unsubscribe(2, "s", "done"))
    assert b.refused(b.flush()) == [refusal]


def test_a_subscription_defined_anew_starts_afresh() -> None:
    b = bench()
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    publish(b, "m")
    assert durable(b, 1, wanted=Filter(compile_selector("a = 1"))) == []
    assert b.depth(TOPIC) == 0


# -- selectors, no-local --------------------------------------------------------------------------------------------------------------------
HIGH = Filter(compile_selector("JMSPriority > 5"))


def test_a_selector_lets_through_what_matches_and_the_rest_is_over_for_it() -> None:
    b = bench()
    durable(b, 1, wanted=HIGH)
    assert publish(b, "low", priority=3) == []
    assert publish(b, "high", priority=7) == ["high"]
    assert b.depth(TOPIC) == 1


def test_what_no_durable_subscription_wants_is_not_stored() -> None:
    b = bench()
    durable(b, 1, wanted=HIGH)
    plain(b, 2)
    assert publish(b, "low", priority=3) == ["low"]
    assert rows(b) == 0


def test_an_inactive_selective_subscription_finds_only_its_own_after_a_restart() -> None:
    b = bench()
    durable(b, 1, wanted=HIGH)
    durable(b, 2, peer=3)
    b.apply(c.Detach(2, 1))
    for body, priority in (("a", 3), ("b", 7), ("c", 5), ("d", 7)):
        publish(b, body, priority=priority)
    b.settle(1, 2, 3, 4, link=2, peer=3)
    assert b.depth(TOPIC) == 2
    restart(b)
    assert b.depth(TOPIC) == 2
    assert durable(b, 1, wanted=HIGH) == ["b", "d"]


def test_no_local_leaves_out_what_its_own_client_sent() -> None:
    b = bench()
    durable(b, 1, wanted=Filter(sender="two"))
    mine = Header(b"", 4, ASSURED, 0, Encoding.STOMP, client_id="two")
    b.apply(c.Send(2, None, TOPIC, Message(mine, b"mine", 10)))
    assert b.bodies(b.flush()) == []
    assert publish(b, "another's") == ["another's"]


# -- paging, expiry, space ---------------------------------------------------------------------------------------------------------------
def test_a_slow_subscription_reads_from_disk_and_slows_nobody() -> None:
    b = bench(page_rows=4, window_rows=4, segment_rows=16)
    durable(b, 1)
    durable(b, 2, peer=3, credit=0, replenish=False)
    bodies = [f"m{number}" for number in range(50)]
    got = []
    for body in bodies:
        got += publish(b, body)
        b.settle(upto=len(got), link=1, peer=2)
    assert got == bodies
    late: list[str] = []
    while len(late) < 50:
        b.apply(c.Grant(2, 7))
        late += b.bodies(b.flush())
        b.settle(upto=len(late), link=2, peer=3)
    assert late == bodies
    assert b.destination(TOPIC).octets == 0


def test_a_segment_stays_until_the_last_subscription_is_done_with_it() -> None:
    b = bench(segment_rows=4)
    durable(b, 1)
    durable(b, 2, peer=3)
    publish(b, *"abcdefgh")
    b.settle(upto=8, link=1, peer=2)
    b.flush(report=True)
    assert rows(b) == 8
    b.settle(upto=8, link=2, peer=3)
    for _ in range(4):
        b.flush(report=True)
    assert rows(b) == 0


def test_volatile_messages_of_an_inactive_subscription_spill_once_and_come_back() -> None:
    b = bench(memory_octets=200)
    durable(b, 1)
    durable(b, 2, peer=3)
    b.apply(c.Detach(2, 1), c.Detach(3, 2))
    bodies = [f"m{number}" for number in range(40)]
    publish(b, *bodies, level=EXPRESS)
    got: list[str] = []
    got += durable(b, 1, credit=100)
    assert got == bodies
    assert durable(b, 2, peer=3, credit=100) == bodies


def test_what_expired_before_it_came_is_over_for_inactive_subscriptions_too() -> None:
    b = bench()
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    publish(b, "m", expires=b.now - 1)
    b.flush()
    assert (b.depth(TOPIC), b.depth(DEAD)) == (0, 1)


def test_what_expired_for_a_volatile_subscription_before_a_crash_is_dead_once_after_it() -> None:
    b = bench()
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    plain(b, 2, credit=0)
    publish(b, "m", expires=b.now + 100)
    b.now += 200
    b.apply(c.Grant(2, 1))
    assert b.bodies(b.flush()) == []
    assert b.depth(DEAD) == 0
    restart(b)
    assert durable(b, 1) == []
    assert b.depth(DEAD) == 1


def test_a_message_that_expires_for_many_is_dead_once() -> None:
    b = bench()
    durable(b, 1, credit=0)
    durable(b, 2, peer=3, credit=0)
    publish(b, "m", expires=b.now + 100)
    b.passes(200)
    b.control("expire")
    b.flush()
    assert b.depth(TOPIC) == 0
    assert b.depth(DEAD) == 1


def test_a_message_that_fails_too_often_is_dead_for_its_subscription() -> None:
    b = bench()
    b.control("create", TOPIC, redelivery_max=0, redelivery_delay_ms=0)
    durable(b, 1)
    durable(b, 2, peer=3)
    publish(b, "m")
    b.settle(1, link=1, peer=2, outcome=Outcome.FAILED)
    assert (b.depth(TOPIC), b.depth(DEAD)) == (1, 1)


def test_destroying_a_topic_ends_its_subscriptions() -> None:
    b = bench()
    durable(b, 1)
    publish(b, "m")
    b.control("destroy", TOPIC)
    assert b.engine.shard.named == {}
    restart(b)
    assert TOPIC not in b.engine.shard.destinations


def test_a_topic_with_a_durable_subscription_is_not_reaped() -> None:
    b = bench()
    durable(b, 1)
    b.apply(c.Detach(2, 1))
    b.passes(10_000_000)
    b.control("reap")
    assert TOPIC in b.engine.shard.destinations
    b.apply(c.Unsubscribe(2, "s"))
    b.flush()
    b.passes(10_000_000)
    b.control("reap")
    assert TOPIC not in b.engine.shard.destinations


def test_thousands_of_inactive_subscriptions_take_nothing_of_a_stored_message() -> None:
    b = bench()
    for number in range(50):
        durable(b, 1, name=f"s{number}")
        b.apply(c.Detach(2, 1))
    durable(b, 1, name="active")
    publish(b, "m")
    destination = b.destination(TOPIC)
    assert destination.receivers == []
    assert sum(len(s.cursors[4].ready) for s in destination.subscriptions) == 0
    assert b.depth(TOPIC) == 51
    assert VOLATILE + 4 not in [cursor.index for s in destination.subscriptions for cursor in s.order]


def test_a_message_is_decoded_once_for_all_selectors_and_what_was_decoded_is_not_kept() -> None:
    b = bench()
    asked: list[Header] = []

    def decode(header: Header) -> dict[str, str]:
        asked.append(header)
        return {"n": header.octets.decode()}

    b.engine.shard.decode = decode
    for number in range(1, 100):
        plain(b, number, wanted=Filter(compile_selector(f"n = '{number}'")))
    header = Header(b"7", 4, EXPRESS, 0, Encoding.STOMP)
    for body in (b"a", b"b"):
        b.apply(c.Send(1, None, TOPIC, Message(header, body, 10)))
        assert b.bodies(b.flush()) == [body.decode()]
    assert asked == [header, header]
