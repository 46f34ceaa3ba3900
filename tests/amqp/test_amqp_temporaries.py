"""Links that browse, and links that make a temporary destination."""

from __future__ import annotations

from dataclasses import replace

from broker_core.amqp.performatives import Attach, Detach
from broker_core.amqp.types import Described
from tests.amqp.conversation import SELECTOR, SESSION, Client, bodies, message, outcomes, publishes, transfers


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


def test_a_temporary_destination_goes_with_the_link_that_was_to_consume_it_and_is_refused(client: Client) -> None:
    shard = client.bench.engine.shard
    shard.limits = replace(shard.limits, account_selector_octets_max=10)
    heard = client.consumes(None, dynamic=True, credit=0, filter={SELECTOR[1]: Described(SELECTOR[0], "a = 1 and b = 2 and c = 3")})
    assert [type(each) for each in heard] == [Attach, Detach]
    assert not any(address.startswith("temp-queue/") for address in shard.destinations)
