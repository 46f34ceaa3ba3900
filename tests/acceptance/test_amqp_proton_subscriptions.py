"""Subscriptions of topics with python-qpid-proton: durable, shared, ended by their names as JMS clients do it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.service import Service

# isort: split
from tests.acceptance.proton_client import Capable, connected, gets_nothing, receive

# isort: split
from proton import Message
from proton.reactor import DurableSubscription
from proton.utils import BlockingConnection, LinkDetached


@pytest.fixture
def connection(service: Service, queue: str) -> Iterator[BlockingConnection]:
    with connected(service, container=f"container of {queue}") as made:
        yield made


def detach(connection: BlockingConnection, *receivers: Any) -> None:
    for receiver in receivers:
        receiver.link.detach()
    connection.container.do_work(0.3)


def test_workers_share_a_subscription(connection: BlockingConnection, queue: str) -> None:
    one, two = (connection.create_receiver(f"topic://{queue}", credit=1, name=name, options=[Capable("shared")]) for name in ("s|volatile1", "s|volatile2"))
    sender = connection.create_sender(f"topic://{queue}")
    for body in ("a", "b"):
        sender.send(Message(body=body))
    assert {receive(one).body, receive(two).body} == {"a", "b"}
    gets_nothing(one)


def test_workers_of_several_containers_share_a_subscription(service: Service, connection: BlockingConnection, queue: str) -> None:
    with connected(service) as other:
        names = [f"{queue}|global-volatile1", f"{queue}|global-volatile2"]
        one = connection.create_receiver(f"topic://{queue}", credit=1, name=names[0], options=[Capable("shared", "global")])
        two = other.create_receiver(f"topic://{queue}", credit=1, name=names[1], options=[Capable("shared", "global")])
        sender = connection.create_sender(f"topic://{queue}")
        for body in ("a", "b"):
            sender.send(Message(body=body))
        assert {receive(one).body, receive(two).body} == {"a", "b"}


def test_a_durable_subscription_that_is_shared_is_kept_and_ended_by_its_name(connection: BlockingConnection, queue: str) -> None:
    durable, topic = [DurableSubscription(), Capable("shared")], f"topic://{queue}"
    one, two = (connection.create_receiver(topic, credit=1, name=name, options=durable) for name in ("sub", "sub|2"))
    sender = connection.create_sender(topic)
    for body in ("a", "b"):
        sender.send(Message(body=body, durable=True))
    assert {receive(one).body, receive(two).body} == {"a", "b"}
    detach(connection, one, two)
    sender.send(Message(body="kept", durable=True))
    three = connection.create_receiver(topic, credit=1, name="sub|3", options=durable)
    assert receive(three).body == "kept"
    detach(connection, three)
    connection.create_receiver(None, name="sub", options=[Capable("shared")]).close()
    with pytest.raises(LinkDetached, match="not-found"):
        connection.create_receiver(None, name="sub", options=[Capable("shared")])


def test_a_durable_subscription_is_ended_by_its_name(connection: BlockingConnection, queue: str) -> None:
    detach(connection, connection.create_receiver(f"topic://{queue}", name="sub", options=[DurableSubscription()]))
    found = connection.create_receiver(None, name="sub")
    assert found.link.remote_source.address == f"topic://{queue}"
    found.close()
    with pytest.raises(LinkDetached, match="not-found"):
        connection.create_receiver(None, name="sub")
