"""An operator closes a consumer: by AMQP its connection goes on, by STOMP it is closed with its connection only."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.commands import done, refused
from tests.support.clients import Connection
from tests.support.service import Service


def consumer_of(service: Service, queue: str) -> str:
    """The number of the only one."""
    items = json.loads(done(service, "mq", "list", "con", "--json", "--all"))["items"]
    (number,) = [item["consumer"] for item in items if item["destination"] == f"queue/{queue}"]
    return str(number)


def test_an_operator_closes_a_consumer_and_its_connection_goes_on(service: Service, queue: str) -> None:
    from tests.acceptance import proton_client  # which may not be installed

    with proton_client.connected(service) as connection:
        sender = connection.create_sender(queue)
        sender.send(proton_client.proton.Message(body="a", durable=True))
        receiver = connection.create_receiver(queue, credit=1)
        assert proton_client.receive(receiver, accept=False).body == "a"
        done(service, "mq", "destroy", "con", consumer_of(service, queue), "--reason", "it hangs", "--force")
        with pytest.raises(proton_client.proton.utils.LinkDetached, match=r"detach-forced.*it hangs"):
            receiver.receive(timeout=proton_client.PATIENCE)
        sender.send(proton_client.proton.Message(body="b", durable=True))
        again = connection.create_receiver(queue, credit=2)
        assert [proton_client.receive(again).body for _ in range(2)] == ["a", "b"]


def test_a_consumer_by_stomp_is_closed_with_its_connection_only(service: Service, queue: str) -> None:
    with Connection(service.stomp_port) as client:
        client.subscribe(f"/queue/{queue}")
        number = consumer_of(service, queue)
        assert "close connection" in refused(service, "mq", "destroy", "con", number, "--reason", "it hangs", "--force")
        client.confirmed("SEND", {"destination": f"/queue/{queue}"}, b"x")
        assert client.expect("MESSAGE").body == b"x", "it goes on"
