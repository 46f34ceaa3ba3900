"""What tests of replays do: forget the lake of another test, and take what was sent."""

from __future__ import annotations

from typing import Any

import psycopg

from broker_core.client import Queue
from tests.acceptance.python_client import factory
from tests.support.service import Service

DAY_MS = 86_400_000


def forget_lakes(service: Service) -> None:
    """Another test's lake is another one."""
    with psycopg.connect(service.dsn(), autocommit=True) as connection:
        connection.execute("DELETE FROM surety.ledger_reader")


def received(service: Service, name: str, count: int) -> list[tuple[Any, Any]]:
    """Bodies, and of which messages they are."""
    with factory(service).create_connection() as connection, connection.create_session() as session:
        connection.start()
        consumer = session.create_consumer(Queue(name))
        messages = [consumer.receive(10) for _ in range(count)]
        assert consumer.receive(0.3) is None
    return [(message and message.body, message and message.properties.get("JMS_SURETY_REPLAYED")) for message in messages]
