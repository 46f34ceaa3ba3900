"""Administered objects: factories and destinations looked up by name, over real sockets, with both faces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker_core.client import (
    DeliveryMode,
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    PrefetchPolicy,
    Queue,
    Reliability,
    TextMessage,
    Topic,
)
from broker_core.client.destinations import Administered
from broker_core.client.machine.producer import ProducerMachine
from tests.client.broker import INSTANT, Broker
from tests.client.faces import Face
from tests.client.listening import ListeningBroker


def tells(broker: ListeningBroker, kind: str, *, read_only: bool = False, **attributes: Any) -> None:
    broker.object = json.dumps({"name": "it", "kind": kind, "attributes": attributes, "read_only": read_only})


async def look_up(face: Face, broker: ListeningBroker, name: Any = "it", **settings: Any) -> Any:
    return await face.call(face.module.ConnectionFactory.lookup, name, address_list=broker.address, **settings)


async def look_up_destination(face: Face, broker: ListeningBroker, name: str = "it") -> Any:
    return await face.call(face.factory(broker).lookup_destination, name)


# -- refused ------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "sentence"), [("", "is empty"), ("x" * 256, "at most 255"), ("a\nb", "line break"), ("a\0", "NUL"), (7, "must be a str")])
async def test_a_name_that_cannot_be_said_is_refused_before_anybody_is_asked(face: Face, broker: ListeningBroker, name: Any, sentence: str) -> None:
    with pytest.raises(InvalidDestinationException, match=sentence):
        await look_up(face, broker, name)
    assert broker.connects.empty()


async def test_a_name_that_nothing_has_is_an_invalid_destination(face: Face, broker: ListeningBroker) -> None:
    broker.refusal = "no administered object is called 'it'"
    with pytest.raises(InvalidDestinationException, match="no administered object is called 'it'"):
        await look_up(face, broker)


@pytest.mark.parametrize("told", ["", "{", "[]", '{"kind":"factory"}', '{"kind":"factory","attributes":7,"read_only":true}'])
async def test_a_broker_that_says_nothing_that_can_be_understood_is_named(face: Face, broker: ListeningBroker, told: str) -> None:
    broker.object = told
    with pytest.raises(JMSException, match="did not say what the administered object 'it' is"):
        await look_up(face, broker)


async def test_a_destination_is_no_factory_and_a_factory_no_destination(face: Face, broker: ListeningBroker) -> None:
    tells(broker, "queue", destination="orders")
    with pytest.raises(InvalidDestinationException, match="is a queue: look it up with lookup_destination"):
        await look_up(face, broker)
    tells(broker, "factory")
    with pytest.raises(InvalidDestinationException, match="is a connection factory"):
        await look_up_destination(face, broker)


async def test_what_an_operator_has_fixed_can_be_set_neither_in_the_lookup_nor_afterwards(face: Face, broker: ListeningBroker) -> None:
    tells(broker, "factory", read_only=True, override_priority=7, configured_client_id="shop")
    sentence = "override_priority of the administered object 'it' is set by its operator and read-only"
    with pytest.raises(IllegalStateException, match=sentence):
        await look_up(face, broker, override_priority=3)
    factory = await look_up(face, broker, override_priority=7, ping_interval=0.0)
    with pytest.raises(IllegalStateException, match=sentence):
        factory.override_priority = 3
    with pytest.raises(IllegalStateException, match="configured_client_id of"):
        factory.configured_client_id = ""
    factory.username = "another"
    assert (factory.override_priority, factory.username) == (7, "another")


# -- found ---------------------------------------------------------------------------------------------------------------------------------
async def test_a_factory_has_what_its_operator_set_and_the_applications_own_settings(face: Face, broker: ListeningBroker) -> None:
    tells(
        broker, "factory", profile="activemq", configured_client_id="shop", persistent_reliability="reliable", nonpersistent_reliability="as-destination",
        override_delivery_mode="NON_PERSISTENT", override_priority=7, override_expiration=60, consumer_flow_limit=10, ack_on_produce=False,
    )  # fmt: skip
    factory = await look_up(face, broker, username="till", override_priority=2, configured_client_id="mine")
    asked = broker.connects.get(timeout=5).headers
    assert (asked["lookup"], asked["login"], "client-id" in asked) == ("it", "till", False)
    assert (factory.persistent_reliability, factory.nonpersistent_reliability) == (Reliability.RELIABLE, Reliability.AS_DESTINATION)
    assert (factory.override_delivery_mode, factory.override_expiration, factory.consumer_flow_limit) == (DeliveryMode.NON_PERSISTENT, 60, 10)
    assert (factory.override_priority, factory.configured_client_id) == (2, "mine"), "it is not read-only"
    assert factory.prefetch_policy != PrefetchPolicy() and factory.ack_on_produce is False


async def test_connections_of_a_factory_that_was_looked_up_do_not_look_again(face: Face, broker: ListeningBroker) -> None:
    tells(broker, "factory", read_only=True, configured_client_id="shop")
    factory = await look_up(face, broker)
    broker.connects.get(timeout=5)
    await face.wrap(await face.call(factory.create_connection)).close()
    headers = broker.connects.get(timeout=5).headers
    assert (headers["client-id"], "lookup" in headers) == ("shop", False)


async def test_a_destination_has_what_its_operator_set(face: Face, broker: ListeningBroker) -> None:
    tells(broker, "topic", destination="prices", priority=9)
    found = await look_up_destination(face, broker)
    assert found == Topic("prices") and found.administered == Administered("it", priority=9)
    tells(broker, "queue", destination="orders", delivery_mode="NON_PERSISTENT", time_to_live=2.5, consumer_flow_limit=0)
    found = await look_up_destination(face, broker)
    assert found == Queue("orders") and hash(found) == hash(Queue("orders"))
    assert found.administered == Administered("it", DeliveryMode.NON_PERSISTENT, None, 2.5, 0)


# -- what it means -------------------------------------------------------------------------------------------------------------------------
def test_what_is_set_for_a_destination_counts_before_the_send_and_the_factory() -> None:
    broker = Broker(override_priority=2, override_expiration=60.0)
    administered = Queue("a", administered=Administered("it", DeliveryMode.NON_PERSISTENT, 9, 1.0))
    ProducerMachine(broker.session(), administered).send(TextMessage("x"), INSTANT, priority=3, time_to_live=5, delivery_mode=DeliveryMode.PERSISTENT)
    headers = broker.hears()[-1].headers
    assert (headers["priority"], headers["expires"], "persistent" in headers) == ("9", str(INSTANT + 1000), False)
    ProducerMachine(broker.session(), Queue("a")).send(TextMessage("x"), INSTANT)
    assert broker.hears()[-1].headers["priority"] == "2"


@pytest.mark.parametrize(("limit", "said"), [(7, "7"), (0, "65535"), (None, "1000")])
def test_what_is_set_for_a_destination_bounds_what_its_consumers_hold(limit: int | None, said: str) -> None:
    broker = Broker()
    broker.consumer(broker.session(), Queue("a", administered=Administered("it", consumer_flow_limit=limit)))
    assert broker.subscribed.headers["prefetch-count"] == said
