"""Foreign destinations: sent to like any queue, consumed from by the node's forwarder and by nobody else."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.foreign import routes
from broker_core.engine.message import Header, Message, Reliability, StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Confirmed, Detached, Refused
from broker_core.engine.refusal import Refusal
from tests.engine.rig import ASSURED, DEAD, EXPRESS, QUEUE, Bench

NO_NAME = "foreign_link must be the name of a link: 1 to 63 letters, digits, dots, dashes and underscores, or empty"
NO_ADDRESS = "foreign_address must be an address of at most 255 octets, without control characters, or empty"
FORWARDER, ALIAS = 2, "queue/orders.alias"


def forwarded(**settings) -> Bench:
    bench = Bench()
    assert "refusal" not in bench.control("create", QUEUE, foreign_link="far", **settings)
    bench.apply(c.Open(FORWARDER, "mq.sys.foreign", forwards=True))
    return bench


def refusals(outputs: list) -> list[tuple[Refusal, str]]:
    return [(output.refusal, output.detail) for output in outputs if isinstance(output, Refused)]


def subscribe(bench: Bench, peer: int = 1, address: str = QUEUE) -> list[tuple[Refusal, str]]:
    bench.apply(c.Attach(peer, 9, address, "t", credit=10))
    return refusals(bench.flush())


def bring(bench: Bench, level: Reliability = ASSURED, body: object = b"x", size: int = 10, address: str = QUEUE) -> list:
    bench.apply(c.Send(FORWARDER, "r", address, Message(Header(b"a:b", reliability=level), body, size)))  # type: ignore[arg-type]
    return bench.flush()


# -- what must not happen --------------------------------------------------------------------------------------------------------------
def test_consumers_are_told_where_the_messages_go() -> None:
    bench = forwarded(foreign_address="/queue/there")
    assert subscribe(bench) == [(Refusal.FOREIGN_DESTINATION, f"{QUEUE} is forwarded over link far to /queue/there: consume there")]
    bench.control("create_alias", ALIAS, target=QUEUE)
    assert [refusal for refusal, _ in subscribe(bench, address=ALIAS)] == [Refusal.FOREIGN_DESTINATION]
    assert bench.destination().consumers == 0


def test_the_forwarder_consumes_from_nothing_else() -> None:
    bench = forwarded()
    bench.control("create", "queue/own")
    for address in ("queue/own", "queue/new"):
        assert subscribe(bench, FORWARDER, address) == [(Refusal.FOREIGN_DESTINATION, f"{address} is not forwarded any more")]
    assert "queue/new" not in bench.engine.shard.destinations


def test_a_queue_with_consumers_does_not_become_foreign() -> None:
    bench = Bench()
    bench.attach()
    answer = bench.control("update", QUEUE, foreign_link="far")
    assert (answer["refusal"], answer["detail"]) == (
        "DESTINATION_IN_USE", "1 consumers have it open: nobody consumes from a queue that is forwarded",
    )  # fmt: skip
    bench.apply(c.Detach(1, 1))
    assert "refusal" not in bench.control("update", QUEUE, foreign_link="far")


@pytest.mark.parametrize(
    ("address", "settings", "sentence"),
    [
        ("topic/prices", {"foreign_link": "far"}, "foreign_link is for queues: the subscriptions of a topic are its consumers"),
        (QUEUE, {"foreign_link": "no name"}, NO_NAME),
        (QUEUE, {"foreign_link": "far", "foreign_address": "a\nb"}, NO_ADDRESS),
        (QUEUE, {"foreign_link": "far", "foreign_address": "€" * 86}, NO_ADDRESS),
        (QUEUE, {"foreign_address": "/queue/a"}, "foreign_address is an address at the far end of a link: name the foreign_link, too"),
        (QUEUE, {"foreign_link": 7}, NO_NAME),
    ],
)  # fmt: skip
def test_settings_that_mean_nothing_are_refused(address: str, settings: dict, sentence: str) -> None:
    assert Bench().control("create", address, **settings)["detail"] == sentence


def test_the_dead_message_queue_is_forwarded_nowhere() -> None:
    assert Bench().control("update", DEAD, foreign_link="far")["detail"] == f"foreign_link is for clients' queues: {DEAD} is the broker's own"


def test_a_policy_makes_foreign_queues_and_consumers_do_not_make_them() -> None:
    bench = Bench()
    bench.control("set_policy", "queue/far.**", foreign_link="far")
    assert subscribe(bench, address="queue/far.orders") == [
        (Refusal.FOREIGN_DESTINATION, "queue/far.orders is forwarded over link far to /queue/far.orders: consume there"),
    ]
    bench.send("m", address="queue/far.orders")
    assert routes(bench.engine.shard) == {"queue/far.orders": ("far", "/queue/far.orders")}


# -- what it takes and gives ------------------------------------------------------------------------------------------------------------
def test_the_forwarder_takes_what_was_sent_and_others_browse_it() -> None:
    bench = forwarded()
    bench.send("a", "b")
    assert bench.browse(5) == ["a", "b"]
    assert bench.attach(9, peer=FORWARDER) == ["a", "b"]
    bench.settle(1, 2, link=9, peer=FORWARDER)
    assert bench.depth() == 0


def test_its_maximum_is_that_of_any_destination() -> None:
    bench = forwarded(maximum_reliability="express")
    bench.apply(c.Send(1, "r", QUEUE, Message(Header(b"a:b", reliability=ASSURED), b"x", 10)))
    assert [refusal for refusal, _ in refusals(bench.flush())] == [Refusal.RELIABILITY_EXCEEDED]


def test_what_the_far_broker_said_is_the_comment_of_the_dead_message() -> None:
    bench = forwarded(redelivery_max=0)
    bench.send("bad")
    bench.attach(9, peer=FORWARDER)
    bench.apply(c.Settle(FORWARDER, 9, [1], outcome=Outcome.FAILED, comment="there it was refused: too large"))
    bench.flush()
    bench.apply(c.Attach(1, 3, DEAD, credit=1))
    (dead,) = bench.delivered(bench.flush())
    assert '"delivery failed 1 times; redelivery maximum 0; there it was refused: too large"' in dead.header.annotations


def test_a_queue_that_is_forwarded_otherwise_is_taken_from_its_forwarder() -> None:
    bench = forwarded()
    bench.send("a")
    bench.attach(9, peer=FORWARDER)
    bench.control("update", QUEUE, foreign_address="/queue/another")
    assert [output.refusal for output in bench.outputs if isinstance(output, Detached)] == [Refusal.FOREIGN_DESTINATION]
    bench.apply(c.Attach(FORWARDER, 10, QUEUE, credit=10))
    (message,) = bench.delivered(bench.flush())
    assert message.redelivered


def test_a_queue_that_is_foreign_no_more_is_consumed_from() -> None:
    bench = forwarded()
    bench.send("a")
    bench.attach(9, peer=FORWARDER)
    bench.control("update", QUEUE, foreign_link="")
    assert routes(bench.engine.shard) == {}
    assert bench.attach(3) == ["a"]


def test_what_is_foreign_is_so_after_a_crash_and_not_when_it_is_destroyed() -> None:
    bench = forwarded(foreign_address="/queue/there")
    bench.send("a")
    bench.start()
    assert routes(bench.engine.shard) == {QUEUE: ("far", "/queue/there")}
    assert [refusal for refusal, _ in subscribe(bench)] == [Refusal.FOREIGN_DESTINATION]
    bench.control("destroy", QUEUE, depth=1)
    assert routes(bench.engine.shard) == {}


# -- what comes from elsewhere ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("body", [b"x", StoredBody(77, 5)])
def test_what_is_brought_and_asks_for_too_much_is_dead_and_confirmed(body: object) -> None:
    bench = forwarded()
    bench.control("create", "queue/modest", maximum_reliability="express")
    outputs = bring(bench, address="queue/modest", body=body)
    assert [output.token for output in outputs if isinstance(output, Confirmed)] == ["r"] and refusals(outputs) == []
    assert bench.depth("queue/modest") == 0
    bench.apply(c.Attach(1, 3, DEAD, credit=1))
    (dead,) = bench.delivered(bench.flush())
    assert '"JMS_SUN_DMQ_UNDELIVERED_EXCEPTION":"RELIABILITY_EXCEEDED"' in dead.header.annotations
    assert "queue/modest takes at most express, the message asks for assured" in dead.header.annotations
    assert dead.header.message_id.startswith("ID:test-")


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_what_is_brought_and_too_large_is_dead_whatever_its_level(level: Reliability) -> None:
    bench = forwarded()
    bench.control("create", "queue/small", max_message_octets=50)
    outputs = bring(bench, level, size=51, address="queue/small")
    assert [output.token for output in outputs if isinstance(output, Confirmed)] == ["r"]
    assert (bench.depth("queue/small"), bench.depth(DEAD)) == (0, 1)


def test_what_is_brought_to_a_paused_destination_is_refused_as_it_may_be_taken_later() -> None:
    bench = forwarded()
    bench.control("create", "queue/paused")
    bench.control("pause", "queue/paused", direction="PRODUCERS")
    assert [refusal for refusal, _ in refusals(bring(bench, address="queue/paused"))] == [Refusal.DESTINATION_PAUSED]
    assert bench.depth(DEAD) == 0


def test_others_hear_what_is_refused_and_have_nothing_dead() -> None:
    bench = forwarded()
    bench.control("create", "queue/small", max_message_octets=50)
    bench.apply(c.Send(1, "r", "queue/small", Message(Header(b"a:b", reliability=ASSURED), b"x", 51)))
    assert [refusal for refusal, _ in refusals(bench.flush())] == [Refusal.MESSAGE_TOO_LARGE]
    assert bench.depth(DEAD) == 0
