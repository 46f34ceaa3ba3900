"""Links on which clients send (AMQP 1.0 section 2.6, anonymous terminus 1.0)."""

from __future__ import annotations

import pytest

from broker_core.amqp.frames import frame
from broker_core.amqp.limits import Limits
from broker_core.amqp.performatives import (
    ACCEPTED, SENDER, Attach, Detach, Disposition, End, Flow, MessageProperties, Rejected, Source, Target, Transfer,
)  # fmt: skip
from broker_core.amqp.types import Described, Symbol, ULong
from broker_core.engine import commands as c
from broker_core.engine.access import OPERATIONS, Rule
from broker_core.engine.message import Encoding, Reliability
from tests.amqp.conversation import SESSION, Client, Cut, credit_of, limit_of, message, outcomes
from tests.amqp.messages import annotated, written


def queue(client: Client, address: str = "queue/orders") -> list[str]:
    """What is there, taken away."""
    return client.bench.attach(99, address=address)


# -- as operators see it ----------------------------------------------------------------------------------------------------------------
def producers(client: Client) -> list[tuple[str, str | None, int | None]]:
    return [(it.address, it.link, it.sent() if it.sent is not None else None) for it in client.machine.producers]


def test_a_link_is_a_producer_while_it_is_open_and_counts_its_messages(client: Client) -> None:
    client.produces("queue://orders", handle=1, name="mine")
    client.produces("queue://orders", handle=2, name="other")
    client.consumes(handle=3, name="reads")
    for _ in range(3):
        client.sends(message(), 1)
    assert producers(client) == [("queue/orders", "mine", 3), ("queue/orders", "other", 0)]
    client.detaches(1)
    assert producers(client) == [("queue/orders", "other", 0)]
    client.speaks(End())
    assert producers(client) == []


def test_a_link_that_is_refused_is_no_producer(client: Client) -> None:
    client.bench.apply(c.SetAccess([Rule(">", operation, False, "*") for operation in OPERATIONS], {}))
    client.produces("queue://orders")
    assert producers(client) == []


def test_the_anonymous_relay_is_a_producer_wherever_it_has_sent_to(client: Client) -> None:
    client.produces(None)
    assert producers(client) == []
    for address in ("queue://a", "queue://b", "queue://a", "queue://a"):
        client.sends(written(properties=MessageProperties(to=address)))
    assert producers(client) == [("queue/a", None, None), ("queue/b", None, None)]


# -- attaching --------------------------------------------------------------------------------------------------------------------------
def test_a_producer_is_answered_and_given_credit(client: Client) -> None:
    attached, flow = client.produces("queue://orders", name="mine")
    assert (attached.name, attached.handle, attached.role) == ("mine", 1, True)
    assert attached.target == Target("queue://orders")
    assert attached.max_message_size == 100 * 1024 * 1024
    assert (flow.handle, flow.delivery_count, flow.link_credit) == (1, 0, 64)


@pytest.mark.parametrize(
    ("written_as", "capabilities", "address"),
    [
        ("orders", (), "queue/orders"),
        ("queue://orders", (), "queue/orders"),
        ("/queue/orders", (), "queue/orders"),
        ("topic://prices", (), "topic/prices"),
        ("/topic/prices", (), "topic/prices"),
        ("prices", ("topic",), "topic/prices"),
        ("queue://prices", ("topic",), "topic/prices"),
    ],
)
def test_addresses_are_those_of_the_contract(client: Client, written_as: str, capabilities: tuple[str, ...], address: str) -> None:
    client.produces(target=Target(written_as, capabilities=capabilities))
    client.sends(message())
    assert list(client.bench.engine.shard.destinations)[-1] == address


@pytest.mark.parametrize("address", ["queue://", "topic://a*", "/dsub/x", "a b\n", "x" * 300])
def test_an_address_that_cannot_be_is_refused_with_a_link_that_has_no_target(client: Client, address: str) -> None:
    attached, detached = client.produces(address)
    assert attached.target is None
    assert detached.closed
    assert detached.error.condition == "amqp:invalid-field"
    client.says(frame(0, Detach(1, closed=True)))
    assert len(client.produces("orders")) == 2, "the handle is free again"


def test_a_handle_that_is_in_use_ends_the_session(client: Client) -> None:
    client.produces()
    assert client.produces(name="other")[0].error.condition == "amqp:session:handle-in-use"


