"""Apache Qpid Proton, which nobody here wrote, as a referee: what it encodes is read here as it was meant, and what is written here it reads."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.amqp.decoding import decode
from broker_core.amqp.encoding import encode
from broker_core.amqp.mapping import delivery
from broker_core.amqp.performatives import MessageProperties
from broker_core.amqp.sections import check_body, open_message
from broker_core.amqp.types import UUID, Array, Byte, Char, Described, Float, Int, Short, Symbol, Timestamp, UByte, UInt, ULong, UShort
from broker_core.conversion import ToAmqp
from broker_core.engine.message import Header, Message
from broker_core.stomp.escaping import canonical
from tests.amqp.messages import NOW, message, value, written
from tests.amqp.values import SIMPLE, shown

proton = pytest.importorskip("proton", reason="python-qpid-proton is built where there is a C compiler")

CLASSES: dict[type, Any] = {
    Symbol: proton.symbol, UByte: proton.ubyte, UShort: proton.ushort,
    UInt: proton.uint, ULong: proton.ulong, Byte: proton.byte,
    Short: proton.short, Int: proton.int32, Timestamp: proton.timestamp,
    Float: proton.float32, Char: proton.char, UUID: lambda said: uuid.UUID(bytes=bytes(said)),
}  # fmt: skip
KNOWN = [kind for kind in SIMPLE if not kind.__name__.startswith("Decimal")]
"""Proton's Python binding has no decimals that can be compared."""
THEIRS = st.one_of([SIMPLE[kind] for kind in KNOWN if kind is not Timestamp] + [st.integers(0, 1 << 50).map(Timestamp)])
# What is described twice Proton reads and cannot write again.
COMPOUND = st.recursive(
    THEIRS,
    lambda within: st.one_of(
        st.lists(within, max_size=5),
        st.dictionaries(st.text(max_size=5) | SIMPLE[int] | SIMPLE[Symbol].map(lambda text: Symbol("s" + text)), within, max_size=5),
        st.builds(Described, SIMPLE[ULong] | SIMPLE[Symbol], within.filter(lambda said: not isinstance(said, Described))),
    ),
    max_leaves=8,
)


def theirs(said: Any) -> Any:
    kind = said.__class__
    if kind is list:
        return [theirs(each) for each in said]
    if kind is dict:
        return {theirs(key): theirs(each) for key, each in said.items()}
    if kind is Described:
        return proton.Described(theirs(said.descriptor), theirs(said.value))
    return CLASSES[kind](said) if kind in CLASSES else said


def by_proton(said: Any) -> bytes:
    datum = proton.Data()
    datum.put_object(theirs(said))
    return bytes(datum.encode())


def read_by_proton(octets: bytes) -> Any:
    datum = proton.Data()
    assert datum.decode(octets) == len(octets)
    datum.rewind()
    datum.next()
    return datum.get_object()


# -- values ---------------------------------------------------------------------------------------------------------------------------
@given(COMPOUND)
@settings(deadline=None, max_examples=400)
def test_what_it_encodes_is_read(said: Any) -> None:
    octets = by_proton(said)
    read, at = decode(octets)
    assert at == len(octets)
    assert shown(read) == shown(said)


@given(COMPOUND)
@settings(deadline=None, max_examples=400)
def test_it_reads_what_is_written(said: Any) -> None:
    datum = proton.Data()
    octets = encode(said)
    assert datum.decode(octets) == len(octets)
    assert shown(decode(bytes(datum.encode()))[0]) == shown(said)


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (Array(int, [1, -2]), "LONG"), (Array(Symbol, [Symbol("a"), Symbol("b")]), "SYMBOL"), (Array(str, ["x", "y" * 300]), "STRING"),
        (Array(UInt, [UInt(0)]), "UINT"), (Array(bool, [True, False]), "BOOL"),
    ],
)  # fmt: skip
def test_arrays_both_ways(array: Array, kind: str) -> None:
    code = getattr(proton.Data, kind)
    octets = by_proton_array(array, code)
    assert decode(octets) == (array, len(octets))
    assert list(read_by_proton(encode(array)).elements) == array.values


def by_proton_array(array: Array, code: int) -> bytes:
    datum = proton.Data()
    datum.put_object(proton.Array(proton.UNDESCRIBED, code, *[theirs(each) for each in array.values]))
    return bytes(datum.encode())


# -- messages -------------------------------------------------------------------------------------------------------------------------
def test_its_messages_are_read() -> None:
    said = proton.Message(
        id="ID:1", user_id=b"me", address="q", subject="s", reply_to="r", correlation_id=uuid.UUID(int=5), content_type=proton.symbol("text/plain"),
        durable=True, priority=7, ttl=1.5, first_acquirer=True, delivery_count=2, group_id="g", group_sequence=3, reply_to_group_id="rg",
        creation_time=5.5, expiry_time=9.25, properties={"a": 1, "b": "x", "c": True, "d": 2.5, "e": None},
        annotations={proton.symbol("x-opt-one"): 1}, instructions={proton.symbol("x-opt-two"): 2}, body={"k": [1, 2]},
    )  # fmt: skip
    octets = bytes(said.encode())
    opening = open_message(octets)
    assert opening is not None and opening.header is not None
    check_body(opening, octets[opening.body_at :])
    assert (opening.header.durable, opening.header.priority, opening.header.ttl, opening.header.delivery_count) == (True, 7, 1500, 2)
    assert opening.properties() == MessageProperties(
        "ID:1", b"me", "q", "s", "r", UUID(uuid.UUID(int=5).bytes), "text/plain", None, 9250, 5500, "g", 3, "rg"
    )
    assert opening.application_properties() == {"a": 1, "b": "x", "c": True, "d": 2.5, "e": None}
    assert opening.annotations() == {"x-opt-one": 1}


@pytest.mark.parametrize("body", ["text", b"octets", None, 5, {"a": [1, None]}, ["x"], True, "x" * 70_000])
def test_it_reads_what_is_delivered(body: Any) -> None:
    sent = message(written(properties=MessageProperties("ID:1", subject="s"), body=value(body), count=5))
    octets, rest = delivery(sent, NOW, ToAmqp("here"))
    assert isinstance(rest, bytes)
    got = proton.Message()
    got.decode(octets + rest)
    assert (got.body, got.subject, got.id, got.properties) == (body, "s", "ID:1", {"count": 5})


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [("text/plain", b"gr\xc3\xbc", "grü"), ("application/octet-stream", b"\0", b"\0"), ("application/json", b'{"a":[1]}', {"a": [1]})],
)
def test_it_reads_what_came_by_stomp(content_type: str, body: bytes, expected: Any) -> None:
    headers = {"destination": "/topic/t", "content-type": content_type, "count": "5", "property-types": "count=int", "reply-to": "/queue/r", "type": "s"}
    sent = Message(Header(canonical(headers), priority=7), body, len(body))
    sent.sequence, sent.accepted_at = 7, NOW
    octets, rest = delivery(sent, NOW, ToAmqp("here"))
    assert isinstance(rest, bytes)
    got = proton.Message()
    got.decode(octets + rest)
    assert (got.body, got.subject, got.id, got.properties) == (expected, "s", "ID:here-7", {"count": 5})
    assert (got.priority, got.address, got.reply_to, got.creation_time) == (7, "topic://t", "r", NOW / 1000)
    assert got.annotations[proton.symbol("x-opt-jms-dest")] == 1
