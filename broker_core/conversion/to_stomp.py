"""Messages of AMQP for clients of STOMP."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from broker_core.amqp.addresses import DESTINATION_KIND, REPLY_KIND
from broker_core.amqp.decoding import decode
from broker_core.amqp.mapping import EXPIRY, GROUP, IN_GROUP, RELIABILITY, REPLY_TO, SUBJECT, TO, USER_ID, id_text, signed
from broker_core.amqp.sections import DATA, FOOTER, REMEMBERED_OCTETS_MAX, SEQUENCE, Opening, body_sections, open_message
from broker_core.amqp.types import UUID, Array, Described, Malformed
from broker_core.engine.dead import REASON
from broker_core.engine.levels import ASKED
from broker_core.engine.message import STORED, Header, Message, StoredBody
from broker_core.engine.message_group import GROUP_ID, GROUP_SEQUENCE
from broker_core.engine.pattern import has_wildcards
from broker_core.stomp.escaping import canonical as lines_of

from .words import FIELDS, JSON, OCTETS, PLAIN_TEXT, SECTIONS, TYPES, canonical

CORRELATION_ID, CONTENT_TYPE, CONTENT_ENCODING = 5, 6, 7
"""Places of properties' fields."""
LINE_OCTETS_MAX = 16_384
"""Of one header, as clients take it: a longer one is left out."""
HEADERS_MAX = 200
"""Clients take no more than 256, with those that every MESSAGE has."""


def unknown(_destination: int) -> str:
    """Of which destinations there are nothing is known."""
    return ""


def to_stomp(message: Message, destination: str, named: Callable[[int], str] = unknown) -> tuple[bytes, bytes, bytes | StoredBody]:
    """Canonical header lines, and the body in two pieces. `destination`: as the subscription has it, `/queue/orders`; for a pattern it is where the message
    lies. `named`: the address of the destination of this number, empty if it is gone; then it is what the sender called it, if he did."""
    header = message.header
    opening, headers = (_remembered if len(header.octets) <= REMEMBERED_OCTETS_MAX else _headers)(header)
    if has_wildcards(destination):
        address = named(message.destination)
        destination = f"/{address}" if address else headers.get("destination", destination)
    content_type, beginning, body = _body(opening, headers.get("content-type", ""), message.body)
    said = {"destination": destination, **{name: text for name, text in headers.items() if name not in ("destination", "content-type")}}
    if content_type:
        said["content-type"] = content_type
    return lines_of(said), beginning, body


def _headers(header: Header) -> tuple[Opening, dict[str, str]]:
    """What is the same for all that get the message: several subscriptions of a topic do."""
    opening = open_message(header.octets)
    assert opening is not None, "complete"
    annotations, properties = opening.annotations(), opening.application_properties()
    values = [*opening.property_values(), *[None] * 13][:13]
    headers: dict[str, str] = {}

    def say(name: str, text: str | None) -> None:
        text = text.replace("\0", "") if text else ""
        if text and len(text.encode()) <= LINE_OCTETS_MAX:
            headers[name] = text

    if to := canonical(values[TO], annotations.get(DESTINATION_KIND)):
        say("destination", f"/{to}")
    if header.reliability >= STORED:
        say("persistent", "true")
    if isinstance(level := annotations.get(RELIABILITY), str) and level in ASKED:
        say("reliability", str(level))
    if header.priority != 4:
        say("priority", str(header.priority))
    expiration = (values[EXPIRY] or 0) if REASON in header.annotations else header.expiration  # a dead message's is its retention
    if expiration:
        say("expires", str(int(expiration)))
    if values[CORRELATION_ID] is not None:
        say("correlation-id", id_text(values[CORRELATION_ID]))
    if values[REPLY_TO]:
        reply_to = canonical(values[REPLY_TO], annotations.get(REPLY_KIND))
        say("reply-to", f"/{reply_to}" if reply_to else values[REPLY_TO])
    say("type", values[SUBJECT])
    say("content-type", values[CONTENT_TYPE])
    say("content-encoding", values[CONTENT_ENCODING])
    say(GROUP_ID, values[GROUP])
    if values[GROUP] and values[IN_GROUP] is not None:
        say(GROUP_SEQUENCE, str(signed(values[IN_GROUP])))
    if values[USER_ID]:
        say("JMSXUserID", values[USER_ID].decode("utf-8", "replace"))
    _say_properties(properties, headers)
    return opening, headers