def test_a_name_that_is_in_use_is_refused(client: Client) -> None:
    client.produces(handle=1, name="x")
    assert client.produces(handle=2, name="x")[1].error.condition == "amqp:resource-locked"
    assert client.consumes(handle=3, name="x")[0].source is not None, "a link of the other direction is another one"


def test_there_are_as_many_links_as_there_may_be() -> None:
    client = Client(limits=Limits(links_max=2)).opens()
    client.produces(handle=1)
    client.produces(handle=2)
    assert client.produces(handle=3)[1].error.condition == "amqp:resource-limit-exceeded"


def test_a_link_that_is_resumed_has_nothing_unsettled(client: Client) -> None:
    attached, _ = client.produces(unsettled={b"tag": None})
    assert attached.unsettled == {}
    client.says(frame(0, Transfer(1, 0, b"tag", resume=True)))
    assert client.hears_one(Detach).error.condition == "amqp:not-implemented"


# -- sending ----------------------------------------------------------------------------------------------------------------------------
def test_a_message_is_accepted_when_it_is_safe_and_kept_as_it_came(client: Client) -> None:
    client.produces()
    octets = written(properties=MessageProperties("id-1", content_type="text/plain"), colour="green")
    number = client.sends(octets)
    assert outcomes(client.hears()) == {number: ACCEPTED}
    (row,) = [row for effects in client.bench.effects if effects.commit for row in effects.commit.messages] or [None]
    assert row is None, "without durable it is not persistent"
    (kept,) = client.bench.engine.shard.destinations["queue/orders"].subscriptions[0].order[0].ready
    assert kept.header.encoding == Encoding.AMQP
    assert kept.header.octets + kept.body == octets
    assert kept.header.client_id == "client"
    assert kept.header.reliability == Reliability.EXPRESS


def test_outcomes_of_neighbours_are_told_together(client: Client) -> None:
    client.produces()
    octets = b"".join(frame(0, Transfer(1, number, b"%d" % number, 0), message()) for number in range(5))
    client.says(octets)
    told = [each for each in client.hears() if isinstance(each, Disposition)]
    assert outcomes(told) == dict.fromkeys(range(5), ACCEPTED)
    if len(client.cut(octets)) == 1:
        assert [(each.first, each.last) for each in told] == [(0, 4)]


def test_of_a_settled_message_nothing_is_said(client: Client) -> None:
    client.produces()
    client.sends(message(), settled=True)
    assert outcomes(client.hears()) == {}
    assert queue(client) == ["hello"]


def test_a_producer_that_settles_second_hears_first(client: Client) -> None:
    client.produces(rcv_settle_mode=1)
    number = client.sends(message())
    told = client.hears_one(Disposition)
    assert (told.first, told.settled, told.state) == (number, False, ACCEPTED)
    assert client.speaks(Disposition(SENDER, number, None, True, ACCEPTED)) == []


def test_a_message_may_come_in_many_frames(client: Client) -> None:
    client.produces()
    octets = message(b"a longer text")
    client.says(b"".join(frame(0, Transfer(1, 0 if at == 0 else None, b"t" if at == 0 else None, 0, more=at + 5 < len(octets)), octets[at : at + 5])
        for at in range(0, len(octets), 5)))  # fmt: skip
    assert outcomes(client.hears()) == {0: ACCEPTED}
    assert queue(client) == ["a longer text"]


def test_a_message_that_is_given_up_halfway_never_was(client: Client) -> None:
    client.produces()
    client.says(frame(0, Transfer(1, 0, b"t", 0, more=True), message()[:5]) + frame(0, Transfer(1, aborted=True)))
    client.says(frame(0, Transfer(1, 1, b"u", 0), message(b"next")))
    assert outcomes(client.hears()) == {1: ACCEPTED}
    assert queue(client) == ["next"]


def test_a_message_that_is_none_is_rejected_and_the_link_goes_on(client: Client) -> None:
    client.produces()
    first, second = client.sends(b"\0\x53\x99\x40"), client.sends(message())
    told = outcomes(client.hears())
    assert told[first].error.condition == "amqp:decode-error"
    assert told[second] == ACCEPTED


