"""Administered objects against a really running node."""

from __future__ import annotations

import asyncio
import json

import pytest

from broker_core.client import ConnectionFactory, DeliveryMode, IllegalStateException, InvalidDestinationException, JMSSecurityException, Queue
from broker_core.client.aio import ConnectionFactory as AsyncConnectionFactory
from tests.acceptance.python_client import SOON
from tests.support.service import Service


def administer(service: Service, name: str, kind: str, attributes: dict[str, object], *, read_only: bool = False) -> str:
    with service.database() as connection:
        statement = "INSERT INTO surety.administered (name, kind, attributes, read_only) VALUES (%s, %s, %s, %s)"
        connection.execute(statement, [name, kind, json.dumps(attributes), read_only])
    return f"stomp://127.0.0.1:{service.stomp_port}"


def test_a_factory_and_a_queue_are_looked_up_by_name_and_mean_what_their_operator_set(service: Service, orders: Queue) -> None:
    name = f"the factory: {orders.name} \N{EURO SIGN}"
    address = administer(service, name, "factory", {"configured_client_id": f"id.{orders.name}", "persistent_reliability": "reliable"}, read_only=True)
    administer(service, orders.name, "queue", {"destination": orders.name, "delivery_mode": "PERSISTENT", "priority": 8, "time_to_live": 60})
    factory = ConnectionFactory.lookup(name, address_list=address)
    queue = factory.lookup_destination(orders.name)
    assert isinstance(queue, Queue)
    with factory.create_connection() as connection, connection.create_session() as session:
        assert connection.client_id == f"id.{orders.name}"
        session.create_producer(queue).send("x", delivery_mode=DeliveryMode.NON_PERSISTENT, priority=1)
        message = session.create_consumer(queue).receive(SOON)
        assert message is not None and (message.jms_priority, message.jms_delivery_mode) == (8, DeliveryMode.PERSISTENT)
        assert message.jms_expiration > 0 and message.jms_destination == queue
    with pytest.raises(IllegalStateException, match="read-only"):
        factory.configured_client_id = "another"

    async def same() -> None:
        found = await AsyncConnectionFactory.lookup(name, address_list=address)
        assert found.configured_client_id == f"id.{orders.name}"
        assert await found.lookup_destination(orders.name) == queue

    asyncio.run(same())


def test_only_who_may_log_in_looks_anything_up_and_what_is_not_there_is_said(service: Service, orders: Queue) -> None:
    address = administer(service, f"secret {orders.name}", "factory", {"override_priority": 9})
    with pytest.raises(JMSSecurityException):
        ConnectionFactory.lookup(f"secret {orders.name}", address_list=address, password="wrong")
    with pytest.raises(InvalidDestinationException, match="no administered object is called 'nothing'"):
        ConnectionFactory.lookup("nothing", address_list=address)