_remembered = lru_cache(maxsize=256)(_headers)


def _say_properties(properties: Mapping[str, Any], headers: dict[str, str]) -> None:
    types, size = [], 0
    for name, value in properties.items():
        text, kind = _text(value)
        name = name.replace("\0", "") if isinstance(name, str) else ""  # noqa: PLW2901
        if not name or text is None or name in FIELDS or name in headers or len(headers) >= HEADERS_MAX:
            continue
        text = text.replace("\0", "")
        if len(name.encode()) + len(text.encode()) >= LINE_OCTETS_MAX:
            continue
        headers[str(name)] = text
        if kind and not any(mark in name for mark in ",="):
            size += len(name.encode()) + len(kind) + 2
            if size < LINE_OCTETS_MAX:
                types.append(f"{name}={kind}")
    if types:
        headers[TYPES] = ",".join(types)


def _text(value: Any) -> tuple[str | None, str]:
    """A property as a header, and its type if that is no string. None: there is nothing to say."""
    if value is None:
        return None, ""
    if isinstance(value, bool):
        return ("true" if value else "false"), "bool"
    if isinstance(value, int):
        return str(int(value)), "int" if -(1 << 63) <= value < 1 << 63 else ""
    if isinstance(value, float):
        return number(value), "float"
    plain = as_json(value)
    return (plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)), ""


def number(value: float) -> str:
    """As Java's Double.valueOf takes it."""
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


# -- bodies ---------------------------------------------------------------------------------------------------------------------------
def _body(opening: Opening, said: str, body: bytes | StoredBody | None) -> tuple[str, bytes, bytes | StoredBody]:
    """Its content type and itself, in two pieces. `said`: the content type that the sender stated."""
    assert body is not None, "a body that is only in the store must be read before its message is written"
    size = body.size if isinstance(body, StoredBody) else len(body)
    if opening.content is not None and size in (opening.content_octets, 0):  # of a dead message without its body nothing is left
        return said or (PLAIN_TEXT if opening.content is str else OCTETS), b"", body
    if isinstance(body, bytes):
        try:
            return _converted(said, list(_parts(opening, body)))
        except (Malformed, RecursionError):
            pass
    return SECTIONS, opening.octets[opening.application_properties_end :], body


def _parts(opening: Opening, body: bytes) -> Iterator[tuple[int, Any]]:
    """Without the footer, which is for who transports it."""
    for section, octets in body_sections(opening, body):
        if section == DATA:
            yield section, octets
        elif section != FOOTER:
            value, at = decode(octets)
            if at != len(octets):
                raise Malformed("a section does not end with its value")
            yield section, value


def _converted(said: str, parts: list[tuple[int, Any]]) -> tuple[str, bytes, bytes]:
    if all(section == DATA for section, _ in parts):
        return said or (OCTETS if parts else ""), b"", b"".join([octets for _, octets in parts])
    values = [value for _, value in parts]
    value = values[0] if len(values) == 1 else values
    if parts[0][0] == SEQUENCE:
        value = [each for values in values for each in values]  # the sections are one stream
    if value is None:
        return said, b"", b""
    if isinstance(value, str):
        return said or PLAIN_TEXT, b"", value.encode()
    if value.__class__ is bytes:
        return said or OCTETS, b"", value
    return JSON, b"", json.dumps(as_json(value), ensure_ascii=False, separators=(",", ":")).encode()


def as_json(value: Any) -> Any:
    """What JSON can say of it: octets as base64, numbers that JSON has not as text, names as text, an array as a list, a described value as that value."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else number(value)
    if isinstance(value, UUID):
        return id_text(value).removeprefix("ID:AMQP_UUID:")
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Described):
        return as_json(value.value)
    if isinstance(value, Array):
        return [as_json(each) for each in value.values]
    if isinstance(value, dict):
        return {_name(key): as_json(each) for key, each in value.items()}
    return [as_json(each) for each in value]


def _name(key: Any) -> str:
    return str(key) if isinstance(key, str) else _text(key)[0] or "null"
