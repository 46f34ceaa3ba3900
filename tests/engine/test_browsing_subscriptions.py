"""Browsers see what a durable subscription of a topic has collected, wherever that waits, and change nothing of it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine.access import ANYBODY, BROWSE, OPERATIONS, Rule
from broker_core.engine.message import Encoding, Header, Message, Reliability, StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Browsed, Delivered, Detached
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine import wildcards
from tests.engine.rig import ASSURED, BEST_EFFORT, EXPRESS, Bench
from tests.engine.topic_rig import TOPIC, bench, durable, plain, publish, restart

LEVELS = pytest.mark.parametrize("level", [ASSURED, EXPRESS])
END = Browsed(2, 9)
FLUSHES_MAX = 100
"""Of one look."""


def names(count: int) -> list[str]:
    return [f"m{number}" for number in range(count)]


def asleep(b: Bench, **how: Any) -> None:
    """The subscription is there, and nobody consumes from it."""
    durable(b, 1, **how)
    b.apply(c.Detach(how.get("peer", 2), 1))
    b.flush()


def look(b: Bench, *, peer: int = 2, name: str = "s", **how: Any) -> list[str]:
    b.apply(c.Browse(**{"peer": peer, "link": 9, "address": TOPIC, "name": name} | how))
    shown: list[str] = []
    for _ in range(FLUSHES_MAX):
        shown += b.bodies(one for one in b.flush() if isinstance(one, Delivered) and one.link == 9)
        if Browsed(peer, 9) in b.outputs:
            break
    assert Browsed(peer, 9) in b.outputs, "it comes to an end"
    b.apply(c.Detach(peer, 9))
    b.outputs.clear()
    b.flush()
    return shown


# -- what is shown ----------------------------------------------------------------------------------------------------------------------
@LEVELS
@pytest.mark.parametrize("memory", [100 << 20, 300], ids=["memory", "disk"])
def test_what_nobody_consumes_at_present_is_shown_page_by_page_wherever_it_waits(level: Reliability, memory: int) -> None:
    b = bench(page_rows=3, memory_octets=memory, page_octets=64, segment_rows=5)
    asleep(b)
    publish(b, *names(20), level=level)
    assert look(b) == names(20)
    assert look(b) == names(20), "nothing was consumed"


@LEVELS
def test_what_a_consumer_holds_or_gave_back_is_shown_in_its_place_and_what_it_has_settled_is_not(level: Reliability) -> None:
    b = bench(page_rows=2, window_rows=4)
    durable(b, 1, credit=4)
    publish(b, *names(8), level=level)
    b.settle(2, link=1, peer=2)
    assert look(b) == [name for name in names(8) if name != "m1"]
    b.apply(c.Detach(2, 1))
    b.flush()
    assert look(b) == [name for name in names(8) if name != "m1"]


def test_what_another_subscription_has_settled_is_shown_and_what_it_has_not_is_none_of_this_one() -> None:
    b = bench(page_rows=2)
    durable(b, 1)
    durable(b, 2, peer=3)
    publish(b, *names(4))
    b.settle(link=2, peer=3, upto=4)
    b.settle(2, link=1, peer=2)
    assert look(b) == ["m0", "m2", "m3"]
    assert look(b, peer=3) == []


@LEVELS
def test_what_the_filter_of_the_subscription_leaves_out_is_not_shown(level: Reliability) -> None:
    b = bench()
    asleep(b, wanted=Filter(compile_selector("colour = 'red'")))
    plain(b, 5)
    for number, colour in enumerate(("red", "blue", "red")):
        b.send(f"m{number}", address=TOPIC, level=level, properties={"colour": colour})
    assert look(b) == ["m0", "m2"]
    assert look(b, wanted=Filter(compile_selector("JMSPriority > 4"))) == []


def test_messages_that_are_still_being_handed_out_are_shown_if_they_are_meant() -> None:
    b = bench(fan_out=1, page_rows=2)
    asleep(b, wanted=Filter(compile_selector("colour = 'red'")))
    for link in range(20, 30):
        plain(b, link, peer=3)
    for number, colour in enumerate(("red", "blue", "red")):
        b.apply(c.Send(1, number, TOPIC, _message(f"m{number}", colour)))
    assert look(b) == ["m0", "m2"]


def _message(body: str, colour: str, level: Reliability = ASSURED) -> Message:
    return Message(Header(f"colour:{colour}".encode(), 4, level, 0, Encoding.STOMP), body.encode(), 10)


def test_kept_and_spilled_messages_come_in_their_order() -> None:
    b = bench(page_rows=4, memory_octets=60, page_octets=1000)
    asleep(b)
    publish(b, *names(12), level=EXPRESS)
    cursor = b.cursor(address=TOPIC, lane=14)
    assert 0 < len(cursor.lane.kept) < 12, "some are in memory, the rest on disk"
    assert look(b) == names(12)


def test_best_effort_that_found_no_room_is_not_there() -> None:
    b = bench(memory_octets=60)
    asleep(b)
    publish(b, *names(12), level=BEST_EFFORT)
    kept = len(b.cursor(address=TOPIC, lane=14).lane.kept)
    assert 0 < kept < 12
    assert look(b) == names(kept)


@LEVELS
def test_a_large_body_is_shown_and_stays_for_the_subscription(level: Reliability) -> None:
    b = bench()
    asleep(b)
    publish(b, "a", level=level)
    b.apply(c.Send(1, "large", TOPIC, Message(_message("", "red", level).header, StoredBody(7, 300_000), 300_000)))
    shown = b.browse(9, peer=2, name="s", address=TOPIC)
    assert shown == ["a", "body 7"]
    b.apply(c.Settle(2, 9, [2]), c.Detach(2, 9))
    b.flush()
    assert durable(b, 1) == ["a", "body 7"]


def test_after_a_restart_stored_messages_are_shown() -> None:
    b = bench()
    asleep(b)
    publish(b, "a", "b")
    publish(b, "gone", level=EXPRESS)
    restart(b)
    assert look(b) == ["a", "b"]


def test_a_subscription_of_a_pattern_is_shown_with_all_its_topics_the_highest_priority_first() -> None:
    b = wildcards.bench(page_rows=2)
    wildcards.durable(b, 1, credit=2)
    wildcards.publish(b, wildcards.A, "a1", "a2", "a3")
    wildcards.publish(b, wildcards.B, "b1", priority=9)
    wildcards.publish(b, wildcards.B, "b2", level=EXPRESS)
    b.settle(1, link=1, peer=2)
    assert look(b, address=wildcards.PATTERN) == ["b1", "a2", "a3", "b2"]


# -- whose it is ------------------------------------------------------------------------------------------------------------------------
def test_another_connection_of_the_account_may_look_while_the_client_consumes() -> None:
    b = bench()
    durable(b, 1)
    publish(b, "a")
    assert look(b, peer=1, client_id="two") == ["a"]


def test_a_shared_subscription_of_no_client_is_found_by_its_name_alone() -> None:
    b = bench()
    b.attach(1, address=TOPIC, name="s", durable=True, shared=True, credit=0)
    publish(b, "a")
    assert look(b, peer=1) == ["a"]
    assert look(b, peer=2, client_id="") == ["a"]


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"peer": 2}, Refusal.NOT_SUPPORTED),
        ({"peer": 2, "name": "t"}, Refusal.NO_SUCH_SUBSCRIPTION),
        ({"peer": 3, "name": "s"}, Refusal.NO_SUCH_SUBSCRIPTION),
        ({"peer": 2, "name": "s", "address": "topic/other"}, Refusal.NO_SUCH_SUBSCRIPTION),
        ({"peer": 2, "name": "shared"}, Refusal.NO_SUCH_SUBSCRIPTION),
        ({"peer": 4, "name": "s", "client_id": "two"}, Refusal.SUBSCRIPTION_OF_ANOTHER),
    ],
)
def test_what_is_no_durable_subscription_of_the_account_is_refused(asked: dict[str, Any], refusal: Refusal) -> None:
    b = bench()
    b.apply(c.Open(4, "somebody"))
    durable(b, 1)
    b.attach(2, peer=2, address=TOPIC, name="shared", shared=True)
    b.apply(c.Browse(**{"link": 9, "address": TOPIC} | asked))
    assert b.refused(b.flush()) == [refusal]
    assert not b.engine.shard.browsing.browsers


def test_who_may_not_browse_the_topic_may_not_look_at_its_subscriptions() -> None:
    b = bench(page_rows=1)
    asleep(b)
    publish(b, "a", "b", "c")
    allowed = [Rule("topic/>", operation, True, ANYBODY) for operation in OPERATIONS if operation != BROWSE]
    b.apply(c.Browse(2, 9, TOPIC, name="s", credit=1))
    b.flush()
    b.apply(c.SetAccess(allowed, {}), c.Browse(2, 8, TOPIC, name="s"))
    outputs = b.flush()
    assert b.refused(outputs) == [Refusal.ACCESS_DENIED]
    assert [(one.link, one.refusal) for one in outputs if isinstance(one, Detached)] == [(9, Refusal.ACCESS_DENIED)], "what was open is closed"


# -- what it leaves ---------------------------------------------------------------------------------------------------------------------
@LEVELS
def test_a_look_moves_nothing(level: Reliability) -> None:
    b = bench(page_rows=2)
    asleep(b)
    publish(b, *names(5), level=level)
    look(b)
    assert durable(b, 1) == names(5)
    assert [message.redelivered for message in b.engine.shard.links[1].unsettled.values()] == [False] * 5
    b.settle(link=1, peer=2, upto=5)
    assert look(b) == []


@LEVELS
def test_a_look_at_a_subscription_that_ends_meanwhile_is_through(level: Reliability) -> None:
    b = bench(slow=True, page_rows=2)
    asleep(b)
    publish(b, *names(6), level=level)
    b.apply(c.Browse(2, 9, TOPIC, name="s", credit=2))
    b.flush()
    b.apply(c.Unsubscribe(2, "s"), c.Grant(2, 9, 10))
    for _ in range(4):
        b.read()
        b.flush()
    assert END in b.outputs
    b.maintain()


def test_what_expires_or_is_settled_before_the_browser_comes_by_is_left_out() -> None:
    b = bench(slow=True, page_rows=2)
    durable(b, 1)
    publish(b, *names(4))
    publish(b, "short", expires=b.now + 10)
    b.apply(c.Browse(2, 9, TOPIC, name="s"))
    b.flush()
    b.settle(3, link=1, peer=2, outcome=Outcome.ACCEPTED)
    b.now += 10
    shown = []
    while END not in b.outputs:
        b.read()
        shown += b.bodies(one for one in b.flush() if getattr(one, "link", 0) == 9)
    assert shown == ["m0", "m1", "m3"]


# -- whatever happened before -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_whatever_became_of_messages_those_not_settled_are_shown_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    b = bench(page_rows=3, window_rows=5, page_octets=80, segment_rows=7, memory_octets=chance.choice((80, 250, 10_000)), fan_out=chance.choice((1, 100)))
    durable(b, 1, credit=3)
    durable(b, 2, peer=3, credit=100)
    for link in range(3, 6):
        plain(b, link)
    expected: dict[tuple[Reliability, int], list[str]] = {}
    held: dict[int, tuple[tuple[Reliability, int], str]] = {}
    link, consumes, count = 10, True, 0

    def note(outputs: list[Any]) -> None:
        for one in outputs:
            if isinstance(one, Delivered) and (one.peer, one.link) in ((2, 1), (2, link)) and consumes:
                for tag, message in enumerate(one.messages, one.tag):
                    held[tag] = ((message.header.reliability, message.header.priority), b.body(message))

    note(b.outputs)
    for _ in range(80):
        what = chance.random()
        b.outputs.clear()
        if what < 0.5:
            level, priority = chance.choice((ASSURED, EXPRESS)), chance.choice((4, 4, 7))
            name, count = f"m{count}", count + 1
            expected.setdefault((level, priority), []).append(name)
            publish(b, name, level=level, priority=priority)
        elif what < 0.7 and held and consumes:
            tag = chance.choice(sorted(held))
            kind, name = held.pop(tag)
            if chance.random() < 0.7:
                expected[kind].remove(name)
                b.settle(tag, link=link if link > 10 else 1, peer=2)
            else:
                b.settle(tag, link=link if link > 10 else 1, peer=2, outcome=Outcome.FAILED)
        elif what < 0.8:
            if consumes:
                b.apply(c.Detach(2, link if link > 10 else 1))
                held.clear()
                b.flush()
                consumes = False
            else:
                link, consumes = link + 1, True
                b.attach(link, peer=2, address=TOPIC, name="s", durable=True, credit=3)
        note(list(b.outputs))
        if chance.random() < 0.3:
            order = sorted(expected, key=lambda kind: (-kind[1], kind[0] is EXPRESS))
            assert look(b) == [name for kind in order for name in expected[kind]], f"seed {seed}"
