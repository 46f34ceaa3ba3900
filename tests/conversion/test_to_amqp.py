"""Messages of STOMP, and those that SQL sent, as clients of AMQP get them."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.amqp.decoding import decode
from broker_core.amqp.mapping import delivery
from broker_core.amqp.performatives import MessageHeader, MessageProperties
from broker_core.amqp.sections import Opening, body_sections, check_body, open_message
from broker_core.amqp.types import Byte, Int, Symbol
from broker_core.conversion import ToAmqp, to_stomp
from broker_core.engine.dead import REASON
from broker_core.engine.message import Header, Message, Reliability, StoredBody
from broker_core.stomp.escaping import canonical, read_canonical
from tests.amqp.messages import NOW, message, section, value

TO_AMQP = ToAmqp("here")
TEXT, BYTES, MAP = Byte(5), Byte(3), Byte(2)


def sent(headers: dict[str, str], body: bytes | StoredBody = b"hello", **said: Any) -> Message:
    size = len(body) if isinstance(body, bytes) else body.size
    message = Message(Header(canonical({"destination": "/queue/q", **headers}), **said), body, size)
    message.sequence, message.accepted_at = 7, NOW
    return message


def got(message: Message) -> tuple[Opening, Any]:
    """And its body: octets of data, or the value."""
    octets, body = TO_AMQP(message)
    opening = open_message(octets)
    assert opening is not None and opening.octets == octets
    if isinstance(body, StoredBody):
        return opening, body
    check_body(opening, body)
    ((section, content),) = list(body_sections(opening, body))
    return opening, content if section == 0x75 else decode(content)[0]


def kind_of(opening: Opening) -> Any:
    return opening.annotations().get(Symbol("x-opt-jms-msg-type"))


# -- bodies ---------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("content_type", "body", "value", "kind", "stated"),
    [
        (None, b"hello", "hello", TEXT, None),
        ("text/plain;charset=utf-8", "grüß".encode(), "grüß", TEXT, "text/plain;charset=utf-8"),
        ("text/html", b"x" * 300, "x" * 300, TEXT, "text/html"),
        ("text/plain", b"", "", TEXT, "text/plain"),
        ("text/plain;charset=latin1", b"\xe4", b"\xe4", TEXT, "text/plain;charset=latin1"),
        ("text/plain", b"\xe4", b"\xe4", TEXT, "text/plain"),
        (None, b"\xe4", b"\xe4", BYTES, None),
        (None, b"", None, Byte(0), None),
        ("application/octet-stream", b"hello", b"hello", BYTES, "application/octet-stream"),
        ("image/png", bytes(300), bytes(300), BYTES, "image/png"),
        ("application/json", b'{"a":1,"b":[true,null,"x",1.5]}', {"a": Int(1), "b": [True, None, "x", 1.5]}, MAP, None),
        ("application/json; charset=utf-8", b'{"big":4294967296}', {"big": 1 << 32}, MAP, None),
        ("application/json", b"[1]", [Int(1)], None, None),
        ("application/json", b"{", b"{", TEXT, "application/json"),
        ("application/json", b"18446744073709551616", b"18446744073709551616", TEXT, "application/json"),
        ("application/json", b"[" * 5000 + b"]" * 5000, b"[" * 5000 + b"]" * 5000, TEXT, "application/json"),
        ("application/json", b'"\\ud800"', b'"\\ud800"', TEXT, "application/json"),
    ],
)
def test_bodies(content_type: str | None, body: bytes, value: object, kind: object, stated: str | None) -> None:
    opening, found = got(sent({} if content_type is None else {"content-type": content_type}, body))
    assert (found, kind_of(opening), opening.properties().content_type) == (value, kind, stated)


@pytest.mark.parametrize(("content_type", "kind"), [("text/plain", TEXT), ("application/json", TEXT), ("image/png", BYTES)])
def test_a_large_body_is_streamed_as_data(content_type: str, kind: object) -> None:
    opening, body = got(sent({"content-type": content_type}, StoredBody(9, 300_000)))
    assert (body, opening.content, opening.content_octets, kind_of(opening)) == (StoredBody(9, 300_000), bytes, 300_000, kind)
    assert opening.properties().content_type == content_type


# -- fields and properties ------------------------------------------------------------------------------------------------------------
def test_headers_are_the_fields_that_clients_of_amqp_know() -> None:
    headers = {
        "correlation-id": "c-1", "reply-to": "/topic/answers", "type": "order", "expires": str(NOW + 9000), "JMSXGroupID": "g", "JMSXGroupSeq": "-1",
        "JMSXUserID": "someone", "priority": "7", "persistent": "true", "reliability": "assured", "content-encoding": "gzip", "receipt": "r",
    }  # fmt: skip
    opening, _ = got(sent(headers))
    assert opening.properties() == MessageProperties(
        "ID:here-7", b"someone", "q", "order", "topic://answers", "c-1", None, "gzip", NOW + 9000, NOW, "g", 0xFFFFFFFF
    )
    assert opening.annotations() == {
        "x-opt-jms-dest": Byte(0), "x-opt-jms-reply-to": Byte(1), "x-opt-reliability": "assured", "x-opt-jms-msg-type": TEXT,
    }  # fmt: skip
    assert opening.application_properties() == {}


@pytest.mark.parametrize(
    ("destination", "to", "kind"),
    [("/queue/q", "q", 0), ("/topic/t", "topic://t", 1), ("/temp-queue/x-1.y", "temp-queue://x-1.y", 2), ("q", "q", 0), ("/queue/topic://x", None, None)],
)
def test_addresses(destination: str, to: str | None, kind: int | None) -> None:
    opening, _ = got(sent({"destination": destination}))
    if to is not None:
        assert (opening.properties().to, opening.annotations()["x-opt-jms-dest"]) == (to, Byte(kind or 0))


def test_properties_have_the_types_that_the_sender_told() -> None:
    headers = {
        "text": "5", "count": "5", "big": "4294967296", "ratio": "0.5", "yes": "true", "wrong": "x", "odd=name": "z",
        "property-types": "count=int,big=int,ratio=float,yes=bool,wrong=int,missing=int,text=date",
    }  # fmt: skip
    opening, _ = got(sent(headers))
    properties = opening.application_properties()
    assert properties == {"text": "5", "count": 5, "big": 1 << 32, "ratio": 0.5, "yes": True, "wrong": "x", "odd=name": "z"}
    assert [type(properties[name]) for name in ("count", "big", "ratio", "yes")] == [Int, int, float, bool]


def test_a_message_identifier_that_was_given_is_kept() -> None:
    assert got(sent({}, message_id="ID:other-5"))[0].properties().message_id == "ID:other-5"


def test_a_message_that_sql_sent_without_headers() -> None:
    message = Message(Header(b""), b"hello", 5)
    message.sequence, message.accepted_at = 7, NOW
    opening, value = got(message)
    assert (value, opening.properties()) == ("hello", MessageProperties("ID:here-7", creation_time=NOW))


def test_a_dead_message_has_its_reason_as_an_annotation() -> None:
    message = sent({"expires": str(NOW - 5)}, reliability=Reliability.ASSURED, annotations=f'{{"{REASON}":"EXPIRED"}}', expiration=NOW + 1000)
    octets, _ = delivery(message, NOW, TO_AMQP)
    opening = open_message(octets)
    assert opening is not None
    assert (opening.header, opening.annotations()[f"x-opt-{REASON}"]) == (MessageHeader(True, 4, 1000, True), "EXPIRED")
    assert opening.properties().absolute_expiry_time is None, "else JMS clients would throw it away when they see it"


# -- there and back -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain;charset=utf-8", "grüß".encode()), ("application/octet-stream", b"\0\1"),
        ("application/json", b'{"a":1,"b":[true,null,"x",1.5,4294967296]}'),
        ("application/json", b"[1,2]"), ("image/png", b"\x89PNG"), ("application/json", b"{"),
    ],
)  # fmt: skip
def test_what_goes_there_comes_back(content_type: str, body: bytes) -> None:
    headers = {
        "destination": "/topic/t", "content-type": content_type, "correlation-id": "c:1", "reply-to": "/queue/answers", "type": "order", "text": "a\nb",
        "count": "5", "yes": "true", "ratio": "0.5", "property-types": "count=int,yes=bool,ratio=float", "JMSXGroupID": "g", "JMSXGroupSeq": "3",
    }  # fmt: skip
    octets, converted = TO_AMQP(sent(headers, body))
    opening = open_message(octets)
    assert opening is not None and isinstance(converted, bytes)
    returned = Message(Header(octets, encoding=1), converted, len(body))
    lines, beginning, back = to_stomp(returned, "/topic/t")
    assert isinstance(back, bytes)
    assert read_canonical(lines) == headers
    assert beginning + back == body


def test_a_trace_goes_through_both_ways_as_it_is() -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1,b=2"}
    opening, _ = got(sent(trace))
    assert {name: opening.application_properties()[name] for name in trace} == trace
    back = read_canonical(to_stomp(message(section(0x74, trace) + value("x")), "/queue/q")[0])
    assert {name: back[name] for name in trace} == trace
