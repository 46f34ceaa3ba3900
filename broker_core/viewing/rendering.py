"""One message in a form that people read: its headers by the names that STOMP has for them, its properties with their types, what the broker added, and
its body as text, JSON or octets in hex, cut where it is long. Messages of AMQP are converted as they are for clients of STOMP."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from broker_core.conversion import decode, to_stomp
from broker_core.conversion.words import FIELDS, JSON
from broker_core.engine.message import Message, StoredBody
from broker_core.engine.properties import Value
from broker_core.stomp.escaping import read_canonical

TEXT, MAP, LIST, BYTES, EMPTY, UNKNOWN = KINDS = ("text", "map", "list", "bytes", "empty", "unknown")
"""A JSON object is a map. unknown: its body is not to be had any more."""
SHOWN_OCTETS = 64 << 10
"""Of a body; the rest is for download."""
HEX_OCTETS = 1 << 10
"""Of a body that is no text."""
LEVELS_MAX = 100
"""Of a body in JSON that is shown as such."""
_HALF = re.compile("[\ud800-\udfff]")
PLAIN, OCTETS = "text/plain", "application/octet-stream"
"""Media types under which a body is handed out, whatever its sender calls it: no browser shall run it."""


@dataclass(slots=True, frozen=True)
class Content:
    """A body as clients of STOMP get it."""

    content_type: str
    """As stated; empty: it is not."""
    beginning: bytes
    """Before a large body, if it can only be given as the sections that it came in."""
    body: bytes | StoredBody

    @property
    def size(self) -> int:
        return len(self.beginning) + (self.body.size if isinstance(self.body, StoredBody) else len(self.body))

    @property
    def media_type(self) -> str:
        """One that does no harm."""
        return PLAIN if self._stated == JSON or self._stated.startswith("text/") else OCTETS

    @property
    def ending(self) -> str:
        """Of its file."""
        return "json" if self._stated == JSON else "txt" if self.media_type == PLAIN else "bin"

    @property
    def _stated(self) -> str:
        return self.content_type.partition(";")[0].strip().lower()


@dataclass(slots=True, frozen=True)
class ShownBody:
    kind: str
    """One of KINDS."""
    content_type: str
    size: int
    """Octets, of all of it."""
    text: str | None
    """Of text and of JSON."""
    value: Any
    """What JSON says, if all of it is shown."""
    hex: str | None
    """The first octets of what is no text."""
    truncated: bool


def headers_of(message: Message) -> tuple[dict[str, str], dict[str, Value], dict[str, Any]]:
    """Headers, properties, and what the broker added (why it died, for example)."""
    header = message.header
    said = read_canonical(to_stomp(_without_body(message), "")[0] if header.encoding else header.octets)
    headers = {name: value for name, value in said.items() if name in FIELDS and (name != "destination" or value)}
    decoded = decode(header)
    typed = {name: decoded.get(name, value) for name, value in said.items() if name not in FIELDS}
    return headers, typed, added_of(message)


def added_of(message: Message) -> dict[str, Any]:
    """By the broker."""
    return json.loads(message.header.annotations) if message.header.annotations else {}


def _without_body(message: Message) -> Message:
    """Headers are the same whatever the body is; of some bodies the content type is not stated."""
    if message.body is not None:
        return message
    other = message.again()
    other.body = b""
    return other


def content_of(message: Message) -> Content | None:
    """None: its body is not at hand."""
    body = message.body
    if body is None:
        return None
    if not message.header.encoding:
        return Content(read_canonical(message.header.octets).get("content-type", ""), b"", body)
    lines, beginning, body = to_stomp(message, "")
    return Content(read_canonical(lines).get("content-type", ""), beginning, body)


def shown(content: Content | None, head: bytes = b"") -> ShownBody:
    """`head`: the first octets of a large body."""
    if content is None:
        return ShownBody(UNKNOWN, "", 0, None, None, None, False)
    octets = content.beginning + (head if isinstance(content.body, StoredBody) else content.body)
    size, cut = content.size, octets[:SHOWN_OCTETS]
    if not size:
        return ShownBody(EMPTY, content.content_type, 0, None, None, None, False)
    whole = len(cut) == size
    text = _text(cut, whole=whole)
    if text is None:
        return ShownBody(BYTES, content.content_type, size, None, None, cut[:HEX_OCTETS].hex(), size > HEX_OCTETS)
    value = _json(text) if whole and (content.content_type.partition(";")[0].strip().lower() == JSON or text.lstrip()[:1] in ("{", "[")) else None
    kind = MAP if isinstance(value, dict) else LIST if isinstance(value, list) else TEXT
    return ShownBody(kind, content.content_type, size, text, value if kind != TEXT else None, None, not whole)


def _text(octets: bytes, *, whole: bool) -> str | None:
    """None: these are no text. A character that is cut in the middle is left away."""
    try:
        text = octets.decode()
    except UnicodeDecodeError as error:
        if whole or error.start < len(octets) - 3:
            return None
        text = octets[: error.start].decode()
    return None if any(letter < " " and letter not in "\t\n\r\f\x1b" for letter in text) else text


def _json(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return value if _can_be_written(value) else None


def _can_be_written(value: Any) -> bool:
    """What JSON can say, and no page and no answer in JSON again: half of a surrogate pair, 1e999, and what is nested too deeply."""
    level = [value]
    for _ in range(LEVELS_MAX):
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += [*each, *each.values()]
            elif isinstance(each, list):
                below += each
            elif (isinstance(each, str) and _HALF.search(each)) or (isinstance(each, float) and not math.isfinite(each)):
                return False
        if not below:
            return True
        level = below
    return False


def _no_number(text: str) -> Any:
    raise ValueError(text)


