"""The STOMP machine, told how to say messages of AMQP."""

from __future__ import annotations

import pytest

from broker_core.amqp.performatives import MessageHeader, MessageProperties
from broker_core.conversion import to_stomp
from broker_core.engine.dead import REASON
from broker_core.engine.message import StoredBody
from broker_core.stomp.connection import Connection
from tests.amqp.messages import NOW, data, message, section, value, written
from tests.stomp.conversation import INSTANCE, PEER, Client, Frame


@pytest.fixture(params=["1.0", "1.1", "1.2"])
def client(request: pytest.FixtureRequest) -> Client:
    made = Client(request.param)
    made.machine = Connection(PEER, made.limits, "Surety/0.1.0", INSTANCE, made.now, None, to_stomp)
    made.connects()
    return made


def heard(client: Client) -> Frame:
    (frame,) = client.hears()
    assert frame.command == "MESSAGE"
    return frame


def test_a_message_of_amqp_has_its_fields_properties_and_text(client: Client) -> None:
    sent = message(written(MessageHeader(True, 7), MessageProperties("ID:mine", subject="order", correlation_id="c-1"), value("grüß"), count=5))
    client.is_delivered(client.subscribes(b"auto"), sent)
    frame = heard(client)
    assert frame.body == "grüß".encode()
    expected = {
        "message-id": "ID:mine", "timestamp": str(NOW), "destination": "/queue/a", "persistent": "true", "priority": "7", "correlation-id": "c-1",
        "type": "order", "content-type": "text/plain;charset=utf-8", "count": "5", "property-types": "count=int", "content-length": "6",
    }  # fmt: skip
    assert {name: frame.headers[name] for name in expected} == expected


def test_a_message_identifier_is_the_brokers_where_the_sender_gave_none(client: Client) -> None:
    client.is_delivered(client.subscribes(b"auto"), message(written()))
    assert heard(client).headers["message-id"] == f"ID:{INSTANCE}-7"


def test_a_dead_message_tells_its_reason_which_its_sender_cannot(client: Client) -> None:
    sent = message(section(0x74, {REASON: "forged", "p": "x"}) + value("x"))
    sent.header.annotations = f'{{"{REASON}":"EXPIRED"}}'
    client.is_delivered(client.subscribes(b"auto"), sent)
    headers = heard(client).headers
    assert (headers[REASON], headers["p"]) == ("EXPIRED", "x")


def test_a_large_body_is_streamed_as_it_is_stored(client: Client) -> None:
    sent = message(written(body=data(b"x" * 300)))
    sent.body = StoredBody(9, 300)
    client.is_delivered(client.subscribes(b"auto"), sent)
    octets = client.octets()
    assert b"content-type:application/octet-stream" in octets
    assert b"content-length:300\n" in octets and octets.endswith(b"\n\n<body 9>\0")


def test_a_large_body_in_several_sections_is_streamed_behind_how_the_first_begins(client: Client) -> None:
    sent = message(written(body=data(b"x" * 300)))
    sent.body = StoredBody(9, 400)
    client.is_delivered(client.subscribes(b"auto"), sent)
    octets = client.octets()
    assert b"content-length:408\n" in octets and octets.endswith(b"\n\n\0\x53\x75\xb0\0\0\x01\x2c<body 9>\0")
