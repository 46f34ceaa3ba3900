"""What tests of the Python client against a running node share."""

from __future__ import annotations

from typing import Any

from broker_core.client import AcknowledgeMode, Connection, ConnectionFactory, MessageConsumer, Queue, Topic, XAConnectionFactory
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


def fail(service: Service, queue: Queue, *texts: str) -> None:
    """Each is sent, received once and rolled back: dead, where the queue's redelivery_max is 0."""
    with factory(service).create_connection() as connection, connection.create_session(transacted=True) as session:
        fill(connection, queue, *texts)
        consumer = session.create_consumer(queue)
        for _ in texts:
            assert consumer.receive(SOON) is not None
            session.rollback()


def leave_in_doubt(service: Service, queue: Queue, transaction: str, branch: str, body: str) -> None:
    """A message sent in a transaction whose manager prepares it, and never comes back."""
    xa = XAConnectionFactory(address_list=f"stomp://127.0.0.1:{service.stomp_port}")
    with xa.create_xa_connection() as connection, connection.create_xa_session() as session:
        session.tpc_begin(session.xid(7, transaction, branch))
        session.create_producer(queue).send(body)
        session.tpc_prepare()


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
