"""What a client of JMS (Apache Qpid JMS) asks for that no other test of this room does."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.amqp.performatives import (
    ACCEPTED, RECEIVER, RELEASED, Attach, Detach, MessageHeader, Modified, Rejected, Target, TransactionalState,
)  # fmt: skip
from broker_core.amqp.sections import open_message
from broker_core.amqp.types import Described, Symbol, ULong
from tests.amqp.conversation import Client, Cut, bodies, message, outcomes, transfers
from tests.amqp.messages import data, written

DURABLE: dict[str, Any] = {"durable": 2, "expiry_policy": "never", "distribution_mode": "copy"}
OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")


def sends(client: Client, *names: bytes, address: str = "orders", handle: int = 7) -> None:
    """On a link of its own, which is closed again."""
    client.produces(address, handle)
    for name in names:
        client.sends(message(name), handle)
    client.detaches(handle)


def counts(heard: list[Any]) -> dict[bytes, int]:
    """Delivery-counts of what was delivered, by body."""
    found = {}
    for payload in [each[1] for each in heard if isinstance(each, tuple)]:
        opening = open_message(payload)
        assert opening is not None and opening.header is not None
        found[payload[opening.body_at :]] = opening.header.delivery_count
    return found


# -- connections ------------------------------------------------------------------------------------------------------------------------
def test_its_frames_may_be_larger_than_ours_which_stay_within_both_bounds(cut: Cut) -> None:
    client = Client(cut=cut).opens(max_frame_size=1_048_576)
    client.produces()
    client.consumes(handle=0)
    body = bytes(200_000)
    half = message(body)
    client.sends(half[:100_000], more=True)
    client._next_delivery -= 1
    client.sends(half[100_000:])
    octets = client.octets()
    sizes, at = [], 0
    while at < len(octets):
        sizes.append(int.from_bytes(octets[at : at + 4], "big"))
        at += sizes[-1]
    assert 100_000 < max(sizes) <= client.machine.limits.frame_octets_max


def test_a_session_that_nothing_is_sent_on_is_no_burden_to_others(client: Client) -> None:
    """A connection has one for its temporary destinations and for unsubscribing, and one for each session of its application."""
    for channel in range(1, 4):
        client.begins(channel)
    client.hears()
    client.consumes(channel=2)
    sends(client, b"a")
    assert len(client.machine.sessions.by_channel) == 4


# -- producers --------------------------------------------------------------------------------------------------------------------------
def test_delayed_delivery_is_offered_to_links_that_desire_it(client: Client) -> None:
    attached = client.produces(desired_capabilities=("DELAYED_DELIVERY", "something-else"))[0]
    assert attached.offered_capabilities == ("DELAYED_DELIVERY",)


def test_a_destination_that_is_full_is_a_limit(client: Client) -> None:
    client.bench.control("create", "queue/orders", max_messages=1, limit_behavior="REJECT_NEWEST")
    client.produces()
    client.hears()
    first, second = [client.sends(written(MessageHeader(durable=True))) for _ in range(2)]
    told = outcomes(client.hears())
    assert told[first] == ACCEPTED
    assert isinstance(told[second], Rejected)
    assert told[second].error.condition == "amqp:resource-limit-exceeded"


def test_who_may_not_send_there_is_not_authorized(client: Client) -> None:
    client.produces("queue://mq.sys.dmq")
    number = client.sends(message())
    assert outcomes(client.hears())[number].error.condition == "amqp:unauthorized-access"


# -- consumers --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("capability", "kind"), [("queue", "queue"), ("topic", "topic")])
def test_a_bare_name_is_of_the_kind_that_its_capability_says_and_all_outcomes_are_taken(client: Client, capability: str, kind: str) -> None:
    default = Modified(delivery_failed=True)
    attached = client.consumes("prices", capabilities=(capability,), outcomes=OUTCOMES, default_outcome=default, name="qpid-jms:receiver:ID:1:prices")[0]
    assert (attached.source.outcomes, attached.source.default_outcome) == (OUTCOMES, default)
    sends(client, b"a", address=f"{kind}://prices")
    assert client.bench.destination(f"{kind}/prices").address == f"{kind}/prices"


def test_a_link_that_is_not_durable_leaves_nothing_behind_when_it_is_closed(client: Client) -> None:
    client.consumes("topic://t", name="c")
    assert client.detaches(0, closed=True) == [Detach(0, closed=True)]
    assert client.bench.engine.shard.named == {}
    sends(client, b"lost", address="topic://t")
    assert bodies(client.consumes("topic://t", name="c")) == []


def test_a_durable_subscription_to_another_topic_is_another_one(client: Client) -> None:
    client.consumes("topic://t", name="sub", **DURABLE)
    client.detaches(0, closed=False)
    sends(client, b"lost", address="topic://t")
    assert bodies(client.consumes("topic://u", name="sub", **DURABLE)) == []
    sends(client, b"from u", address="topic://u")
    client.detaches(0, closed=False)
    assert bodies(client.consumes("topic://u", name="sub", **DURABLE)) == [b"from u"]


@pytest.mark.parametrize("restarted", [False, True])
def test_one_with_the_same_selector_goes_on_with_what_it_kept(cut: Cut, restarted: bool) -> None:
    client = Client(cut=cut).opens()
    wanted = {Symbol("jms-selector"): Described(ULong(0x0000468C00000004), "n > 1")}
    client.consumes("topic://t", name="sub", filter=wanted, **DURABLE)
    client.detaches(0, closed=False)
    client.produces("topic://t")
    client.sends(written(MessageHeader(durable=True), body=data(b"kept"), n=2))
    if restarted:
        client.bench.start()
    again = Client(client.bench, cut, peer=8).opens()
    assert bodies(again.consumes("topic://t", name="sub", filter=wanted, **DURABLE)) == [b"kept"]


@pytest.mark.parametrize("name", ["sub|global", "sub|global2"])
def test_a_shared_subscription_of_any_container_is_ended_by_its_name(client: Client, name: str) -> None:
    how = {**DURABLE, "capabilities": ("topic", "shared", "global")}
    client.consumes("t", name=name, **how)
    client.detaches(0, closed=False)
    looking = Attach("sub|global", 3, RECEIVER, desired_capabilities=("shared", "global"))
    (attached,) = client.speaks(looking)
    assert (attached.source.address, set(attached.source.capabilities)) == ("topic://t", {"topic", "shared", "global"})
    assert client.detaches(3, closed=True) == [Detach(3, closed=True)]
    attached, detached = client.speaks(looking)
    assert (attached.source, detached.error.condition) == (None, "amqp:not-found")


def test_the_consumer_with_the_higher_priority_is_served_first(client: Client) -> None:
    client.consumes(handle=0, credit=1, properties={Symbol("priority"): 1})
    client.consumes(handle=3, credit=1, properties={Symbol("priority"): 5})
    client.produces(handle=8)
    served = []
    for _ in range(2):
        client.sends(message(), 8)
        served += [transfer.handle for transfer in transfers(client.hears())]
    assert served == [3, 0]


def test_without_prefetch_one_message_is_pulled_and_a_drain_ends_the_wait(client: Client) -> None:
    sends(client, b"a", b"b")
    assert bodies(client.consumes(credit=1)) == [b"a"]
    heard = client.speaks(client.grants(0, 1, 1, drain=True, seen=1))
    assert bodies(heard) == [b"b"]
    heard = client.speaks(client.grants(0, 1, 2, drain=True, seen=2))
    assert [(each.link_credit, each.drain, each.delivery_count) for each in heard] == [(0, True, 3)]


def test_acknowledgements_of_many_come_in_one_range(client: Client) -> None:
    sends(client, *[b"%d" % number for number in range(50)])
    assert len(bodies(client.consumes(credit=100))) == 50
    assert client.settles(0, 24) == []
    assert client.bench.depth() == 25
    assert client.settles(25, 49) == []
    assert client.bench.depth() == 0


def test_what_the_application_had_has_failed_and_what_was_only_prefetched_has_not(client: Client) -> None:
    sends(client, b"had", b"prefetched")
    client.consumes()
    client.settles(0, state=Modified(delivery_failed=True))
    client.detaches(0)
    client.bench.now += 60_000
    assert counts(client.consumes(name="next")) == {b"had": 1, b"prefetched": 0}


# -- temporary destinations -------------------------------------------------------------------------------------------------------------
def test_temporary_destinations_end_with_their_connection(cut: Cut) -> None:
    client = Client(cut=cut).opens()
    address = client.produces(target=Target(dynamic=True, capabilities=("temporary-queue",)))[0].target.address
    assert address.startswith("temp-queue://")
    client.bench.apply(*client.machine.receive_eof(0))
    assert not [each for each in client.bench.engine.shard.destinations if each.startswith("temp")]


def test_a_temporary_destination_is_consumed_by_its_capability(client: Client) -> None:
    address = client.produces(target=Target(dynamic=True, capabilities=("temporary-topic",)))[0].target.address
    client.consumes(address, handle=3, capabilities=("temporary-topic",))
    client.consumes(address, handle=4, capabilities=("temporary-topic",))
    client.sends(message(b"a"))
    assert sorted(transfer.handle for transfer in transfers(client.hears())) == [3, 4]


# -- transactions -----------------------------------------------------------------------------------------------------------------------
def test_a_transactions_name_is_short_and_no_other_one_has_it(client: Client) -> None:
    client.coordinates()
    names = {client.declares() for _ in range(5)}
    assert len(names) == 5
    assert all(0 < len(name) <= 32 for name in names)


def test_on_rollback_what_was_acknowledged_has_failed_and_what_is_released_has_not(client: Client) -> None:
    client.coordinates()
    sends(client, b"consumed", b"prefetched")
    client.consumes()
    transaction = client.declares()
    client.settles(0, state=TransactionalState(transaction, ACCEPTED))
    client.settles(1, state=RELEASED)
    assert client.discharges(transaction, fail=True) == ACCEPTED
    client.detaches(0)
    client.bench.now += 60_000
    assert counts(client.consumes(handle=3)) == {b"consumed": 1, b"prefetched": 0}


def test_an_acknowledgement_in_a_transaction_is_settled_at_once_and_held_until_the_end(client: Client) -> None:
    client.coordinates()
    sends(client, b"a")
    client.consumes()
    transaction = client.declares()
    assert client.settles(0, state=TransactionalState(transaction, ACCEPTED)) == []
    assert client.bench.depth() == 1
    other = Client(client.bench, peer=8).opens("other")
    assert bodies(other.consumes()) == [], "nobody else gets it meanwhile"
    client.discharges(transaction)
    assert client.bench.depth() == 0
