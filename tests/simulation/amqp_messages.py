"""Messages as AMQP clients write and read them, for the auditor's eyes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from broker_core.amqp.composite import write_composite
from broker_core.amqp.decoding import decode
from broker_core.amqp.encoding import encode
from broker_core.amqp.arrivals import DELIVERY_DELAY, DUPLICATE_IDS, LAST_OF_GROUP
from broker_core.amqp.mapping import BROKERS_PREFIX, RELIABILITY
from broker_core.amqp.performatives import MessageHeader, MessageProperties
from broker_core.amqp.sections import DATA, body_sections, open_message
from broker_core.amqp.types import Described, Int, Symbol, Timestamp, UByte, UInt, ULong
from broker_core.engine.wishes import PRESERVE

from .audit import CLOSED, Known
from .session import LEVELS

LARGE = 1000
"""Octets from which on a body is one section: STOMP's clients get others as they are."""
KINDS = {"queue": "queue://", "topic": "topic://"}


@dataclass
class Received:
    uid: str
    body: bytes
    headers: dict[str, Any]
    """What the broker added, by the names that STOMP's headers have."""
    count: int
    """Its delivery-count."""


def spoken(address: str, random: Random) -> tuple[str, tuple[str, ...]]:
    """As a client writes it, and the capabilities that say its kind."""
    kind, _, name = address.partition("/")
    return random.choice(((KINDS[kind] + name, ()), (f"/{address}", ()), (name, (kind,)), (name, (kind,))))


def written(message: Known, random: Random, *, named: bool, to: str = "") -> bytes:
    """`named`: with its own name, by which it is known again. `to`: where it goes, if the link does not say it."""
    annotations: dict[Any, Any] = {Symbol(RELIABILITY): LEVELS[message.level]}
    if message.delay:
        annotations[Symbol(DELIVERY_DELAY)] = message.delay
    said: dict[str, Any] = {"colour": message.colour}
    if message.unkept:
        said[PRESERVE] = False
    if named:
        said[random.choice(DUPLICATE_IDS)] = message.uid
    properties = MessageProperties(to=to or None)
    if message.expires:
        properties.absolute_expiry_time = Timestamp(message.expires)
    if message.group:
        properties.group_id = message.group
        properties.group_sequence = UInt(LAST_OF_GROUP) if message.group == CLOSED and message.order % 2 else None
    header = MessageHeader(durable=message.level > 2, priority=UByte(message.priority))
    return b"".join((write_composite(header), section(0x72, annotations), write_composite(properties), section(0x74, said), _body(message.body, random)))


def section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


def _body(body: bytes, random: Random) -> bytes:
    """In any of the ways in which it is the same octets to whoever reads it."""
    form = random.choice(("text", "text", "data", "binary", "parts"))
    if form == "text":
        return section(0x77, body.decode())
    if form == "binary":
        return section(0x77, body)
    half = len(body) // 2 if form == "parts" and len(body) < LARGE else len(body)
    return b"".join(section(0x75, part) for part in (body[:half], body[half:]) if part)


def read(octets: bytes) -> Received:
    opening = open_message(octets)
    assert opening is not None and opening.header is not None, "each delivery has a header"
    content = octets[opening.body_at :]
    if opening.content is None or opening.content_octets != len(content):
        parts = [value if code == DATA else decode(value)[0] for code, value in body_sections(opening, content)]
        content = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    headers = {str(name).removeprefix(BROKERS_PREFIX): str(value) for name, value in opening.annotations().items()}
    count = int(opening.header.delivery_count)
    assert opening.header.first_acquirer == (count == 0), "a message that nobody had is nobody's second one"
    return Received(content.partition(b" ")[0].decode(), content, headers, count)


def whole(value: int) -> Int:
    """A whole number of 32 bits, as link properties have it."""
    return Int(value)
