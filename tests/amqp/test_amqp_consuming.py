"""Links on which clients receive (AMQP 1.0 sections 2.6 and 3.5, the JMS mapping)."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.amqp.frames import frame
from broker_core.amqp.performatives import (
    ACCEPTED, RECEIVER, RELEASED, SENDER, Accepted, Attach, Detach, Disposition, End, Error, Flow, MessageHeader, Modified, Received, Rejected, Source,
)  # fmt: skip
from broker_core.amqp.sections import open_message
from broker_core.amqp.types import Described, Symbol
from broker_core.engine import commands as c
from broker_core.engine.access import CONSUME, OPERATIONS, Rule
from broker_core.engine.outcome import Outcome
from broker_core.engine.settings import Settings
from tests.amqp.conversation import SELECTOR, Client, Cut, Room, bodies, body_of, publishes, transfers
from tests.amqp.messages import written
from tests.engine.rig import DEAD


def header_of(payload: bytes) -> MessageHeader:
    opening = open_message(payload)
    assert opening is not None and opening.header is not None
    return opening.header


# -- attaching --------------------------------------------------------------------------------------------------------------------------
def test_a_consumer_is_answered_with_the_source_that_it_has(client: Client) -> None:
    attached = client.consumes("queue://orders", name="mine", expiry_policy="session-end", timeout=5)[0]
    assert (attached.name, attached.role, attached.initial_delivery_count) == ("mine", SENDER, 0)
    source = attached.source
    assert (source.address, source.durable, source.expiry_policy, source.timeout, source.distribution_mode) == ("queue://orders", 0, "link-detach", 0, "move")
    assert source.capabilities == ("queue",)
    assert "amqp:modified:list" in source.outcomes


@pytest.mark.parametrize(
    ("address", "source", "condition"),
    [
        ("temp-queue://node1-1-99.1", {}, "amqp:not-allowed"),
        ("queue://a*", {}, "amqp:invalid-field"),
        ("topic://a**b", {}, "amqp:invalid-field"),
        ("orders", {"capabilities": ("shared",)}, "amqp:not-allowed"),
        ("mq.nothing", {}, "amqp:not-found"),
        ("orders", {"filter": {Symbol("s"): Described(SELECTOR[0], "a = = 1")}}, "amqp:invalid-field"),
        ("orders", {"filter": {Symbol("s"): Described(SELECTOR[1], 5)}}, "amqp:invalid-field"),
        ("topic://t", {"durable": 2, "expiry_policy": "never", "name": "x" * 256}, "amqp:invalid-field"),
        ("orders", {"properties": {Symbol("priority"): 1001}}, "amqp:invalid-field"),
    ],
)
def test_what_cannot_be_consumed_is_refused_with_a_link_that_has_no_source(client: Client, address: str, source: dict[str, Any], condition: str) -> None:
    attached, detached = client.consumes(address, credit=0, **source)
    assert attached.source is None
    assert attached.role == SENDER
    assert (detached.closed, detached.error.condition) == (True, condition)
    client.says(frame(0, Detach(0, closed=True)))
    assert client.consumes("orders")[0].source is not None, "the handle is free again"


def test_a_filter_that_is_not_known_is_not_applied_and_not_claimed(client: Client) -> None:
    unknown = {Symbol("odd"): Described(Symbol("somebody:filter"), "x"), Symbol("worse"): "not described"}
    assert client.consumes(filter=unknown)[0].source.filter is None


# -- deliveries -------------------------------------------------------------------------------------------------------------------------
def test_what_was_sent_is_delivered_with_a_header_of_its_own(client: Client) -> None:
    client.produces()
    octets = written(MessageHeader(durable=True, priority=7, ttl=5000), colour="green")
    client.sends(octets)
    client.hears()
    heard = client.consumes()
    (transfer, payload) = next(each for each in heard if isinstance(each, tuple))
    assert (transfer.handle, transfer.delivery_id, transfer.message_format, transfer.settled, transfer.more) == (0, 0, 0, False, False)
    assert header_of(payload) == MessageHeader(durable=True, priority=7, ttl=5000, first_acquirer=True)
    assert payload.endswith(octets[octets.index(b"\0\x53\x74") :])


def test_credit_is_what_a_consumer_gets(client: Client) -> None:
    publishes(client, *"abcde")
    assert bodies(client.consumes(credit=2)) == [b"a", b"b"]
    assert client.settles(0, 1) == []
    assert bodies(client.speaks(client.grants(0, 1, 2))) == [b"c"]
    assert bodies(client.speaks(client.grants(0, 2, 2))) == [b"d"], "it had not seen c when it said so"
    assert client.speaks(client.grants(0, 0, 4)) == []


def test_credit_may_come_before_the_link_is_answered_and_without_a_count(client: Client) -> None:
    publishes(client, *"abc")
    attach = Attach("x", 0, RECEIVER, source=Source("orders"))
    assert bodies(client.speaks(attach, client.grants(0, 2, None))) == [b"a", b"b"]


def test_a_count_that_was_never_reached_is_no_reason_for_more(client: Client) -> None:
    client.consumes(credit=1)
    client.speaks(client.grants(0, 5, 1000))
    publishes(client, *"abcdefg")
    assert len(bodies(client.hears())) <= 5


def test_an_echo_tells_what_is_left(client: Client) -> None:
    publishes(client, "a")
    client.consumes(credit=3)
    (flow,) = client.speaks(Flow(1, 1000, 0, 1000, 0, None, None, echo=True))
    assert (flow.handle, flow.delivery_count, flow.link_credit) == (0, 1, 2)


def test_a_drained_consumer_gets_what_there_is_and_hears_at_once_that_its_credit_is_gone(client: Client) -> None:
    publishes(client, *"ab")
    client.consumes(credit=0)
    heard = client.speaks(client.grants(0, 5, 0, drain=True))
    assert bodies(heard) == [b"a", b"b"]
    flow = heard[-1]
    assert (flow.handle, flow.delivery_count, flow.link_credit, flow.drain, flow.available) == (0, 5, 0, True, 0)
    publishes(client, *"cd")
    assert client.hears() == []
    assert bodies(client.speaks(client.grants(0, 1, 5))) == [b"c"], "counted from what lapsed"
    (flow,) = [each for each in client.speaks(client.grants(0, 0, 6, drain=True)) if isinstance(each, Flow)]
    assert flow.delivery_count == 6


def test_a_settled_link_needs_no_outcomes(client: Client) -> None:
    publishes(client, *"ab")
    heard = client.consumes(snd_settle_mode=1)
    assert heard[0].snd_settle_mode == 1
    assert [transfer.settled for transfer in transfers(heard)] == [True, True]
    client.passes(1000)
    assert client.bench.depth() == 0


# -- outcomes -----------------------------------------------------------------------------------------------------------------------------
def test_what_is_accepted_is_over(client: Client) -> None:
    publishes(client, *"abc")
    client.consumes()
    assert client.settles(0, 1) == []
    assert client.bench.depth() == 1
    assert client.settles(0, 1) == [], "twice means nothing"


def test_outcomes_of_neighbours_that_come_one_by_one_reach_the_engine_as_one(client: Client) -> None:
    publishes(client, *"abcdefgh")
    client.consumes()
    said = [(0, ACCEPTED), (1, ACCEPTED), (2, ACCEPTED), (4, ACCEPTED), (3, ACCEPTED), (5, RELEASED), (6, ACCEPTED), (6, ACCEPTED)]
    octets = b"".join([frame(0, Disposition(RECEIVER, number, None, True, state)) for number, state in said])
    settles = [(event.tags, event.outcome) for event in client.machine.receive_data(octets, client.bench.now) if isinstance(event, c.Settle)]
    accepted = [range(1, 4), range(5, 6), range(4, 5), range(7, 8)]
    assert settles == [*[(tags, Outcome.ACCEPTED) for tags in accepted[:3]], (range(6, 7), Outcome.UNUSED), (accepted[3], Outcome.ACCEPTED)]


def test_an_outcome_that_is_not_settled_is_answered(client: Client) -> None:
    publishes(client, *"ab")
    client.consumes(rcv_settle_mode=1)
    (told,) = client.settles(0, 1, settled=False)
    assert told == Disposition(SENDER, 0, 1, True, ACCEPTED)
    assert client.bench.depth() == 0


@pytest.mark.parametrize(
    ("state", "count", "flagged"), [(RELEASED, 0, False), (Modified(), 0, False), (Modified(delivery_failed=True), 1, True)]
)  # fmt: skip
def test_what_is_given_back_comes_again(client: Client, state: Any, count: int, flagged: bool) -> None:
    publishes(client, "a")
    client.consumes()
    heard = client.settles(0, state=state)
    (again,) = [each for each in heard if isinstance(each, tuple)]
    assert header_of(again[1]).delivery_count == count
    assert header_of(again[1]).first_acquirer is not flagged
    assert again[0].delivery_id == 1
    assert again[0].delivery_tag != b""


@pytest.mark.parametrize("state", [Rejected(), Modified(delivery_failed=True, undeliverable_here=True), Modified(undeliverable_here=True)])
def test_what_is_rejected_or_cannot_be_used_here_is_dead(client: Client, state: Any) -> None:
    publishes(client, "a")
    client.consumes()
    assert client.settles(0, state=state) == []
    assert client.bench.depth() == 0
    assert client.bench.depth(DEAD) == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (None, b"the consumer rejected the message"),
        (Error("shop:no-stock"), b"shop:no-stock"),
        (Error("shop:no-stock", "gone\x00for\ngood"), b"shop:no-stock: gone for good"),
        (Error("a:b", "x" * 300), b"a:b: " + b"x" * 251),
    ],
)
def test_a_dead_message_says_why_its_consumer_rejected_it(error: Error | None, told: bytes, client: Client) -> None:
    publishes(client, "a")
    client.consumes()
    client.settles(0, state=Rejected(error))
    [(_, payload)] = [each for each in client.consumes("queue://mq.sys.dmq", handle=1) if isinstance(each, tuple)]
    assert told in payload
    assert told + b"x" not in payload


@pytest.mark.parametrize(("default", "depth", "dead"), [(None, 1, 0), (Accepted(), 0, 0), (Rejected(), 0, 1), (Modified(delivery_failed=True), 1, 0)])
def test_what_is_settled_without_a_word_has_the_sources_default_outcome(client: Client, default: Any, depth: int, dead: int) -> None:
    publishes(client, "a")
    client.consumes(credit=1, default_outcome=default)
    client.settles(0, state=None)
    assert (client.bench.depth(), client.bench.depth(DEAD)) == (depth, dead)


def test_received_is_no_outcome_and_what_is_settled_with_it_is_settled_without_a_word(client: Client) -> None:
    client.consumes(credit=1)
    publishes(client, "a")
    client.hears()
    assert client.settles(0, state=Received(0, 0), settled=False) == []
    client.speaks(client.grants(0, 2))
    (again,) = transfers(client.settles(0, state=Received(0, 0)))
    assert again.delivery_id == 1


def test_a_message_that_failed_too_often_is_dead(cut: Cut) -> None:
    client = Client(Room(settings=Settings(redelivery_delay_ms=0, redelivery_max=1)), cut).opens()
    publishes(client, "a")
    client.consumes()
    client.settles(0, state=Modified(delivery_failed=True))
    client.settles(1, state=Modified(delivery_failed=True))
    assert client.bench.depth(DEAD) == 1


def test_an_outcome_may_concern_several_links_and_what_was_never_sent(client: Client) -> None:
    publishes(client, *"ab")
    publishes(client, *"cd", address="queue/others")
    client.consumes("orders", handle=0)
    client.consumes("others", handle=3)
    client.settles(0, 4_000_000_000)
    assert (client.bench.depth(), client.bench.depth("queue/others")) == (0, 0)
    assert client.settles(5) == []


# -- closing --------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", ["detach", "end"])
def test_what_a_consumer_that_goes_has_not_looked_at_goes_to_another_as_if_nothing_had_happened(client: Client, how: str) -> None:
    publishes(client, *"ab")
    client.consumes()
    if how == "detach":
        assert client.detaches(0) == [Detach(0, closed=True)]
    else:
        assert client.speaks(End()) == [End()]
        client.begins()
    payload = next(each[1] for each in client.consumes(handle=4) if isinstance(each, tuple))
    assert header_of(payload).delivery_count == 0


def test_what_a_lost_connection_held_is_flagged(cut: Cut) -> None:
    client = Client(cut=cut).opens()
    publishes(client, "a")
    client.consumes()
    client.bench.apply(*client.machine.receive_eof(0))
    other = Client(client.bench, cut, peer=8).opens()
    payload = next(each[1] for each in other.consumes() if isinstance(each, tuple))
    assert header_of(payload).delivery_count == 1


def test_a_destination_that_is_destroyed_closes_its_links(client: Client) -> None:
    client.consumes()
    client.bench.control("destroy", "queue/orders")
    detached = client.hears_one(Detach)
    assert detached.error.condition == "amqp:resource-deleted"
    assert client.detaches(0) == []


def test_a_link_that_is_closed_before_it_was_answered_is_answered_twice(client: Client) -> None:
    attached, detached = client.speaks(Attach("x", 0, RECEIVER, source=Source("orders")), Detach(0, closed=True))[:2]
    assert (attached.source.address, detached.closed) == ("orders", True)
    attached, detached = client.speaks(Attach("x", 0, RECEIVER, source=Source("mq.none")), Detach(0, closed=True))[:2]
    assert (attached.source, detached.closed) == (None, True)
    assert client.consumes(handle=0)[0].source is not None


# -- the session's window ---------------------------------------------------------------------------------------------------------------
def test_no_more_is_sent_than_the_peers_session_has_room_for(cut: Cut) -> None:
    client = Client(cut=cut).opens()
    client.begins(channel=1, window=2)
    client.hears()
    publishes(client, *"abcd")
    attach = Attach("x", 0, RECEIVER, source=Source("orders"))
    heard = client.speaks(attach, client.grants(0, 4, 0, window=2), channel=1)
    assert bodies(heard) == [b"a", b"b"]
    assert bodies(client.speaks(Flow(2, 1, 0, 10), channel=1)) == [b"c"]
    assert client.speaks(Flow(2, 1, 0, 10), channel=1) == [], "one is on its way"
    assert bodies(client.speaks(Flow(3, 5, 0, 10), channel=1)) == [b"d"]


def test_a_drained_consumer_hears_so_behind_what_waits_for_its_session(client: Client) -> None:
    client.begins(channel=1, window=1)
    client.hears()
    publishes(client, *"ab")
    heard = client.speaks(Attach("x", 0, RECEIVER, source=Source("orders")), client.grants(0, 5, 0, drain=True, window=1), channel=1)
    assert bodies(heard) == [b"a"]
    assert [each for each in heard if isinstance(each, Flow)] == []
    heard = client.speaks(Flow(1, 5, 0, 10), channel=1)
    assert bodies(heard) == [b"b"]
    assert heard[-1].delivery_count == 5


def test_a_message_larger_than_the_peers_frames_comes_in_several(cut: Cut) -> None:
    client = Client(cut=cut).opens(max_frame_size=512)
    publishes(client, "x" * 1000)
    heard = client.consumes()
    assert [transfer.more for transfer in transfers(heard)] == [True, True, False]
    assert [transfer.delivery_id for transfer in transfers(heard)] == [0, None, None]
    assert body_of(b"".join(each[1] for each in heard if isinstance(each, tuple))) == b"x" * 1000


@pytest.mark.parametrize("window", [1, 2])
def test_a_link_that_closes_amid_a_message_ends_it_without_a_frame_for_which_the_session_has_no_room(client: Client, window: int) -> None:
    client = Client(cut=client.cut).opens(max_frame_size=512)
    client.begins(channel=1, window=window)
    client.hears()
    publishes(client, "x" * 1000)
    client.speaks(Attach("x", 0, RECEIVER, source=Source("orders")), client.grants(0, 5, 0, window=window), channel=1)
    heard = client.speaks(Detach(0, closed=True), channel=1)
    assert [type(each) for each in heard] == [Detach], "with its link the delivery is over"
    assert client.speaks(Flow(window, 5, 0, 10), channel=1) == []



def test_deliveries_that_wait_for_the_session_choke_the_connection() -> None:
    client = Client().opens()
    client.begins(channel=1, window=0)
    for number in range(20):
        publishes(client, "x" * 100_000 + str(number))
    client.speaks(Attach("x", 0, RECEIVER, source=Source("orders")), client.grants(0, 50, 0, window=0), channel=1)
    assert client.machine.choked
    client.speaks(Flow(0, 100, 0, 10), channel=1)
    assert not client.machine.choked


def test_what_is_settled_when_it_leaves_and_has_not_left_is_anothers_when_its_link_ends(client: Client) -> None:
    """It waits for the peer's window."""
    client.begins(channel=1, window=1)
    client.hears()
    publishes(client, "a", "b", "c")
    assert bodies(client.consumes(snd_settle_mode=1, channel=1, credit=0)) == []
    assert bodies(client.speaks(client.grants(0, 5, 0, window=1), channel=1)) == [b"a"]
    assert bodies(client.speaks(Flow(1, 1, 0, 10), channel=1)) == [b"b"]
    client.speaks(Detach(0, closed=True), channel=1)
    heard = client.consumes()
    assert bodies(heard) == [b"c"]
    opening = open_message(next(each[1] for each in heard if isinstance(each, tuple)))
    assert opening is not None
    assert opening.header is not None
    assert opening.header.delivery_count == 0


@pytest.mark.parametrize("by", ["an operator", "new rules"])
def test_what_has_left_settled_comes_to_nobody_else_when_the_broker_ends_its_link(client: Client, by: str) -> None:
    """Though the engine has not heard yet that it left."""
    publishes(client, "a", "b", "c")
    client.consumes(snd_settle_mode=1, credit=0)
    client.reads(frame(0, client.grants(0, 2, 0)))
    client.bench.flush()
    if by == "an operator":
        client.bench.control("detach", consumer=next(iter(client.bench.engine.shard.links)), reason="it hangs")
    else:
        client.bench.apply(c.SetAccess([Rule(">", CONSUME, False, "*")], {}))
        client.bench.flush()
    client.flush()
    heard = client.hears()
    assert bodies(heard) == [b"a", b"b"]
    assert [type(each) for each in heard if not isinstance(each, tuple)] == [Detach]
    assert not client.bench.engine.shard.links
    client.bench.apply(c.SetAccess([Rule(">", operation, True, "*") for operation in OPERATIONS], {}))
    client.detaches(0)
    assert bodies(client.consumes()) == [b"c"]
