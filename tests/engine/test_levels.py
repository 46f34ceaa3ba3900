"""Levels of reliability at a destination: its default, its maximum, and whether producers have a say."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import LEVEL_NAMES, VOLATILE, Header, Message, Reliability, StoredBody
from broker_core.engine.outputs import Refused
from broker_core.engine.refusal import Refusal
from tests.engine.rig import ASSURED, BEST_EFFORT, EXPRESS, QUEUE, RELIABLE, Bench

RELIABLE_NP = Reliability.RELIABLE_NONPERSISTENT
ALL = list(Reliability)


def governed(**settings) -> Bench:
    bench = Bench()
    assert "refusal" not in bench.control("create", QUEUE, **settings)
    return bench


def send(bench: Bench, level: Reliability, *, stated: bool = True, body: object = b"x", transaction: bytes = b"", delay: int = 0) -> list:
    message = Message(Header(b"a:b", reliability=level, stated=stated, delay=delay), body, 10)  # type: ignore[arg-type]
    command = c.Send(1, None if transaction else "r", QUEUE, message)
    bench.apply(c.Transacted(1, transaction, command, "r") if transaction else command)
    return bench.flush()


def level_at_arrival(bench: Bench) -> Reliability:
    """Of the only message."""
    assert len([lane for lane in bench.destination().lanes if lane is not None and lane.tail]) == 1
    bench.apply(c.Attach(1, 9, QUEUE, credit=10))
    (message,) = [message for output in bench.flush() for message in getattr(output, "messages", ())]
    assert (message.header.lane >= VOLATILE) == (message.header.reliability < RELIABLE)
    return Reliability(message.header.reliability)


def refusals(outputs: list) -> list[tuple[Refusal, str]]:
    return [(output.refusal, output.detail) for output in outputs if isinstance(output, Refused)]


# -- what must not happen --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("maximum", ALL[:-1])
def test_what_asks_for_more_than_the_maximum_is_refused_precisely(maximum) -> None:
    bench = governed(maximum_reliability=LEVEL_NAMES[maximum])
    for level in ALL:
        told = refusals(send(bench, level))
        if level > maximum:
            sentence = f"{QUEUE} takes at most {LEVEL_NAMES[maximum]}, the message asks for {LEVEL_NAMES[level]}"
            assert told == [(Refusal.RELIABILITY_EXCEEDED, sentence)]
        else:
            assert told == []
    assert bench.destination().accepted == maximum + 1


def test_a_large_body_that_is_refused_is_discarded() -> None:
    bench = governed(maximum_reliability="express")
    send(bench, ASSURED, body=StoredBody(77, 50))
    assert [body for effects in bench.effects for body in effects.discarded] == [77]


def test_a_message_within_a_transaction_that_asks_for_too_much_has_all_of_it_refused() -> None:
    bench = governed(maximum_reliability="express")
    bench.apply(c.Begin(1, b"t"))
    send(bench, EXPRESS, transaction=b"t")
    assert [refusal for refusal, _ in refusals(send(bench, ASSURED, transaction=b"t"))] == [Refusal.RELIABILITY_EXCEEDED]
    bench.apply(c.End(1, b"t", True, "commit"))
    assert [refusal for refusal, _ in refusals(bench.flush())] == [Refusal.RELIABILITY_EXCEEDED]
    assert bench.depth() == 0


@pytest.mark.parametrize("order", [(ASSURED, EXPRESS), (EXPRESS, ASSURED)])
def test_a_maximum_that_is_lowered_before_the_commit_counts_for_each_message(order) -> None:
    bench = governed()
    bench.apply(c.Begin(1, b"t"))
    for level in order:
        send(bench, level, transaction=b"t")
    bench.control("update", QUEUE, maximum_reliability="express")
    bench.apply(c.End(1, b"t", True, "commit"))
    (told,) = refusals(bench.flush())
    assert told == (Refusal.RELIABILITY_EXCEEDED, f"{QUEUE} takes at most express, the message asks for assured")
    assert bench.depth() == 0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"default_reliability": "total"}, "default_reliability must be one of none, best-effort, express, reliable-np, reliable, assured"),
        ({"maximum_reliability": "none"}, "maximum_reliability must be one of best-effort, express, reliable-np, reliable, assured"),
        ({"maximum_reliability": 3}, "maximum_reliability must be one of best-effort, express, reliable-np, reliable, assured"),
        ({"reliability_override": "no"}, "reliability_override must be true or false"),
        (
            {"reliability_override": False},
            "without reliability_override every message has the default_reliability: name one of the five levels",
        ),
        (
            {"default_reliability": "assured", "maximum_reliability": "express"},
            "the default_reliability assured is more than the maximum_reliability express",
        ),
    ],
)
def test_settings_that_are_wrong_or_contradict_one_another_are_refused(settings, sentence) -> None:
    bench = Bench()
    answer = bench.control("create", QUEUE, **settings)
    assert (answer["refusal"], answer["detail"]) == ("INVALID_SETTING", sentence)
    assert QUEUE not in bench.engine.shard.destinations


def test_an_update_must_fit_what_was_set_before() -> None:
    bench = governed(default_reliability="reliable")
    answer = bench.control("update", QUEUE, maximum_reliability="express")
    assert answer["detail"] == "the default_reliability reliable is more than the maximum_reliability express"
    assert bench.destination().settings.maximum_reliability == "assured"


# -- what must -----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", ALL)
def test_where_nothing_is_set_a_message_has_the_level_it_asks_for(level) -> None:
    bench = Bench()
    send(bench, level)
    assert bench.destination().levels is None
    assert level_at_arrival(bench) is level


@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize("default", ALL)
def test_the_default_is_for_messages_that_leave_it_to_the_destination(default, stated) -> None:
    bench = governed(default_reliability=LEVEL_NAMES[default])
    send(bench, EXPRESS, stated=stated)
    assert level_at_arrival(bench) is (EXPRESS if stated else default)


@pytest.mark.parametrize("asked", ALL)
def test_where_producers_have_no_say_every_message_is_reset_to_the_default(asked) -> None:
    bench = governed(default_reliability="reliable-np", maximum_reliability="reliable-np", reliability_override=False)
    assert refusals(send(bench, asked)) == []
    assert level_at_arrival(bench) is RELIABLE_NP


def test_who_leaves_it_to_a_destination_without_a_default_is_never_refused() -> None:
    bench = governed(maximum_reliability="best-effort")
    send(bench, ASSURED, stated=False)
    assert level_at_arrival(bench) is BEST_EFFORT


def test_consumers_are_told_the_level_that_a_message_was_given() -> None:
    bench = governed(default_reliability="reliable")
    send(bench, EXPRESS, stated=False)
    bench.start()  # from its row, too
    bench.apply(c.Attach(1, 1, QUEUE, credit=10))
    (message,) = [message for output in bench.flush() for message in getattr(output, "messages", ())]
    assert message.header.annotations == '{"reliability":"reliable"}'


def test_messages_with_the_same_header_section_share_what_is_made_of_it() -> None:
    bench = governed(default_reliability="reliable")
    header = Header(b"a:b", reliability=EXPRESS, stated=False)
    messages = [Message(header, b"x", 10) for _ in range(3)]
    bench.apply(*[c.Send(1, None, QUEUE, message) for message in messages])
    assert len({id(message.header) for message in messages}) == 1
    assert header.reliability == EXPRESS


def test_a_reset_message_survives_a_restart_as_its_new_level_does() -> None:
    for level, left in (("assured", 1), ("express", 0)):
        bench = governed(default_reliability=level, reliability_override=False)
        send(bench, ASSURED if level == "express" else EXPRESS)
        bench.start()
        assert bench.depth() == left
        assert bench.destination().levels is not None, "settings are durable"


def test_a_delayed_message_waits_with_the_level_that_it_was_given() -> None:
    bench = governed(default_reliability="express", reliability_override=False)
    send(bench, ASSURED, delay=1000)
    bench.start()
    bench.passes(2000)
    assert bench.depth() == 0, "it ended with the node"


def test_in_a_transaction_messages_are_reset_at_the_commit() -> None:
    bench = governed(default_reliability="express", reliability_override=False)
    bench.apply(c.Begin(1, b"t"))
    send(bench, ASSURED, transaction=b"t")
    bench.apply(c.End(1, b"t", True, "commit"))
    bench.flush()
    assert level_at_arrival(bench) is EXPRESS


def test_an_operator_who_has_persistent_messages_lost_is_warned() -> None:
    bench = Bench()
    answer = bench.control("create", QUEUE, default_reliability="express", reliability_override=False)
    assert answer["warnings"] == ["persistent messages get level express here: they are lost when the broker stops"]
    assert "warnings" in bench.control("update", QUEUE, redelivery_max=3)
    answer = bench.control("update", QUEUE, reliability_override=True)
    assert answer["warnings"] == ["persistent messages that are sent as-destination get level express here: they are lost when the broker stops"]
    assert "warnings" not in bench.control("update", QUEUE, default_reliability="reliable", reliability_override=False)


LEFT_TO_IT = ["persistent messages that are sent as-destination get level express here: they are lost when the broker stops"]


@pytest.mark.parametrize(
    ("settings", "warnings"),
    [
        ({"maximum_reliability": "express"}, LEFT_TO_IT),
        ({"default_reliability": "express"}, LEFT_TO_IT),
        ({"default_reliability": "best-effort", "maximum_reliability": "reliable"}, [LEFT_TO_IT[0].replace("express", "best-effort")]),
        ({"maximum_reliability": "reliable"}, []),
        ({"default_reliability": "reliable", "maximum_reliability": "reliable"}, []),
        ({}, []),
    ],
)
@pytest.mark.parametrize("verb", ["create", "create_alias", "set_policy"])
def test_a_warning_says_of_which_persistent_messages_it_is(verb: str, settings: dict[str, str], warnings: list[str]) -> None:
    address, more = {"create": (QUEUE, {}), "create_alias": ("queue/other", {"target": QUEUE}), "set_policy": ("queue/o.*", {})}[verb]
    bench = Bench()
    answer = bench.control(verb, address, **settings, **more)
    assert answer.get("warnings", []) == warnings
    if verb == "create" and warnings:
        send(bench, ASSURED, stated=False)
        assert level_at_arrival(bench) < RELIABLE


def test_who_sets_a_policy_that_has_persistent_messages_lost_is_warned() -> None:
    answer = Bench().control("set_policy", "queue/o.*", default_reliability="express", reliability_override=False)
    assert answer == {"policies": 1, "warnings": ["persistent messages get level express here: they are lost when the broker stops"]}


# -- transactions (item 122) ---------------------------------------------------------------------------------------------------------------
def test_a_best_effort_message_that_finds_no_room_is_lost_alone_and_the_rest_of_its_transaction_is_done() -> None:
    bench = Bench(memory_octets=4000)
    bench.send("fills", address="queue/other", level=EXPRESS, size=2990)
    bench.apply(c.Begin(1, b"t"))
    for level in ALL:
        header = Header(b"", reliability=level)
        command = c.Send(1, None, QUEUE, Message(header, LEVEL_NAMES[level].encode(), 1 if level is not BEST_EFFORT else 15))
        bench.apply(c.Transacted(1, b"t", command, level))
    bench.apply(c.End(1, b"t", True, "commit"))
    assert refusals(bench.flush()) == []
    assert sorted(bench.attach()) == sorted(LEVEL_NAMES[1:])


def test_a_rollback_takes_back_what_was_sent_and_consumed_whatever_its_level() -> None:
    bench = Bench()
    for level in ALL:
        bench.send(LEVEL_NAMES[level], level=level)
    assert len(bench.attach()) == 5
    bench.apply(c.Begin(1, b"t"))
    bench.apply(c.Transacted(1, b"t", c.Settle(1, 1, [1, 2, 3, 4, 5])))
    for level in ALL:
        bench.apply(c.Transacted(1, b"t", c.Send(1, None, "queue/other", Message(Header(b"", reliability=level), b"x", 1))))
    bench.apply(c.End(1, b"t", False, "abort"))
    assert sorted(bench.bodies(bench.flush())) == sorted(LEVEL_NAMES), "delivered again"
    assert "queue/other" not in bench.engine.shard.destinations
