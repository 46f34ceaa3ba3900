"""Aliases: names that stand for other destinations."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import LEVEL_NAMES, Header, Message, Reliability
from broker_core.engine.outputs import Refused
from broker_core.engine.refusal import Refusal
from tests.engine.rig import ASSURED, EXPRESS, QUEUE, RELIABLE, Bench

ALIAS = "queue/alias"
OTHER = "queue/other"
ALL = list(Reliability)


def aliased(target: str = QUEUE, address: str = ALIAS, bench: Bench | None = None, **settings) -> Bench:
    bench = bench or Bench()
    assert "refusal" not in bench.control("create_alias", address, target=target, **settings)
    return bench


def send(bench: Bench, level: Reliability, *, stated: bool = True, address: str = ALIAS, transaction: bytes = b"") -> list:
    message = Message(Header(b"", reliability=level, stated=stated), b"x", 1)
    command = c.Send(1, None if transaction else "r", address, message)
    bench.apply(c.Transacted(1, transaction, command, "r") if transaction else command)
    return bench.flush()


def arrived(bench: Bench) -> list[Reliability]:
    """What consumers of the target get."""
    bench.apply(c.Attach(1, 9, QUEUE, credit=100))
    return [Reliability(message.header.reliability) for output in bench.flush() for message in getattr(output, "messages", ())]


def refusals(outputs: list) -> list[tuple[Refusal, str]]:
    return [(output.refusal, output.detail) for output in outputs if isinstance(output, Refused)]


# -- what must not happen -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("address", "settings", "refusal", "detail"),
    [
        ("queue/mq.sys.x", {"target": QUEUE}, "INVALID_DESTINATION", "queue/mq.sys.x"),
        ("temp-queue/s.x", {"target": QUEUE}, "INVALID_DESTINATION", "temp-queue/s.x"),
        (OTHER, {"target": QUEUE}, "DESTINATION_EXISTS", OTHER),
        (ALIAS, {}, "INVALID_SETTING", "name the target"),
        (ALIAS, {"target": "queue/"}, "INVALID_SETTING", "target must be the address of a queue or topic, queue/<name> or topic/<name>"),
        (ALIAS, {"target": "queue/mq.sys.dmq"}, "INVALID_SETTING", "which is not the broker's own"),
        (ALIAS, {"target": "temp-queue/s.x"}, "INVALID_SETTING", "target must be the address"),
        (ALIAS, {"target": 7}, "INVALID_SETTING", "target must be the address"),
        (ALIAS, {"target": "topic/t"}, "INVALID_SETTING", "an alias of a queue is a queue's name, that of a topic a topic's"),
        (ALIAS, {"target": QUEUE, "colour": "red"}, "INVALID_SETTING", "colour is not an alias's"),
        (ALIAS, {"target": QUEUE, "default_reliability": "none"}, "INVALID_SETTING", "must be one of inherit, best-effort"),
        (ALIAS, {"target": QUEUE, "reliability_override": 1}, "INVALID_SETTING", "must be true or false"),
        (ALIAS, {"target": QUEUE, "reliability_override": False}, "INVALID_SETTING", "name one of the five levels"),
        (
            ALIAS, {"target": QUEUE, "default_reliability": "assured", "maximum_reliability": "express"},
            "INVALID_SETTING", "the default_reliability assured is more than the maximum_reliability express",
        ),
        (ALIAS, {"target": ALIAS}, "INVALID_SETTING", "queue/alias would stand for itself, in a circle: queue/alias -> queue/alias"),
    ],
)  # fmt: skip
def test_what_can_be_no_alias_is_refused_with_the_reason(address, settings, refusal, detail) -> None:
    bench = Bench()
    bench.send("x", address=OTHER)
    answer = bench.control("create_alias", address, **settings)
    assert answer["refusal"] == refusal and detail in answer["detail"]
    assert bench.engine.shard.aliases == {}


def test_a_circle_of_any_length_is_refused_when_it_would_be_closed() -> None:
    bench = aliased("queue/2", "queue/1")
    aliased("queue/3", "queue/2", bench)
    assert "in a circle" in bench.control("create_alias", "queue/3", target="queue/1")["detail"]
    aliased(QUEUE, "queue/3", bench)
    assert "in a circle" in bench.control("update_alias", "queue/3", target="queue/1")["detail"]
    assert bench.confirmed(bench.send("a", address="queue/1")) == ["a"]
    assert bench.attach() == ["a"]


def test_a_chain_may_have_eight_links_and_no_more() -> None:
    bench = Bench()
    for number in range(8, 0, -1):
        aliased(f"queue/{number + 1}", f"queue/{number}", bench)
    assert bench.control("create_alias", "queue/0", target="queue/1")["detail"] == "queue/0 would stand for others further than 8 times"
    assert "further than" in bench.control("create_alias", "queue/9", target="queue/10")["detail"]


def test_there_are_as_many_as_there_may_be() -> None:
    bench = aliased(bench=Bench(aliases_max=1))
    assert bench.control("create_alias", "queue/second", target=QUEUE)["refusal"] == "TOO_MANY_DESTINATIONS"
    assert "refusal" not in bench.control("update_alias", ALIAS, target=OTHER)


def test_a_name_is_an_alias_or_a_destination() -> None:
    bench = aliased()
    assert bench.control("create", ALIAS)["detail"] == "queue/alias is an alias of queue/orders"
    assert bench.control("create_alias", ALIAS, target=OTHER)["refusal"] == "DESTINATION_EXISTS"
    for verb in ("purge", "pause", "destroy", "update"):
        answer = bench.control(verb, ALIAS)
        assert (answer["refusal"], answer["detail"]) == ("NO_SUCH_DESTINATION", "queue/alias is an alias of queue/orders")
    for verb in ("update_alias", "delete_alias"):
        assert bench.control(verb, OTHER)["detail"] == "queue/other is no alias"


@pytest.mark.parametrize("maximum", ALL[:-1])
def test_an_alias_has_a_maximum_of_its_own_beside_its_targets(maximum) -> None:
    bench = aliased(maximum_reliability=LEVEL_NAMES[maximum])
    for level in ALL:
        sentence = f"{ALIAS} takes at most {LEVEL_NAMES[maximum]}, the message asks for {LEVEL_NAMES[level]}"
        assert refusals(send(bench, level)) == ([(Refusal.RELIABILITY_EXCEEDED, sentence)] if level > maximum else [])
    assert refusals(send(bench, ASSURED, address=QUEUE)) == [], "it is the alias's alone"
    bench.control("update", QUEUE, maximum_reliability="best-effort")
    assert refusals(send(bench, EXPRESS))[0][0] is Refusal.RELIABILITY_EXCEEDED


def test_without_a_target_that_is_there_or_may_be_made_nothing_is_sent_or_consumed() -> None:
    bench = aliased(bench=Bench(auto_create=False))
    assert refusals(send(bench, EXPRESS)) == [(Refusal.NO_SUCH_DESTINATION, QUEUE)]
    bench.apply(c.Attach(1, 9, ALIAS, token="a", credit=1))
    assert refusals(bench.flush()) == [(Refusal.NO_SUCH_DESTINATION, QUEUE)]


def test_a_send_through_an_alias_that_asks_for_too_much_has_its_transaction_refused() -> None:
    bench = aliased(maximum_reliability="express")
    bench.apply(c.Begin(1, b"t"))
    send(bench, EXPRESS, transaction=b"t")
    assert refusals(send(bench, ASSURED, transaction=b"t"))[0][0] is Refusal.RELIABILITY_EXCEEDED
    bench.apply(c.End(1, b"t", True, "commit"))
    assert refusals(bench.flush())[0][0] is Refusal.RELIABILITY_EXCEEDED
    assert QUEUE not in bench.engine.shard.destinations


# -- what must --------------------------------------------------------------------------------------------------------------------------
def test_sends_and_consumers_through_the_alias_meet_those_of_the_target() -> None:
    bench = aliased()
    bench.send("a", address=ALIAS)
    bench.send("b", address=QUEUE)
    assert bench.browse(2, address=ALIAS) == ["a", "b"]
    assert bench.attach(address=ALIAS) == ["a", "b"]
    bench.settle(1, 2)
    assert (bench.depth(), ALIAS in bench.engine.shard.destinations) == (0, False)


def test_subscriptions_of_a_topic_through_its_alias_are_the_topics() -> None:
    bench = aliased("topic/prices", "topic/alias")
    bench.apply(c.Attach(1, 1, "topic/alias", credit=10, name="d", durable=True, shared=True))
    bench.flush()
    assert bench.bodies(bench.send("a", address="topic/prices")) == ["a"]
    bench.apply(c.Detach(1, 1))
    bench.send("b", address="topic/alias")
    bench.apply(c.Attach(1, 2, "topic/prices", credit=10, name="d", durable=True, shared=True))
    assert "b" in bench.bodies(bench.flush())


def test_an_alias_is_durable_and_so_is_its_end() -> None:
    bench = aliased(maximum_reliability="express")
    bench.start()
    assert refusals(send(bench, ASSURED))[0][0] is Refusal.RELIABILITY_EXCEEDED
    bench.control("update_alias", ALIAS, maximum_reliability="inherit", target=OTHER)
    bench.start()
    assert bench.confirmed(bench.send("a", address=ALIAS)) == ["a"]
    assert bench.attach(address=OTHER) == ["a"]
    assert bench.control("delete_alias", ALIAS) == {"target": OTHER}
    bench.start()
    bench.send("b", address=ALIAS)
    assert ALIAS in bench.engine.shard.destinations, "it is a name like others again"


@pytest.mark.parametrize("asked", ALL)
def test_an_alias_inherits_what_its_target_makes_of_levels(asked) -> None:
    bench = aliased()
    bench.control("create", QUEUE, default_reliability="reliable", reliability_override=False)
    send(bench, asked)
    assert arrived(bench) == [RELIABLE]


@pytest.mark.parametrize("default", ALL)
@pytest.mark.parametrize("level", ALL)
def test_an_alias_with_a_default_gives_it_to_those_who_leave_it_to_the_destination_whatever_the_targets(default, level) -> None:
    bench = aliased(default_reliability=LEVEL_NAMES[default])
    bench.control("create", QUEUE, default_reliability=LEVEL_NAMES[level])
    send(bench, EXPRESS, stated=False)
    send(bench, level)
    assert sorted(arrived(bench)) == sorted([default, level])


def test_an_alias_may_reset_what_comes_through_it_alone() -> None:
    bench = aliased(default_reliability="express", reliability_override=False)
    send(bench, ASSURED)
    send(bench, ASSURED, address=QUEUE)
    assert sorted(arrived(bench)) == [EXPRESS, ASSURED]


def test_a_transaction_goes_where_the_alias_led_when_each_part_was_sent() -> None:
    bench = aliased()
    bench.apply(c.Begin(1, b"t"))
    send(bench, ASSURED, transaction=b"t")
    bench.control("update_alias", ALIAS, target=OTHER)
    send(bench, ASSURED, transaction=b"t")
    bench.apply(c.End(1, b"t", True, "commit"))
    bench.flush()
    assert (bench.depth(QUEUE), bench.depth(OTHER)) == (1, 1)


def test_a_name_that_becomes_an_alias_before_the_commit_is_followed() -> None:
    bench = Bench()
    bench.apply(c.Begin(1, b"t"))
    send(bench, ASSURED, transaction=b"t")
    aliased(bench=bench, default_reliability="express", reliability_override=False)
    bench.apply(c.End(1, b"t", True, "commit"))
    bench.flush()
    assert (arrived(bench), ALIAS in bench.engine.shard.destinations) == ([EXPRESS], False)


def test_who_has_persistent_messages_lost_is_warned() -> None:
    answer = Bench().control("create_alias", ALIAS, target=QUEUE, default_reliability="express", reliability_override=False)
    assert answer == {
        "address": ALIAS, "target": QUEUE, "default_reliability": "express", "maximum_reliability": "inherit", "reliability_override": False,
        "warnings": ["persistent messages get level express here: they are lost when the broker stops"],
    }  # fmt: skip
