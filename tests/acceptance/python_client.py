"""What tests of the Python client against a running node share."""

from __future__ import annotations

from typing import Any

from broker_core.client import AcknowledgeMode, Connection, ConnectionFactory, MessageConsumer, Queue, Topic
from tests.support.service import Service, await_true

AUTO, CLIENT, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE = (
    AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.NO_ACKNOWLEDGE,
)  # fmt: skip
SOON = 10.0
"""Seconds after which what should come is taken for lost."""
QUIET = 0.3
"""Seconds after which nothing more is expected."""


def factory(service: Service, **settings: Any) -> ConnectionFactory:
    return ConnectionFactory(**({"address_list": f"stomp://127.0.0.1:{service.stomp_port}"} | settings))


def fill(connection: Connection, destination: Queue | Topic, *texts: str) -> None:
    """In one transaction, so that it waits once."""
    with connection.create_session(transacted=True) as session:
        producer = session.create_producer(destination)
        for text in texts:
            producer.send(text)
        session.commit()


def texts(consumer: MessageConsumer, count: int) -> list[str]:
    received = []
    for _ in range(count):
        message = consumer.receive(SOON)
        assert message is not None, f"only {received} came"
        received.append(message.body)
    return received


def left(service: Service, destination: Queue) -> list[str]:
    """What another client finds, with an R for each that may have been delivered before."""
    with factory(service).create_connection() as connection, connection.create_session() as session:
        consumer = session.create_consumer(destination)
        found = []
        while (message := consumer.receive(QUIET if found else 2.0)) is not None:
            found.append(message.body + (" R" if message.jms_redelivered else ""))
        return found


def is_empty(service: Service, destination: Queue) -> bool:
    """Nothing lies before what is sent now. What a crash gives back may come later."""
    with factory(service).create_connection() as connection, connection.create_session() as session:
        session.create_producer(destination).send("the end")
        return texts(session.create_consumer(destination), 1) == ["the end"]


def crash(connection: Connection) -> None:
    """The process of the client dies: nothing is said any more."""
    driver = connection._driver
    with driver.lock:
        driver._channel._socket._socket.shutdown(2)  # type: ignore[union-attr]
    await_true(lambda: connection.is_closed, SOON, "the connection does not notice")
    connection.close()