def test_a_producer_who_may_not_send_there_is_refused_when_it_attaches(client: Client) -> None:
    """The JMS mapping has createProducer fail, not every send."""
    client.bench.apply(c.SetAccess([Rule(">", operation, True, "*") for operation in OPERATIONS] + [Rule("queue/secret", "produce", False, "*")], {}))
    attached, detached = client.produces("secret")
    assert (attached.target, detached.error.condition) == (None, "amqp:unauthorized-access")
    attach = Attach("p", 2, SENDER, source=Source(), target=Target("secret"), initial_delivery_count=0)
    attached, detached = client.speaks(attach, Detach(2, closed=True))
    assert (attached.target, detached.error.condition) == (None, "amqp:unauthorized-access"), "detached before it was answered"
    attach.target = Target("orders")
    attached, detached = client.speaks(attach, Detach(2, closed=True))
    assert (attached.target.address, detached.error) == ("orders", None)
    assert credit_of(client.produces("orders", 3), 3)


def test_a_refusal_of_the_engine_is_a_rejection_with_the_reason(client: Client) -> None:
    client.produces("queue://mq.sys.dmq")
    number = client.sends(message())
    rejected = outcomes(client.hears())[number]
    assert isinstance(rejected, Rejected)
    assert rejected.error is not None and rejected.error.condition == "amqp:unauthorized-access"


def test_a_settled_message_that_is_refused_ends_its_link(client: Client) -> None:
    client.produces("queue://mq.sys.dmq")
    client.sends(message(), settled=True)
    assert client.hears_one(Detach).error.condition == "amqp:unauthorized-access"
    client.says(frame(0, Transfer(1, 1, b"t"), message()) + frame(0, Detach(1, closed=True)))
    assert client.hears() == [], "what came on the way is dropped"


@pytest.mark.parametrize(
    "transfer", [Transfer(1, None, b"t"), Transfer(1, 0, b"t", more=True)],
)  # fmt: skip
def test_a_delivery_has_a_number_and_keeps_it(client: Client, transfer: Transfer) -> None:
    client.produces()
    client.says(frame(0, transfer, b"\0") + frame(0, Transfer(1, 5, b"t"), message()))
    assert client.hears_one(End).error.condition == "amqp:invalid-field"


def test_a_consumers_link_takes_no_transfers(client: Client) -> None:
    client.consumes()
    client.says(frame(0, Transfer(0, 0, b"t"), message()))
    assert client.hears_one(End).error.condition == "amqp:session:errant-link"


# -- where it goes ----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("to", "kind", "address"),
    [("queue://a", None, "queue/a"), ("topic://a", None, "topic/a"), ("a", 1, "topic/a"), ("a", 0, "queue/a"), ("a", None, "queue/a")],
)
def test_without_a_target_each_message_says_where_it_goes(client: Client, to: str, kind: int | None, address: str) -> None:
    client.produces(None)
    before = annotated(jms_dest=kind) if kind is not None else b""
    number = client.sends(before + written(properties=MessageProperties(to=to)))
    assert outcomes(client.hears()) == {number: ACCEPTED}
    assert list(client.bench.engine.shard.destinations)[-1] == address


@pytest.mark.parametrize("to", [None, "topic://a*"])
def test_a_message_that_goes_nowhere_is_rejected(client: Client, to: str | None) -> None:
    client.produces(None)
    number = client.sends(written(properties=MessageProperties(to=to)))
    assert outcomes(client.hears())[number].error.condition == "amqp:invalid-field"


def test_a_reply_to_a_requester_that_is_gone_does_not_end_the_link(client: Client) -> None:
    client.produces(None)
    number = client.sends(written(properties=MessageProperties(to="temp-queue://node1-1-99.1")))
    assert outcomes(client.hears())[number].error.condition == "amqp:not-found"
    client.sends(written(properties=MessageProperties(to="temp-queue://node1-1-99.1")), settled=True)
    assert [each for each in client.hears() if isinstance(each, Detach)] == []


# -- credit -----------------------------------------------------------------------------------------------------------------------------
def test_credit_is_given_again_when_half_of_it_was_used(cut: Cut) -> None:
    client = Client(cut=cut, limits=Limits(credit=10)).opens()
    assert credit_of(client.produces()) == 10
    for _ in range(4):
        client.sends(message())
    assert credit_of(client.hears()) is None
    client.sends(message())
    assert credit_of(client.hears()) == 10


def test_the_first_message_shows_that_there_is_room_for_more(client: Client) -> None:
    client.produces()
    client.sends(message())
    assert credit_of(client.hears()) == 1000


