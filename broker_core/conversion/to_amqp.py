"""Messages of STOMP, and those that SQL sent, for clients of AMQP."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from broker_core.amqp.addresses import DESTINATION_KIND, REPLY_KIND
from broker_core.amqp.composite import NULL
from broker_core.amqp.encoding import encode, write_list, write_string, write_symbol
from broker_core.amqp.mapping import RELIABILITY
from broker_core.amqp.sections import REMEMBERED_OCTETS_MAX
from broker_core.amqp.types import Byte, Described, Int, Symbol, Timestamp, UInt, ULong
from broker_core.engine.message import Header, Message, StoredBody
from broker_core.engine.message_group import GROUP_ID, GROUP_SEQUENCE
from broker_core.stomp.escaping import read_canonical

from .words import BYTES, FIELDS, JSON, MAP, MESSAGE, MESSAGE_KIND, TEXT, TYPES, of_amqp
from .words import canonical as canonical_of

_START = {code: encode(Described(ULong(code), None))[:-1] for code in (0x72, 0x73, 0x74, 0x75, 0x77)}
"""How each section begins."""
INSTANT_MAX = (1 << 63) - 1
UTF_8 = ("", "utf-8", "utf8", "us-ascii", "ascii")
"""Charsets whose text is valid UTF-8."""


class ToAmqp:
    """Hand it to the protocol's machine: amqp.mapping.Convert."""

    def __init__(self, instance: str) -> None:
        """`instance` names this installation in message identifiers."""
        self._identity = f"ID:{instance}-"

    def __call__(self, message: Message) -> tuple[bytes, bytes | StoredBody]:
        header = message.header
        parts = (_remembered if len(header.octets) <= REMEMBERED_OCTETS_MAX else _parts)(header)
        body = message.body
        assert body is not None, "a body that is only in the store must be read before its message is written"
        kind, content_type, section, body = _body(parts.content_type, body)
        annotations = parts.annotations if kind is None else {**parts.annotations, Symbol(MESSAGE_KIND): Byte(kind)}
        before, after = parts.before, parts.after
        fields = [write_string(header.message_id or f"{self._identity}{message.sequence}"), *before]
        fields.append(write_symbol(content_type) if content_type else NULL)
        fields += [*parts.between, encode(Timestamp(message.accepted_at)), *after]
        octets = (_START[0x72] + encode(annotations) if annotations else b"") + _START[0x73] + write_list(fields)
        return octets + parts.properties + section, body


class _Parts:
    """What the same header section always comes to."""

    __slots__ = ("after", "annotations", "before", "between", "content_type", "properties")

    def __init__(self, headers: dict[str, str], expiration: int) -> None:
        self.content_type = headers.get("content-type", "")
        self.annotations: dict[Any, Any] = {}
        destination, reply_to = headers.get("destination", ""), headers.get("reply-to", "")
        to = self._address(destination, DESTINATION_KIND)
        replies = self._address(reply_to, REPLY_KIND)
        if "reliability" in headers:
            self.annotations[Symbol(RELIABILITY)] = headers["reliability"]
        user = headers.get("JMSXUserID")
        self.before = [_optional(each) for each in (None if user is None else user.encode(), to, headers.get("type"), replies, headers.get("correlation-id"))]
        encoding = headers.get("content-encoding")
        self.between = [
            write_symbol(encoding) if encoding and encoding.isascii() else NULL,
            encode(Timestamp(expiration)) if 0 < expiration <= INSTANT_MAX else NULL,
        ]
        group, sequence = headers.get(GROUP_ID), _whole(headers.get(GROUP_SEQUENCE, ""), 32)
        self.after = [] if not group else [write_string(group)] if sequence is None else [write_string(group), encode(UInt(sequence % (1 << 32)))]
        said = _properties(headers)
        self.properties = _START[0x74] + encode(said) if said else b""

    def _address(self, destination: str, annotation: str) -> str | None:
        if not destination:
            return None
        address = canonical_of(destination, None)
        if not address:
            return destination
        written, kind = of_amqp(address)
        self.annotations[Symbol(annotation)] = Byte(kind)
        return written


def _parts(header: Header) -> _Parts:
    headers = read_canonical(header.octets)
    expires = headers.get("expires", "")
    return _Parts(headers, int(expires) if expires.isascii() and expires.isdigit() and len(expires) <= 19 else 0)


_remembered = lru_cache(maxsize=1024)(_parts)


def _optional(value: str | bytes | None) -> bytes:
    return NULL if value is None else encode(value)


def _properties(headers: dict[str, str]) -> dict[str, Any]:
    """With the types that the sender told; one that does not fit its value is not believed."""
    said: dict[str, Any] = {name: value for name, value in headers.items() if name not in FIELDS}
    for each in headers.get(TYPES, "").split(","):
        name, _, kind = each.rpartition("=")
        if name in said and kind in _TYPED:
            said[name] = _TYPED[kind](headers[name])
    return said


def _integer(text: str) -> Any:
    """Of 32 bits if that is enough: who asks for more gets it from them, too (JMS 3.5.4)."""
    return text if _whole(text, 64) is None else _number(text)


def _float(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


_TYPED: dict[str, Callable[[str], Any]] = {"int": _integer, "float": _float, "bool": lambda text: {"true": True, "false": False}.get(text, text)}


def _whole(text: str, bits: int) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        return None
    value = int(text)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


# -- bodies ---------------------------------------------------------------------------------------------------------------------------
def _body(content_type: str, body: bytes | StoredBody) -> tuple[int | None, str, bytes, bytes | StoredBody]:
    """Its kind in JMS (None: an object, which says so itself), the content type that is stated, how its section begins if its content follows, and itself."""
    stated = content_type if content_type.isascii() else ""
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    if isinstance(body, bytes):
        if not body and not kind:
            return MESSAGE, "", b"", _START[0x77] + NULL
        if kind == JSON and (converted := _from_json(body)) is not None:
            return converted[0], "", b"", converted[1]
        if (not kind or (kind.startswith("text/") and _charset(parameters) in UTF_8)) and _is_utf8(body):
            return TEXT, stated, _START[0x77] + _size(0xA1, body), body
    textual = kind.startswith("text/") or kind == JSON
    return (TEXT if textual else BYTES), stated, _START[0x75] + _size(0xA0, body), body


def _charset(parameters: str) -> str:
    for each in parameters.split(";"):
        name, _, value = each.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower()
    return ""


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _size(short: int, body: bytes | StoredBody) -> bytes:
    """The constructor of a binary or a string, and its size."""
    size = len(body) if isinstance(body, bytes) else body.size
    return bytes((short, size)) if size < 256 else bytes((short + 0x10,)) + size.to_bytes(4, "big")


def _number(digits: str) -> int:
    value = int(digits)
    return Int(value) if -(1 << 31) <= value < 1 << 31 else value


def _from_json(body: bytes) -> tuple[int | None, bytes] | None:
    """Its kind and its section. None: it is not what AMQP can say: no JSON, numbers of more than 64 bits, too deep."""
    try:
        value = json.loads(body, parse_int=_number)
        section = _START[0x77] + encode(value)
    except (ValueError, RecursionError):
        return None
    return (MAP if isinstance(value, dict) else None), section
