"""The sections of a message (messaging 3.2), told apart without looking into its body.

    header | delivery-annotations | message-annotations | properties | application-properties | body | footer

The header is each transfer's own; delivery-annotations are for the next node, which is us. What follows is kept octet by octet, cut in two:

    Opening.octets      message-annotations, properties, application-properties, and the beginning of the body if that is data or an amqp-value which is
                        a string or binary: its descriptor, its constructor and its size
    the rest            from the content of that data, string or binary on; of other bodies all their sections; the footer

So the body of nearly all messages is what their sender calls it, whoever reads it, however large; and both, one after the other, are the message as it came.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import Any

from .composite import BY_CLASS, read_composite
from .decoding import decode, read_descriptor
from .encoding import write_binary
from .performatives import MessageHeader, MessageProperties
from .types import DEPTH_MAX, Malformed, Symbol, ULong

HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = 0x70, 0x71, 0x72, 0x73, 0x74
DATA, SEQUENCE, VALUE, FOOTER = 0x75, 0x76, 0x77, 0x78
NAMES = {
    "amqp:header:list": HEADER, "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS, "amqp:message-annotations:map": MESSAGE_ANNOTATIONS,
    "amqp:properties:list": PROPERTIES, "amqp:application-properties:map": APPLICATION_PROPERTIES, "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE, "amqp:amqp-value:*": VALUE, "amqp:footer:map": FOOTER,
}  # fmt: skip
LISTS, MAPS, BINARIES, STRINGS = (0x45, 0xC0, 0xD0), (0xC1, 0xD1), (0xA0, 0xB0), (0xA1, 0xB1)
REMEMBERED_OCTETS_MAX = 512
"""What stands before a body is remembered as it was read up to this size: most producers say the same of all their messages. Read, it may take a
hundred times as much."""

_U32 = Struct(">I").unpack_from


class Opening:
    """What comes before a body."""

    __slots__ = (
        "annotations_end", "application_properties_end", "body_at", "content", "content_octets", "header", "octets", "properties_end",
    )  # fmt: skip

    header: MessageHeader | None
    octets: bytes
    """To be kept."""
    annotations_end: int
    """Within octets, as the two that follow: 0 and equal where there is none."""
    properties_end: int
    application_properties_end: int
    content: type | None
    """bytes: of the section data; ULong: of an amqp-value that is binary; str: of one that is a string; None: the body begins with its first section."""
    content_octets: int
    """How many octets the content has; if the body has more, further sections follow."""
    body_at: int
    """Where the body begins in what was looked at."""

    def annotations(self) -> dict[Any, Any]:
        """Message-annotations. Not to be changed; the same holds for the two that follow. Raise Malformed."""
        return _map(self.octets[: self.annotations_end])

    def properties(self) -> MessageProperties:
        octets = self.octets[self.annotations_end : self.properties_end]
        if not octets:
            return NO_PROPERTIES
        found: MessageProperties = read_composite(octets, 0, len(octets))[0]
        return found

    def application_properties(self) -> dict[str, Any]:
        return _map(self.octets[self.properties_end : self.application_properties_end])

    @property
    def fields_said(self) -> int:
        """How many fields of `properties` are said, or a number that is larger: looked up without reading them."""
        at, end = self.annotations_end, self.properties_end
        if at == end:
            return 0
        octets = self.octets
        at = _section_at(octets, at)[1]
        return octets[at + 2] if octets[at] == 0xC0 else len(_PROPERTY_CLASSES)

    def property_values(self) -> list[Any]:
        """The fields of `properties` in their order, as many as are said: cheaper."""
        return self.placed_properties()[0]

    def placed_properties(self) -> tuple[list[Any], list[int]]:
        """The same, and where in `octets` each of them stands; nowhere if they are written in an unusual way."""
        at, end = self.annotations_end, self.properties_end
        if at == end:
            return NOTHING, NOWHERE
        octets = self.octets
        at = _section_at(octets, at)[1]
        if octets[at] == 0xC0:
            count, at = octets[at + 2], at + 3
        elif octets[at] == 0xD0:
            count, at = int(_U32(octets, at + 5)[0]), at + 9
        else:
            return _checked(decode(octets, at, end)[0]), NOWHERE
        if count > len(_PROPERTY_CLASSES):
            raise _no_properties()
        try:
            values, places, at = _placed(octets, at, end, count)
        except (IndexError, UnicodeDecodeError):
            raise Malformed("properties ends within a field, or has a string that is not valid UTF-8") from None
        if at != end:
            raise Malformed("properties does not end where its size says")
        return values, places


def _placed(octets: bytes, at: int, end: int, count: int) -> tuple[list[Any], list[int], int]:
    """Fields of `properties`: the commonest types by hand."""
    values: list[Any] = []
    places: list[int] = []
    for classes in _PROPERTY_CLASSES[:count]:
        places.append(at)
        code = octets[at]
        if code == 0x40:
            values.append(None)
            at += 1
            continue
        if code == 0xA1:
            start, at = at + 2, at + 2 + octets[at + 1]
            value: Any = octets[start:at].decode()
        elif code == 0xA3:
            start, at = at + 2, at + 2 + octets[at + 1]
            value = Symbol(octets[start:at], "ascii")
        else:
            value, at = decode(octets, at, end)
        if value.__class__ not in classes:
            raise Malformed("a field of properties is not of its type")
        values.append(value)
    return values, places, at


NOTHING: list[Any] = []
NOWHERE: list[int] = []
NO_PROPERTIES = MessageProperties()
_PROPERTY_CLASSES = [(type(None), *each.kind.classes) for each in BY_CLASS[MessageProperties].fields]


def _checked(values: Any) -> list[Any]:
    if values.__class__ is not list or len(values) > len(_PROPERTY_CLASSES):
        raise _no_properties()
    for value, classes in zip(values, _PROPERTY_CLASSES, strict=False):
        if value.__class__ not in classes:
            raise Malformed("a field of properties is not of its type")
    checked: list[Any] = values
    return checked


def _no_properties() -> Malformed:
    return Malformed(f"properties is no list of at most {len(_PROPERTY_CLASSES)} fields")


def _map(section: bytes) -> dict[Any, Any]:
    if not section:
        return NO_MAP
    return _remembered_map(section) if len(section) <= REMEMBERED_OCTETS_MAX else _map_of(section)


NO_MAP: dict[Any, Any] = {}


def _map_of(section: bytes) -> dict[Any, Any]:
    described, at = decode(section)
    if at != len(section) or described.value.__class__ is not dict:
        raise Malformed("a section that is a map does not end where its size says")
    found: dict[Any, Any] = described.value
    if any(not isinstance(name, str | ULong) for name in found):
        raise Malformed("a name in a section that is a map is neither a string nor a symbol")
    return found


_remembered_map = lru_cache(maxsize=256)(_map_of)


@lru_cache(maxsize=512)
def _header(section: bytes) -> MessageHeader:
    found, at = read_composite(section, 0, len(section))
    if at != len(section):
        raise Malformed("header does not end where its size says")
    made: MessageHeader = found
    return made


# -- reading --------------------------------------------------------------------------------------------------------------------------
def open_message(octets: bytes, *, complete: bool = True) -> Opening | None:
    """What comes before the body of the message. `complete`: these are all its octets; else None means that more are needed to tell. Raises Malformed."""
    try:
        opening = _open(octets, complete)
    except (IndexError, struct.error):
        opening = None
    if opening is None and complete:
        raise Malformed("a message ends within a section")
    return opening


def _open(octets: bytes, complete: bool) -> Opening | None:
    opening = Opening()
    header = None
    at, size, last, start = 0, len(octets), 0, -1
    annotations = properties = 0
    code = value_at = 0
    while at < size or not complete:
        if octets[at + 1] == 0x53 and not octets[at]:
            code, value_at = octets[at + 2], at + 3
        else:
            code, value_at = _section_at(octets, at)
        if code >= DATA:
            break
        if code <= last or code < HEADER:
            raise Malformed("the sections of a message are not in their order")
        end = value_at + 2 + octets[value_at + 1] if octets[value_at] in (0xC0, 0xC1) else _end_of(octets, value_at)
        if end > size:
            return None
        if code == HEADER:
            header = _header(octets[at:end])
        elif code >= MESSAGE_ANNOTATIONS and start < 0:
            start = at
        if code == MESSAGE_ANNOTATIONS:
            annotations = end
        elif code == PROPERTIES:
            properties = end
        at, last = end, code
    if start < 0:
        start = at
    content, content_octets, body_at = None, 0, at
    if code in (DATA, VALUE):
        content, content_octets, body_at = content_of(octets, code, value_at, at)
        if body_at > size:
            return None
    elif code > FOOTER:
        raise Malformed("a message has a section that is none")
    opening.header, opening.content, opening.content_octets, opening.body_at = header, content, content_octets, body_at
    opening.octets = octets[start:body_at]
    opening.annotations_end = max(annotations - start, 0)
    opening.properties_end = max(properties - start, opening.annotations_end)
    opening.application_properties_end = at - start
    return opening


def _section_at(octets: bytes, at: int) -> tuple[int, int]:
    """Which section it is, and where its value begins."""
    if octets[at]:
        raise Malformed("a section of a message is not described")
    if octets[at + 1] == 0x53:
        code, value_at = octets[at + 2], at + 3
    else:
        descriptor, value_at = read_descriptor(octets, at + 1)
        if value_at > len(octets):
            raise IndexError
        code = int(descriptor) if descriptor.__class__ is ULong else NAMES.get(str(descriptor), 0)
    if not HEADER <= code <= FOOTER:
        raise Malformed("a message has a section that is none")
    return code, value_at


def _end_of(octets: bytes, at: int, constructors: tuple[int, ...] = ()) -> int:
    """Of a value, which has one of these constructors, if any are given: how wide it is, its constructor tells (types, 1.2)."""
    code = octets[at]
    if constructors and code not in constructors:
        raise Malformed("a section of a message is not of its type")
    for _ in range(DEPTH_MAX):
        if code:
            break
        _, at = read_descriptor(octets, at + 1)
        code = octets[at]
    width = _WIDTHS[code >> 4]
    if width >= 0:
        return at + 1 + width
    if width == _SIZE_OF_ONE:
        return at + 2 + octets[at + 1]
    if width == _SIZE_OF_FOUR:
        return at + 5 + int(_U32(octets, at + 1)[0])
    raise Malformed(f"0x{code:02x} is no constructor of a value")


_SIZE_OF_ONE, _SIZE_OF_FOUR, _NONE = -1, -2, -3
_WIDTHS = (_NONE, _NONE, _NONE, _NONE, 0, 1, 2, 4, 8, 16, *[_SIZE_OF_ONE, _SIZE_OF_FOUR] * 3)
"""By the first half of a constructor."""


def content_of(octets: bytes, section: int, at: int, start: int) -> tuple[type | None, int, int]:
    """Of data, or of an amqp-value that is a string or binary: its class, its size, and where it begins. None: the section, which starts there, is kept
    whole."""
    code = octets[at]
    if code in BINARIES:
        kind: type = bytes if section == DATA else ULong
    elif section == DATA:
        raise Malformed("data is not binary")
    elif code in STRINGS:
        kind = str
    else:
        return None, 0, start
    return (kind, octets[at + 1], at + 2) if code < 0xB0 else (kind, int(_U32(octets, at + 1)[0]), at + 5)


def body_sections(opening: Opening, body: bytes) -> Iterator[tuple[int, bytes]]:
    """What a body consists of: which section, and its value with constructor; of data its content. Raises Malformed if it does not consist of sections; it
    does not look into them."""
    at = 0
    if opening.content is not None:
        at = opening.content_octets
        if at > len(body):
            raise Malformed("the body of a message ends within its content")
        yield (DATA, body[:at]) if opening.content is bytes else (VALUE, write_binary(body[:at]) if opening.content is ULong else _string(body[:at]))
    last = 0
    while at < len(body):
        try:
            code, value_at = _section_at(body, at)
            end = _end_of(body, value_at, _OF_BODY.get(code, ()))
        except (IndexError, struct.error):
            end = len(body) + 1
        if end > len(body):
            raise Malformed("a message ends within a section")
        if code < DATA or last == FOOTER:
            raise Malformed("the sections of a message are not in their order")
        yield code, body[value_at + (2 if body[value_at] == 0xA0 else 5) : end] if code == DATA else body[value_at:end]
        at, last = end, code


_OF_BODY = {DATA: BINARIES, SEQUENCE: LISTS, FOOTER: MAPS}


def _string(content: bytes) -> bytes:
    return b"\xb1" + len(content).to_bytes(4, "big") + content


def check_body(opening: Opening, body: bytes) -> None:
    """Raises Malformed if it does not consist of sections. Costs nothing where there is only one."""
    if opening.content is None or opening.content_octets != len(body):
        for _ in body_sections(opening, body):
            pass
