"""Links on which clients receive (AMQP 1.0 sections 2.6 and 3.5, the JMS mapping)."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.amqp.frames import frame
from broker_core.amqp.performatives import (
    ACCEPTED, RECEIVER, RELEASED, SENDER, Accepted, Attach, Detach, Disposition, End, Flow, MessageHeader, Modified, Rejected, Source,
)  # fmt: skip
from broker_core.amqp.sections import open_message
from broker_core.amqp.types import Described, Symbol, ULong
from broker_core.engine import commands as c
from broker_core.engine.message import Encoding, Header, Message, Reliability, StoredBody
from broker_core.engine.settings import Settings
from tests.amqp.conversation import SESSION, Client, Cut, Room, bodies, body_of, message, outcomes, transfers
from tests.amqp.messages import written
from tests.engine.rig import DEAD

SELECTOR = (ULong(0x0000468C00000004), Symbol("apache.org:selector-filter:string"))
NO_LOCAL = (ULong(0x0000468C00000003), Symbol("apache.org:no-local-filter:list"))


def publishes(client: Client, *names: str, address: str = "queue/orders", level: Reliability = Reliability.ASSURED, client_id: str = "") -> None:
    """Messages, whoever sent them."""
    for name in names:
        octets = message(name.encode())
        header = Header(octets[: -len(name)], 4, level, encoding=Encoding.AMQP, client_id=client_id)
        client.bench.apply(c.Send(1, None, address, Message(header, name.encode(), len(octets))))
    client.flush()


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


@pytest.mark.parametrize(("default", "depth", "dead"), [(None, 1, 0), (Accepted(), 0, 0), (Rejected(), 0, 1), (Modified(delivery_failed=True), 1, 0)])
def test_what_is_settled_without_a_word_has_the_sources_default_outcome(client: Client, default: Any, depth: int, dead: int) -> None:
    publishes(client, "a")
    client.consumes(credit=1, default_outcome=default)
    client.settles(0, state=None)
    assert (client.bench.depth(), client.bench.depth(DEAD)) == (depth, dead)


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
def test_a_link_that_closes_amid_a_message_aborts_it(client: Client, window: int) -> None:
    client = Client(cut=client.cut).opens(max_frame_size=512)
    client.begins(channel=1, window=window)
    client.hears()
    publishes(client, "x" * 1000)
    client.speaks(Attach("x", 0, RECEIVER, source=Source("orders")), client.grants(0, 5, 0, window=window), channel=1)
    heard = client.speaks(Detach(0, closed=True), channel=1)
    assert [transfer.aborted for transfer in transfers(heard)] == [True]
    assert isinstance(heard[-1], Detach)


def test_deliveries_that_wait_for_the_session_choke_the_connection() -> None:
    client = Client().opens()
    client.begins(channel=1, window=0)
    for number in range(20):
        publishes(client, "x" * 100_000 + str(number))
    client.speaks(Attach("x", 0, RECEIVER, source=Source("orders")), client.grants(0, 50, 0, window=0), channel=1)
    assert client.machine.choked
    client.speaks(Flow(0, 100, 0, 10), channel=1)
    assert not client.machine.choked


# -- large bodies -----------------------------------------------------------------------------------------------------------------------
def large(client: Client, size: int = 3000) -> bytes:
    body = bytes(range(250)) * (size // 250)
    octets = message(body)
    header = Header(octets[: len(octets) - size], 4, Reliability.EXPRESS, encoding=Encoding.AMQP)
    client.bench.apply(c.Send(1, None, "queue/orders", Message(header, StoredBody(5, size), len(octets))))
    client.flush()
    return body


def test_a_large_body_is_asked_for_and_leaves_part_by_part(cut: Cut) -> None:
    client = Client(cut=cut).opens(max_frame_size=1000)
    body = large(client)
    payloads = [each[1] for each in client.consumes() if isinstance(each, tuple)]
    wanted = client.machine.wanted_body
    assert wanted is not None and wanted.stored == StoredBody(5, 3000)
    for at in (0, 1000, 2000):
        client.machine.supply(wanted, body[at : at + 1000], client.bench.now)
        payloads += [each[1] for each in client.hears()]
    assert client.machine.wanted_body is None
    assert body_of(b"".join(payloads)) == body
    assert client.settles(0) == []
    assert client.bench.depth() == 0


def test_a_settled_large_body_is_over_when_it_has_left(client: Client) -> None:
    body = large(client)
    client.consumes(snd_settle_mode=1)
    client.passes(1000)
    assert client.bench.depth() == 1
    wanted = client.machine.wanted_body
    assert wanted is not None
    client.machine.supply(wanted, body, client.bench.now)
    assert [type(command) for command in client.machine.commands] == [c.Settle]
    client.bench.apply(*client.machine.commands)
    client.bench.flush()
    assert client.bench.depth() == 0


def test_a_body_that_is_gone_aborts_its_delivery_and_others_follow(client: Client) -> None:
    large(client)
    publishes(client, "next")
    client.consumes()
    wanted = client.machine.wanted_body
    assert wanted is not None
    client.machine.supply(wanted, bytes(1000), client.bench.now)
    client.machine.abort(wanted)
    heard = client.hears()
    assert [transfer.aborted for transfer in transfers(heard)][-2:] == [True, False]
    assert heard[-1][1].endswith(b"next")


# -- topics -----------------------------------------------------------------------------------------------------------------------------
DURABLE = {"durable": 2, "expiry_policy": "never", "distribution_mode": "copy", "capabilities": ("topic",)}


def test_every_consumer_of_a_topic_gets_each_message(client: Client) -> None:
    client.consumes("topic://t", handle=0)
    client.consumes("t", handle=3, capabilities=("topic",))
    publishes(client, "a", address="topic/t")
    heard = client.hears()
    assert sorted(transfer.handle for transfer in transfers(heard)) == [0, 3]
    assert bodies(heard) == [b"a", b"a"]


def test_patterns_of_topics_are_consumed(client: Client) -> None:
    client.consumes("topic://prices.>")
    publishes(client, "a", address="topic/prices.eu")
    assert bodies(client.hears()) == [b"a"]


@pytest.mark.parametrize("descriptor", SELECTOR)
def test_a_selector_chooses_by_what_its_producer_said(client: Client, descriptor: Any) -> None:
    attached = client.consumes("topic://t", filter={Symbol("jms-selector"): Described(descriptor, "n > 3 AND JMSPriority = 4")})[0]
    assert attached.source.filter == {"jms-selector": Described(descriptor, "n > 3 AND JMSPriority = 4")}
    client.produces("topic://t")
    for number in range(6):
        client.sends(written(n=number))
    assert len(transfers(client.hears())) == 2


@pytest.mark.parametrize("descriptor", NO_LOCAL)
def test_no_local_leaves_out_what_the_container_sent_itself(client: Client, descriptor: Any) -> None:
    client.consumes("topic://t", filter={Symbol("no-local"): Described(descriptor, [])})
    publishes(client, "mine", address="topic/t", client_id="client")
    publishes(client, "others", address="topic/t", client_id="other")
    assert bodies(client.hears()) == [b"others"]


def test_a_durable_subscription_is_kept_when_its_link_is_detached_and_ends_when_it_is_closed(client: Client) -> None:
    source = client.consumes("t", name="sub", **DURABLE)[0].source
    assert (source.durable, source.expiry_policy, source.distribution_mode) == (2, "never", "copy")
    client.detaches(0, closed=False)
    publishes(client, "kept", address="topic/t")
    assert bodies(client.consumes("t", name="sub", **DURABLE)) == [b"kept"]
    assert client.detaches(0, closed=True) == [Detach(0, closed=True)]
    assert client.bench.engine.shard.named == {}


def test_a_durable_subscription_with_another_selector_is_another_one(client: Client) -> None:
    client.consumes("t", name="sub", **DURABLE)
    client.detaches(0, closed=False)
    publishes(client, "lost", address="topic/t")
    wanted = {Symbol("jms-selector"): Described(SELECTOR[0], "n = 1")}
    assert bodies(client.consumes("t", name="sub", filter=wanted, **DURABLE)) == []


def test_a_second_consumer_of_a_durable_subscription_is_refused_on_the_same_connection(client: Client) -> None:
    client.consumes("t", name="sub", **DURABLE)
    client.begins(channel=1)
    client.hears()
    assert client.consumes("t", name="sub", channel=1, **DURABLE)[1].error.condition == "amqp:resource-locked"


def test_another_connection_of_the_container_steals_the_link(cut: Cut) -> None:
    first = Client(cut=cut).opens()
    second = Client(first.bench, cut, peer=8).opens()
    first.consumes("t", name="sub", **DURABLE)
    assert second.consumes("t", name="sub", **DURABLE)[0].source is not None
    assert first.hears_one(Detach).error.condition == "amqp:link:stolen"
    publishes(second, "a", address="topic/t")
    assert bodies(second.hears()) == [b"a"]
    assert first.hears() == []


@pytest.mark.parametrize("durable", [False, True])
def test_consumers_share_a_subscription_by_what_stands_before_the_bar_in_their_names(client: Client, durable: bool) -> None:
    how: dict[str, Any] = {**DURABLE, "capabilities": ("topic", "shared")} if durable else {"capabilities": ("topic", "shared")}
    attached = client.consumes("t", handle=0, credit=1, name="sub", desired_capabilities=("SHARED-SUBS",), **how)[0]
    assert attached.offered_capabilities == ("SHARED-SUBS",)
    client.consumes("t", handle=3, credit=1, name="sub|2", **how)
    publishes(client, *"ab", address="topic/t")
    heard = client.hears()
    assert sorted(transfer.handle for transfer in transfers(heard)) == [0, 3]
    assert sorted(bodies(heard)) == [b"a", b"b"]


def test_shared_subscriptions_that_are_durable_and_that_are_not_have_names_of_their_own(client: Client) -> None:
    client.consumes("t", handle=0, name="sub", **{**DURABLE, "capabilities": ("topic", "shared")})
    client.consumes("t", handle=3, name="sub|volatile1", capabilities=("topic", "shared"))
    publishes(client, "a", address="topic/t")
    assert sorted(transfer.handle for transfer in transfers(client.hears())) == [0, 3]


def test_a_global_subscription_is_shared_by_containers(cut: Cut) -> None:
    first = Client(cut=cut).opens("one")
    second = Client(first.bench, cut, peer=8).opens("two")
    how = {**DURABLE, "capabilities": ("topic", "shared", "global")}
    first.consumes("t", credit=1, name="sub|global", **how)
    second.consumes("t", credit=1, name="sub|global", **how)
    publishes(second, *"ab", address="topic/t")
    assert sorted(bodies(first.hears()) + bodies(second.hears())) == [b"a", b"b"]


def test_a_link_without_a_source_finds_the_durable_subscription_and_ends_it(client: Client) -> None:
    wanted = {Symbol("jms-selector"): Described(SELECTOR[0], "n = 1")}
    client.consumes("t", name="sub", filter=wanted, **DURABLE)
    client.detaches(0, closed=False)
    (attached,) = client.speaks(Attach("sub", 0, RECEIVER))
    assert (attached.source.address, attached.source.durable, attached.source.expiry_policy) == ("topic://t", 2, "never")
    assert attached.source.filter == wanted
    assert client.detaches(0, closed=True) == [Detach(0, closed=True)]
    attached, detached = client.speaks(Attach("sub", 0, RECEIVER))
    assert (attached.source, detached.error.condition) == (None, "amqp:not-found")


def test_a_subscription_that_is_consumed_is_not_ended_by_its_name(client: Client) -> None:
    client.consumes("t", handle=0, name="sub", **{**DURABLE, "capabilities": ("topic", "shared")})
    client.speaks(Attach("sub|9", 3, RECEIVER, desired_capabilities=("shared",)))
    assert client.detaches(3)[0].error.condition == "amqp:resource-locked"
    assert client.bench.engine.shard.named != {}


def test_a_link_that_only_looked_does_not_end_the_subscription_when_it_detaches(client: Client) -> None:
    client.consumes("t", name="sub", **DURABLE)
    client.detaches(0, closed=False)
    client.speaks(Attach("sub", 0, RECEIVER))
    assert client.detaches(0, closed=False) == [Detach(0, closed=False)]
    assert client.bench.engine.shard.named != {}


# -- browsers and temporary destinations ------------------------------------------------------------------------------------------------
def test_a_browser_sees_copies_within_its_credit_and_takes_nothing(client: Client) -> None:
    publishes(client, *"abc")
    heard = client.consumes(credit=2, distribution_mode="copy")
    assert heard[0].source.distribution_mode == "copy"
    assert [transfer.settled for transfer in transfers(heard)] == [True, True]
    heard = client.speaks(client.grants(0, 5, 2, drain=True))
    assert bodies(heard) == [b"c"]
    assert heard[-1].link_credit == 0
    assert heard[-1].delivery_count == 7
    assert client.bench.depth() == 3
    assert client.detaches(0) == [Detach(0, closed=True)]


def test_a_browser_of_nothing_is_drained_at_once(client: Client) -> None:
    client.consumes("nothing.there", credit=0, distribution_mode="copy")
    (flow,) = client.speaks(client.grants(0, 10, 0, drain=True))
    assert flow.link_credit == 0
    assert "queue/nothing.there" not in client.bench.engine.shard.destinations


def test_a_dynamic_source_is_a_temporary_queue_for_replies_that_ends_with_its_link(client: Client) -> None:
    attached = client.consumes(None, dynamic=True)[0]
    address = attached.source.address
    assert attached.source.dynamic
    assert address == f"temp-queue://{SESSION}.1"
    other = Client(client.bench, peer=8).opens("other")
    other.produces(address)
    number = other.sends(message(b"reply"))
    assert number in outcomes(other.hears())
    assert bodies(client.hears()) == [b"reply"]
    assert other.consumes(address, handle=3)[1].error.condition == "amqp:not-allowed"
    client.detaches(0)
    number = other.sends(message(b"late"))
    assert outcomes(other.hears())[number].error.condition == "amqp:not-found"
