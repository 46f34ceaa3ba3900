"""Messages as clients encode them."""

from __future__ import annotations

from typing import Any

from broker_core.amqp.composite import write_composite
from broker_core.amqp.encoding import encode
from broker_core.amqp.arrivals import Arrivals
from broker_core.amqp.performatives import MessageHeader, MessageProperties
from broker_core.amqp.sections import open_message
from broker_core.amqp.types import Described, Symbol, ULong
from broker_core.engine.levels import UNMAPPED, LevelMapping
from broker_core.engine.message import Header, Message

NOW = 1_700_000_000_000


def section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


def annotated(**annotations: Any) -> bytes:
    return section(0x72, {Symbol("x-opt-" + name.replace("_", "-")): value for name, value in annotations.items()})


def value(content: Any) -> bytes:
    return section(0x77, content)


def data(content: bytes) -> bytes:
    return section(0x75, content)


def written(header: MessageHeader | None = None, properties: MessageProperties | None = None, body: bytes | None = None, **said: Any) -> bytes:
    """`said`: application properties."""
    parts = [] if header is None else [write_composite(header)]
    parts += [] if properties is None else [write_composite(properties)]
    parts += [section(0x74, said)] if said else []
    return b"".join([*parts, value("hello") if body is None else body])


def arrived(octets: bytes, mapping: LevelMapping = UNMAPPED) -> Header:
    found = Arrivals("a client", mapping).read(octets, NOW)
    assert found is not None
    return found.header


def message(octets: bytes, sequence: int = 7) -> Message:
    """As it is when it leaves the engine."""
    opening = open_message(octets)
    assert opening is not None
    made = Message(arrived(octets), octets[opening.body_at :], len(octets))
    made.sequence, made.accepted_at, made.destination, made.position = sequence, NOW, 1, 1
    return made