def test_who_sends_large_messages_has_less_credit(client: Client) -> None:
    client.produces()
    for _ in range(60):
        client.sends(message(bytes(100_000)))
    assert credit_of(client.hears()) == 4 * 1024 * 1024 // 100_008


def test_a_message_without_credit_ends_the_link() -> None:
    client = Client(limits=Limits(credit=1)).opens()
    client.produces()
    client.says(frame(0, Transfer(1, 0, b"t"), message()) + frame(0, Transfer(1, 1, b"u"), message()))
    assert client.hears_one(Detach).error.condition == "amqp:link:transfer-limit-exceeded"


def test_a_full_destination_withholds_credit_and_outcome(cut: Cut) -> None:
    client = Client(cut=cut, limits=Limits(credit=4)).opens()
    client.bench.control("create", "queue/orders", max_messages=2, limit_behavior="FLOW_CONTROL")
    assert credit_of(client.produces()) == 4
    for _ in range(4):
        client.sends(message())
    heard = client.hears()
    assert len(outcomes(heard)) == 2
    assert limit_of(heard) == 6, "two are in, and four more may be on their way: two that wait for room, and two"
    client.bench.attach(99)
    client.bench.apply(c.Settle(1, 99, [1, 2]))
    client.flush()
    heard = client.hears()
    assert len(outcomes(heard)) == 2
    assert limit_of(heard) == 8


def test_a_full_destination_leaves_the_anonymous_relay_credit_for_others() -> None:
    client = Client(limits=Limits(credit=4)).opens()
    client.bench.control("create", "queue/full", max_messages=1, limit_behavior="FLOW_CONTROL")
    client.produces(None)
    for _ in range(5):
        client.sends(written(properties=MessageProperties(to="full")))
    beyond = client.sends(written(properties=MessageProperties(to="full")))
    heard = client.hears()
    assert isinstance(outcomes(heard)[beyond], Rejected)
    assert outcomes(heard)[beyond].error.condition == "amqp:resource-limit-exceeded"
    assert limit_of(heard) >= 8
    other = client.sends(written(properties=MessageProperties(to="orders")))
    assert outcomes(client.hears())[other] == ACCEPTED
    client.bench.apply(c.Attach(1, 99, "queue/full", credit=100))
    client.flush()
    client.bench.apply(c.Settle(1, 99, [1, 2]))
    client.flush()
    assert len(outcomes(client.hears())) == 1
    again = client.sends(written(properties=MessageProperties(to="full")))
    assert again not in outcomes(client.hears()), "it waits"


def test_an_echo_tells_the_credit_that_there_is(client: Client) -> None:
    client.produces()
    client.sends(message())
    client.hears()
    flow = client.speaks(Flow(0, 100, 1, 100, 1, 1, 63, echo=True))[0]
    assert (flow.handle, flow.delivery_count, flow.link_credit) == (1, 1, 1000)
    assert client.speaks(Flow(0, 100, 1, 100, echo=True))[0].handle is None


def test_what_was_accepted_is_told_before_the_link_ends_for_what_was_refused(client: Client) -> None:
    client.bench.control("create", "queue/closed")
    client.bench.control("pause", "queue/closed", direction="PRODUCERS")
    client.produces(None)
    body = message()
    transfers = [
        frame(0, Transfer(1, 0, b"0", 0, False), written(properties=MessageProperties(to="orders"), body=body)),
        frame(0, Transfer(1, 1, b"1", 0, True), written(properties=MessageProperties(to="closed"), body=body)),
    ]
    client.says(b"".join(transfers))
    accepted, detached = [each for each in client.hears() if isinstance(each, Disposition | Detach)]
    assert (accepted.first, accepted.state) == (0, ACCEPTED)
    assert isinstance(detached, Detach) and detached.error is not None


def test_too_much_that_is_not_confirmed_pauses_a_connection_that_only_sends() -> None:
    client = Client(limits=Limits(unconfirmed_max=2)).opens()
    client.produces()
    client.bench.control("create", "queue/orders", max_messages=1, limit_behavior="FLOW_CONTROL")
    for _ in range(3):
        client.sends(message())
    assert client.machine.wants_pause
    client.consumes(handle=5, credit=0)
    assert not client.machine.wants_pause, "its outcomes must be read"
    for _ in range(31):
        client.sends(message())
    told = [each for each in outcomes(client.hears()).values() if isinstance(each, Rejected)]
    assert told and all(each.error.condition == "amqp:resource-limit-exceeded" for each in told)


