"""What a message itself wishes for the case that it dies: to be kept or not, without its body, told of in the log; and what the broker is set to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine.destination import Settings
from broker_core.engine.effects import Death
from broker_core.engine.message import Header, Message, StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.refusal import Refusal
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, START, Bench, now_of

TOPIC = "topic/news"
PRESERVE, TRUNCATE, LOG = "JMS_SUN_PRESERVE_UNDELIVERED", "JMS_SUN_TRUNCATE_MSG_BODY", "JMS_SUN_LOG_DEAD_MESSAGES"
LEVELS = pytest.mark.parametrize("level", [ASSURED, EXPRESS])


def dies(bench: Bench, how: str, level: Any, **properties: str) -> None:
    """One message with these properties, in one of the ways that there are."""
    if how == "expires":
        bench.send("a", level=level, properties=properties, expires=bench.now + 10)
        bench.now += 10
        bench.flush()
        bench.control("expire")
        return
    bench.send("a", level=level, properties=properties)
    if not bench.engine.shard.links:
        bench.attach()
    (tag,) = bench.engine.shard.links[1].unsettled
    bench.settle(tag, outcome=Outcome.REJECTED if how == "is rejected" else Outcome.FAILED)


def buried(bench: Bench) -> list[Message]:
    bench.attach(9, address=DEAD)
    return list(bench.engine.shard.links[9].unsettled.values())


def deaths(bench: Bench) -> list[Death]:
    return [death for effects in bench.effects for death in effects.noted]


# -- to be kept, or not -----------------------------------------------------------------------------------------------------------------
@LEVELS
@pytest.mark.parametrize("how", ["expires", "is rejected", "fails"])
@pytest.mark.parametrize(
    ("use_dead", "wish", "kept"),
    [
        (True, "false", 0), (True, "FALSE", 0), (True, "true", 1), (True, "perhaps", 1),
        (False, "true", 1), (False, "True", 1), (False, "false", 0), (False, "", 0),
    ],
)
def test_a_messages_own_wish_counts_more_than_its_destinations_setting(level: Any, how: str, use_dead: bool, wish: str, kept: int) -> None:
    bench = Bench(settings=Settings(use_dead=use_dead, redelivery_max=0))
    dies(bench, how, level, **{PRESERVE: wish})
    assert (bench.depth(), bench.depth(DEAD), bench.destination().dead) == (0, kept, 1)


def test_neighbours_on_disk_that_expire_at_once_have_each_its_own_wish() -> None:
    bench = Bench(window_rows=2, page_rows=2)
    for number in range(8):
        bench.send(str(number), expires=START + 10, properties={PRESERVE: "false"} if number % 3 else {})
    bench.now += 10
    bench.flush()
    bench.control("expire")
    assert (bench.depth(), bench.destination().dead) == (0, 8)
    assert [bench.body(message) for message in buried(bench)] == ["0", "3", "6"]


@LEVELS
@pytest.mark.parametrize(("use_dead", "wish", "kept"), [(True, "false", 0), (True, "true", 1), (False, "true", 1), (False, "false", 0)])
def test_what_expires_for_several_subscriptions_of_a_topic_is_kept_once_if_it_wishes(level: Any, use_dead: bool, wish: str, kept: int) -> None:
    bench = Bench(settings=Settings(use_dead=use_dead))
    for link in (1, 2):
        bench.apply(c.Attach(1, link, TOPIC, credit=0))
    bench.flush()
    bench.send("a", level=level, address=TOPIC, expires=START + 10, properties={PRESERVE: wish})
    bench.now += 10
    bench.flush()
    bench.flush()
    assert (bench.depth(TOPIC), bench.depth(DEAD)) == (0, kept)


def test_what_dies_in_the_dead_message_queue_is_gone_whatever_it_wishes() -> None:
    bench = Bench()
    dies(bench, "is rejected", ASSURED, **{PRESERVE: "true"})
    assert len(buried(bench)) == 1
    bench.settle(1, link=9, outcome=Outcome.REJECTED)
    assert bench.depth(DEAD) == 0


def test_what_is_discarded_by_an_operator_is_not_dead_whatever_it_wishes() -> None:
    bench = Bench()
    bench.send("a", properties={PRESERVE: "true", LOG: "true"})
    bench.control("purge", QUEUE)
    assert (bench.depth(), bench.depth(DEAD), deaths(bench)) == (0, 0, [])


@pytest.mark.parametrize(("wish", "kept"), [("true", 1), ("false", 0)])
def test_what_may_not_be_sent_by_sql_is_kept_unless_it_wishes_otherwise(wish: str, kept: int) -> None:
    bench = Bench()
    header = Header(f"{PRESERVE}:{wish}\n{LOG}:true".encode(), 4, ASSURED, message_id="ID:sql-1")
    bench.database.send(c.TakeOver(bench.database.number(), DEAD, Message(header, b"a", 90), START))
    bench.apply(*now_of(bench.store.inbox(100, 1 << 20)))
    bench.flush()
    assert bench.depth(DEAD) == kept
    (death,) = deaths(bench)
    assert (death.destination, death.comment, bool(death.kept_in)) == (DEAD, Refusal.DESTINATION_RESERVED.value, bool(kept))
    if kept:
        (message,) = buried(bench)
        assert json.loads(message.header.annotations)["JMS_SUN_DMQ_UNDELIVERED_EXCEPTION"] == "DESTINATION_RESERVED"


# -- what the dead say ------------------------------------------------------------------------------------------------------------------
@LEVELS
def test_a_dead_message_says_which_broker_took_it_and_where_it_died(level: Any) -> None:
    bench = Bench()
    dies(bench, "is rejected", level)
    (message,) = buried(bench)
    told = json.loads(message.header.annotations)
    assert (told["JMS_SUN_DMQ_PRODUCING_BROKER"], told["JMS_SUN_DMQ_DEAD_BROKER"]) == ("test", "test")
    assert told["JMS_SUN_DMQ_BODY_TRUNCATED"] is False
    assert "JMS_SUN_DMQ_UNDELIVERED_EXCEPTION" not in told


# -- without its body -------------------------------------------------------------------------------------------------------------------
@LEVELS
@pytest.mark.parametrize(("setting", "wish", "cut"), [(True, "", True), (True, "false", False), (False, "", False), (False, "true", True)])
def test_the_body_is_left_out_where_broker_or_message_have_it_so(level: Any, setting: bool, wish: str, cut: bool) -> None:
    bench = Bench(dead_truncate_body=setting)
    dies(bench, "is rejected", level, **{TRUNCATE: wish})
    (message,) = buried(bench)
    assert (bench.body(message), json.loads(message.header.annotations)["JMS_SUN_DMQ_BODY_TRUNCATED"]) == ("" if cut else "a", cut)
    assert message.header.octets == f"{TRUNCATE}:{wish}".encode()
    assert bench.destination(DEAD).octets == message.size == (len(message.header.octets) if cut else 10)


def test_the_large_body_of_a_volatile_message_goes_when_it_is_left_out() -> None:
    bench = Bench(dead_truncate_body=True)
    bench.apply(c.Send(1, None, QUEUE, Message(Header(b"h:1", 4, EXPRESS), StoredBody(77, 500), 503)))
    bench.flush()
    bench.attach()
    bench.settle(1, outcome=Outcome.REJECTED)
    assert [body for effects in bench.effects for body in effects.discarded] == [77]
    (message,) = buried(bench)
    assert (message.body, message.size) == (b"", 3)


# -- the log ----------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("setting", "wish", "told"), [(True, "", True), (True, "false", False), (False, "", False), (False, "true", True)])
@pytest.mark.parametrize("use_dead", [True, False])
def test_a_death_is_told_where_broker_or_message_have_it_so(setting: bool, wish: str, told: bool, use_dead: bool) -> None:
    bench = Bench(dead_log=setting, settings=Settings(use_dead=use_dead))
    dies(bench, "is rejected", BEST_EFFORT, **{LOG: wish})
    expected = Death(f"ID:test-{(1 << 24) + 1}", QUEUE, "UNDELIVERABLE", "the consumer rejected the message", DEAD if use_dead else "")
    assert deaths(bench) == ([expected] if told else [])


def test_one_flush_tells_of_a_hundred_deaths_and_counts_the_others() -> None:
    bench = Bench(dead_log=True)
    bench.send(*map(str, range(130)), level=EXPRESS, expires=START + 10)
    bench.now += 10
    bench.flush()
    assert [(len(effects.noted), effects.noted_more) for effects in bench.effects if effects.noted] == [(100, 30)]


def test_what_expires_for_several_subscriptions_is_told_of_once() -> None:
    bench = Bench(dead_log=True, settings=Settings(use_dead=False))
    for link in (1, 2):
        bench.apply(c.Attach(1, link, TOPIC, credit=0))
    bench.flush()
    bench.send("a", level=EXPRESS, address=TOPIC, expires=START + 10)
    bench.now += 10
    bench.flush()
    bench.flush()
    assert [death.kept_in for death in deaths(bench)] == [""]
