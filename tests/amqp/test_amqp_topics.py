"""Consumers of topics, and their subscriptions by the JMS mapping: durable, shared, global, chosen by filters."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.amqp.performatives import RECEIVER, Attach, Detach
from broker_core.amqp.types import Described, Symbol, ULong
from tests.amqp.conversation import SELECTOR, Client, Cut, bodies, publishes, transfers
from tests.amqp.messages import written

NO_LOCAL = (ULong(0x0000468C00000003), Symbol("apache.org:no-local-filter:list"))
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