# -- large messages -----------------------------------------------------------------------------------------------------------------------
LARGE = Limits(frame_octets_max=2048, large_body_octets=1000, part_octets_max=3000, section_octets_max=500, body_octets_max=50_000, large_bodies_max=1)


def in_frames(octets: bytes, size: int = 700, handle: int = 1, number: int = 0) -> bytes:
    return b"".join(
        frame(0, Transfer(handle, number if at == 0 else None, b"t" if at == 0 else None, 0, more=at + size < len(octets)), octets[at : at + size])
        for at in range(0, len(octets), size)
    )


@pytest.mark.parametrize("size", [1001, 1490, 1600, 3000, 20_000])
def test_a_large_body_goes_to_the_store_in_parts(cut: Cut, size: int) -> None:
    client = Client(cut=cut, limits=LARGE).opens()
    client.produces()
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    client.says(in_frames(message(body)))
    assert outcomes(client.hears()) == {0: ACCEPTED}
    assert client.bodies == {1: body}
    assert client.machine.large_bodies == 0


def test_a_large_message_that_is_given_up_or_whose_link_goes_is_dropped(cut: Cut) -> None:
    client = Client(cut=cut, limits=LARGE).opens()
    client.produces()
    client.says(frame(0, Transfer(1, 0, b"t", 0, more=True), message(bytes(9000))[:1900]) + frame(0, Detach(1, closed=True)))
    assert client.bodies == {}
    assert client.machine.large_bodies == 0


def test_one_large_message_too_many_is_rejected_and_the_rest_of_it_ignored() -> None:
    client = Client(limits=LARGE).opens()
    client.produces(handle=1)
    client.produces(handle=2)
    client.says(frame(0, Transfer(1, 0, b"t", 0, more=True), message(bytes(9000))[:1900]))
    client.says(in_frames(message(bytes(5000)), handle=2, number=1))
    assert outcomes(client.hears())[1].error.condition == "amqp:resource-limit-exceeded"
    client.says(frame(0, Transfer(1, aborted=True)) + in_frames(message(bytes(5000)), handle=2, number=2))
    assert outcomes(client.hears()) == {2: ACCEPTED}


def test_a_message_that_is_too_large_ends_its_link() -> None:
    client = Client(limits=LARGE).opens()
    client.produces()
    client.says(in_frames(message(bytes(60_000))))
    assert client.hears_one(Detach).error.condition == "amqp:link:message-size-exceeded"
    assert client.machine.large_bodies == 0


def test_what_comes_before_a_body_is_bounded() -> None:
    client = Client(limits=LARGE).opens()
    client.produces()
    client.says(in_frames(written(text="x" * 5000)))
    assert outcomes(client.hears())[0].error.condition == "amqp:resource-limit-exceeded"


# -- temporary destinations -------------------------------------------------------------------------------------------------------------
def test_a_dynamic_target_is_a_temporary_destination_that_ends_with_its_link(client: Client) -> None:
    asked = Target(dynamic=True, expiry_policy="link-detach", capabilities=("temporary-topic",), dynamic_node_properties={
        "lifetime-policy": Described(ULong(0x2B), [])})  # fmt: skip
    attached, _ = client.produces(target=asked)
    assert attached.target.dynamic
    assert attached.target.address == f"temp-topic://{SESSION}.1"
    assert attached.target.dynamic_node_properties == {Symbol("lifetime-policy"): Described(ULong(0x2B), [])}
    assert f"temp-topic/{SESSION}.1" in client.bench.engine.shard.destinations
    assert client.detaches(1) == [Detach(1, closed=True)]
    assert f"temp-topic/{SESSION}.1" not in client.bench.engine.shard.destinations


def test_a_temporary_destination_that_is_consumed_does_not_end_with_its_link(client: Client) -> None:
    address = client.produces(target=Target(dynamic=True))[0].target.address
    client.consumes(address)
    detached = client.detaches(1)[0]
    assert detached.error.condition == "amqp:resource-locked"


def test_it_ends_with_its_session_and_with_the_mistake_that_ended_its_link(client: Client) -> None:
    client.produces(target=Target(dynamic=True))
    client.says(frame(0, End()))
    assert len([each for each in client.bench.engine.shard.destinations if each.startswith("temp")]) == 0
