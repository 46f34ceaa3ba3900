"""Messages of AMQP as clients of STOMP get them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker_core.amqp.performatives import MessageHeader, MessageProperties
from broker_core.amqp.types import UUID, Array, Byte, Char, Decimal32, Described, Float, Int, Symbol, Timestamp, UByte, ULong
from broker_core.conversion import to_stomp
from broker_core.engine.dead import REASON
from broker_core.engine.message import Message, StoredBody
from broker_core.stomp.escaping import read_canonical
from tests.amqp.messages import NOW, data, message, section, value, written


def got(sent: Message, destination: str = "/queue/q") -> tuple[dict[str, str], bytes]:
    lines, beginning, body = to_stomp(sent, destination)
    assert isinstance(body, bytes)
    return read_canonical(lines), beginning + body


def headers_of(octets: bytes, destination: str = "/queue/q") -> dict[str, str]:
    return got(message(octets), destination)[0]


# -- what cannot be said --------------------------------------------------------------------------------------------------------------
def test_properties_that_would_be_taken_for_something_else_are_left_out() -> None:
    said = {"destination": "/queue/x", "type": "t", "content-length": 5, "ack": "a", REASON: "EXPIRED", "": "x", "null": None, "kept": "k"}
    assert headers_of(section(0x74, said) + value("x")) == {"destination": "/queue/q", "content-type": "text/plain;charset=utf-8", "kept": "k"}


def test_what_would_break_a_frame_or_its_bounds_is_left_out() -> None:
    headers = headers_of(section(0x74, {"a\0b": "c\0d", "long": "x" * 16_384, "line\nend": "1\r\n:2"}) + value("x"))
    assert headers["ab"] == "cd" and "long" not in headers and headers["line\nend"] == "1\r\n:2"
    many = headers_of(section(0x74, {f"p{number}": number for number in range(1000)}) + value("x"))
    assert len(many) <= 203


@pytest.mark.parametrize("body", [value([["x"]])[:-1] + b"\xff", section(0x77, [None] * 10)[:-1] + b"\xff", b"\0\x53\x77\xc1\x03\x02\x45\x40"])
def test_a_body_that_cannot_be_read_is_given_as_it_came(body: bytes) -> None:
    headers, octets = got(message(written(properties=MessageProperties(content_type="x/y"), body=body)))
    assert (headers["content-type"], octets) == ("application/amqp", body)


def test_a_large_body_in_several_sections_is_given_as_it_came() -> None:
    sent = message(written(body=data(b"one")))
    sent.body = StoredBody(9, 300_000)
    lines, beginning, body = to_stomp(sent, "/queue/q")
    assert (read_canonical(lines)["content-type"], beginning, body) == ("application/amqp", b"\0\x53\x75\xa0\x03", StoredBody(9, 300_000))


# -- bodies ---------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "content_type", "octets"),
    [
        (value("grüß"), "text/plain;charset=utf-8", "grüß".encode()),
        (value(""), "text/plain;charset=utf-8", b""),
        (value(b"\0\1"), "application/octet-stream", b"\0\1"),
        (data(b"\0\1"), "application/octet-stream", b"\0\1"),
        (data(b"one") + data(b"two"), "application/octet-stream", b"onetwo"),
        (data(b"one") + section(0x78, {}), "application/octet-stream", b"one"),
        (value("text") + section(0x78, {}), "text/plain;charset=utf-8", b"text"),
        (value(None), None, b""),
        (b"", None, b""),
        (value({"a": Int(1), "b": [True, 2.5, None]}), "application/json", b'{"a":1,"b":[true,2.5,null]}'),
        (section(0x76, [1, "x"]) + section(0x76, [2]), "application/json", b'[1,"x",2]'),
        (value(5), "application/json", b"5"),
        (value(Described(Symbol("x"), "y")), "application/json", b'"y"'),
    ],
)  # fmt: skip
def test_bodies(body: bytes, content_type: str | None, octets: bytes) -> None:
    headers, got_octets = got(message(body))
    assert (headers.get("content-type"), got_octets) == (content_type, octets)


@pytest.mark.parametrize(
    ("body", "content_type"), [(value("hello"), "text/plain;charset=utf-8"), (data(b"x"), "application/octet-stream"), (value([1]), None)]
)
def test_of_a_dead_message_without_its_body_nothing_is_left(body: bytes, content_type: str | None) -> None:
    sent = message(body)
    sent.body = b""
    headers, octets = got(sent)
    assert (headers.get("content-type"), octets) == (content_type, b"")


def test_a_stated_content_type_is_kept_where_the_octets_are_the_same() -> None:
    properties = MessageProperties(content_type="text/html")
    assert headers_of(written(properties=properties, body=data(b"<p>")))["content-type"] == "text/html"
    assert headers_of(written(properties=properties, body=value("<p>")))["content-type"] == "text/html"
    assert headers_of(written(properties=properties, body=value([1])))["content-type"] == "application/json"


def test_a_large_body_is_streamed() -> None:
    for body, content_type in ((data(b"x" * 300), "application/octet-stream"), (value("x" * 300), "text/plain;charset=utf-8")):
        sent = message(body)
        sent.body = StoredBody(9, 300)
        lines, beginning, got_body = to_stomp(sent, "/queue/q")
        assert (read_canonical(lines)["content-type"], beginning, got_body) == (content_type, b"", StoredBody(9, 300))


def test_what_json_has_not_is_said_as_text() -> None:
    said: dict[Any, Any] = {
        "bytes": b"\0\1", "nan": float("nan"), "inf": Float("-inf"), "uuid": UUID(bytes(range(16))), "char": Char("c"), "at": Timestamp(5), 7: "seven",
        "array": Array(int, [1, 2]), "big": ULong((1 << 64) - 1), "decimal": Decimal32(b"\0\0\0\1"), True: "yes",
    }  # fmt: skip
    _, octets = got(message(value(said)))
    assert json.loads(octets) == {
        "bytes": "AAE=", "nan": "NaN", "inf": "-Infinity", "uuid": "00010203-0405-0607-0809-0a0b0c0d0e0f", "char": "c", "at": 5, "7": "seven",
        "array": [1, 2], "big": (1 << 64) - 1, "decimal": "AAAAAQ==", "true": "yes",
    }  # fmt: skip


# -- fields and properties ------------------------------------------------------------------------------------------------------------
def test_fields_are_the_headers_that_clients_of_stomp_know() -> None:
    properties = MessageProperties(
        "ID:m", b"someone", "elsewhere", "order", "topic://answers", ULong(5), "text/plain", "gzip", None, NOW, "g", 0xFFFFFFFF
    )
    assert headers_of(written(MessageHeader(True, 7, 5000), properties)) == {
        "destination": "/queue/q", "persistent": "true", "priority": "7", "expires": str(NOW + 5000), "correlation-id": "ID:AMQP_ULONG:5",
        "reply-to": "/topic/answers", "type": "order", "content-type": "text/plain", "content-encoding": "gzip", "JMSXGroupID": "g", "JMSXGroupSeq": "-1",
        "JMSXUserID": "someone",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reply_to", "kind", "header"),
    [
        ("answers", None, "/queue/answers"), ("answers", 1, "/topic/answers"), ("answers", 3, "/temp-topic/answers"),
        ("queue://answers", None, "/queue/answers"),
        ("/topic/answers", None, "/topic/answers"), ("topic://answers", 0, "/queue/answers"), ("amqp://host/*", None, "amqp://host/*"),
    ],
)  # fmt: skip
def test_addresses_for_replies(reply_to: str, kind: int | None, header: str) -> None:
    said = b"" if kind is None else section(0x72, {Symbol("x-opt-jms-reply-to"): Byte(kind)})
    assert headers_of(said + written(properties=MessageProperties(reply_to=reply_to)))["reply-to"] == header


def test_a_subscription_to_a_pattern_is_told_the_topic() -> None:
    sent = section(0x72, {Symbol("x-opt-jms-dest"): Byte(1)}) + written(properties=MessageProperties(to="prices.tin"))
    assert headers_of(sent, "/topic/prices.*")["destination"] == "/topic/prices.tin"
    assert headers_of(sent, "/topic/other")["destination"] == "/topic/other"
    lines, _, _ = to_stomp(message(written()), "/topic/prices.*", {1: "topic/prices.lead"}.__getitem__)
    assert read_canonical(lines)["destination"] == "/topic/prices.lead"
    assert headers_of(written(), "/topic/prices.*")["destination"] == "/topic/prices.*", "it is gone"


def test_properties_are_headers_with_their_types_beside_them() -> None:
    said = {
        "yes": True, "count": Int(5), "small": UByte(7), "ratio": 0.5, "nan": float("nan"), "text": "x", "big": ULong(1 << 63), "octets": b"\0\1",
        "c": Char("c"),
    }  # fmt: skip
    headers = headers_of(section(0x74, said) + value("x"))
    assert {name: headers[name] for name in said} == {
        "yes": "true", "count": "5", "small": "7", "ratio": "0.5", "nan": "NaN", "text": "x", "big": str(1 << 63), "octets": "AAE=", "c": "c",
    }  # fmt: skip
    assert headers["property-types"] == "yes=bool,count=int,small=int,ratio=float,nan=float"


def test_a_dead_message_states_when_it_would_have_expired_not_its_retention() -> None:
    sent = message(written(properties=MessageProperties(absolute_expiry_time=NOW + 5)))
    sent.header.annotations, sent.header.expiration = f'{{"{REASON}":"EXPIRED"}}', NOW + 1_000_000
    assert got(sent)[0]["expires"] == str(NOW + 5)
