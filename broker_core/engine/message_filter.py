"""What operators look for among messages: a selector, a text, a value within a JSON body, age, attempts, and what a dead message tells. A value that
looks at one message at a time, whoever has it: an operation of the node's, or a page that is browsed.

Everything that is stated must be true. A text is found in the octets of the header section, of what the broker added, or of the body, upper and lower case
apart. Bodies that are kept apart from their messages (above 256 KiB, R16) are not looked into: a filter that needs them does not find these. So what
one message may cost is bounded: `effort` estimates it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from .address import is_valid
from .dead import FAILURES, ORIGIN, REASON, REASONS
from .message import Message
from .message_group import GROUP_ID
from .message_path import Constant, InvalidPath, Path, is_constant, read_path, same
from .properties import Value, read_annotations
from .selector import Selector, SelectorError, compile_selector

TEXT_CHARACTERS_MAX = 256
NAME_CHARACTERS_MAX = 1024
"""Of an identifier, or of a group's name."""
CONSTANT_CHARACTERS_MAX = 1024
INSTANT_MAX = (1 << 53) - 1
ATTEMPTS_MAX = 1 << 31
REASONS_KNOWN = tuple(sorted(set(REASONS.values())))

OF_ONE = frozenset(("JMSMessageID", "JMSTimestamp"))
"""What a selector may ask of a message that others with the same sections do not have."""

Content = Callable[[Message], bytes | None]
"""The body of a message as JSON, if it is that when it is converted; None: it has none that can be looked into."""


class InvalidFilter(ValueError):
    """`field` is the argument that is wrong, the message a sentence that says what to change."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(f"{field}: {sentence}")
        self.field = field
        self.sentence = sentence


def as_it_came(message: Message) -> bytes | None:
    """A body's own octets."""
    return message.body if isinstance(message.body, bytes) else None


@dataclass(slots=True, frozen=True)
class MessageFilter:
    """Made by `read_filter`. What is None, or empty, is not asked for."""

    selector: Selector | None = None
    text: str = ""
    json_path: Path | None = None
    json_value: Constant = None
    """What stands there. Numbers are equal by value, all else by type and value; what is not there is not null."""
    age_min_ms: int | None = None
    """At least so long where it is now; a dead message died so long ago."""
    age_max_ms: int | None = None
    accepted_from: int | None = None
    """Instant in ms: it came to where it is now then, or later."""
    accepted_to: int | None = None
    """The same: before then."""
    attempts_min: int | None = None
    """Deliveries that failed, or 1 if it may have left; of a dead message at least those it died of."""
    attempts_max: int | None = None
    reason: str = ""
    """Why it died: one of REASONS_KNOWN."""
    origin: str = ""
    """Where it died: the address of a queue or topic."""
    message_id: str = ""
    group: str = ""

    @property
    def needs_body(self) -> bool:
        """It cannot answer for a message whose body is not at hand."""
        return bool(self.text) or self.json_path is not None

    @property
    def is_of_sections(self) -> bool:
        """What it says of a message follows from its header section and from what the broker added to it: the same of all that have the same."""
        ranges = (self.age_min_ms, self.age_max_ms, self.accepted_from, self.accepted_to, self.attempts_min, self.attempts_max)
        if any(bound is not None for bound in ranges):
            return False
        if self.message_id or self.text or self.json_path is not None:
            return False
        return self.selector is None or OF_ONE.isdisjoint(self.selector.identifiers)

    @property
    def is_everything(self) -> bool:
        return self == MessageFilter()

    def effort(self, message: Message) -> int:
        """What `matches` takes of this message at the most, about, in microseconds."""
        octets = message.size if isinstance(message.body, bytes) else len(message.header.octets)
        return 2 + (50 if self.selector else 0) + (octets >> 12 if self.text else 0) + (octets >> 6 if self.json_path else 0)

    def matches(self, message: Message, property_of: Callable[[str], Value], now: int, content: Content = as_it_came) -> bool:
        """`property_of`: as selectors ask (properties.Properties); `now`: instant in ms from which ages count. A body that is not in memory is asked
        for by `needs_body` before: here it is one that cannot be looked into."""
        age = now - message.accepted_at
        if (self.age_min_ms is not None and age < self.age_min_ms) or (self.age_max_ms is not None and age > self.age_max_ms):
            return False
        if (self.accepted_from is not None and message.accepted_at < self.accepted_from) or (
            self.accepted_to is not None and message.accepted_at >= self.accepted_to
        ):
            return False
        if not self._is_named(message, property_of):
            return False
        if self.selector is not None and not self.selector.matches(property_of, coerce=not message.header.encoding):
            return False
        if not (self.text or self.json_path):
            return True
        return (not self.text or self._says(message)) and (self.json_path is None or self._holds(content(message)))

    def _is_named(self, message: Message, property_of: Callable[[str], Value]) -> bool:
        """What the broker knows of it."""
        if self.reason or self.origin or self.attempts_min is not None or self.attempts_max is not None:
            annotations = message.header.annotations
            added: Mapping[str, Any] = read_annotations(annotations) if annotations else {}
            if (self.reason and added.get(REASON) != self.reason) or (self.origin and added.get(ORIGIN) != self.origin):
                return False
            attempts = max(attempts_of(message), added.get(FAILURES, 0))
            if (self.attempts_min is not None and attempts < self.attempts_min) or (self.attempts_max is not None and attempts > self.attempts_max):
                return False
        if self.message_id and property_of("JMSMessageID") != self.message_id:
            return False
        return not self.group or property_of(GROUP_ID) == self.group

    def _says(self, message: Message) -> bool:
        header, octets = message.header, self.text.encode()
        if octets in header.octets or octets in (as_it_came(message) or b""):
            return True
        if (escaped := escaped_as_stomp(self.text)) != self.text and escaped.encode() in header.octets:
            return True
        return bool(header.annotations) and self.text in header.annotations

    def _holds(self, body: bytes | None) -> bool:
        if body is None or body[:64].lstrip()[:1] not in (b"{", b"["):
            return False
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return False
        assert self.json_path is not None
        return any(same(found, self.json_value) for found in self.json_path.values(value))


def attempts_of(message: Message) -> int:
    """As AMQP counts deliveries: those that failed, or 1 if it may have been delivered."""
    return max(message.failures, 1 if message.redelivered else 0)


def escaped_as_stomp(text: str) -> str:
    """As it stands in a header section of STOMP's."""
    return text.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n").replace(":", "\\c")


# -- reading --------------------------------------------------------------------------------------------------------------------------
def read_filter(arguments: Mapping[str, Any]) -> MessageFilter:
    """The filter of these arguments, named as its fields, `selector` and `json_path` as texts. Raises InvalidFilter."""
    if unknown := sorted(set(arguments) - NAMES):
        raise InvalidFilter(unknown[0][:64], f"there is no such condition; the conditions are {', '.join(sorted(NAMES))}")
    given: dict[str, Any] = dict(arguments)
    for name in ("selector", "text", "json_path", "reason", "origin", "message_id", "group"):
        if name in given:
            _check_text(name, given[name])
    _check_ranges(given)
    if given.get("reason") and given["reason"] not in REASONS_KNOWN:
        raise InvalidFilter("reason", f"a message dies for one of {', '.join(REASONS_KNOWN)}")
    if given.get("origin") and not is_valid(given["origin"]):
        raise InvalidFilter("origin", "give queue/NAME or topic/NAME, where the message died")
    if ("json_value" in given) != bool(given.get("json_path")):
        raise InvalidFilter("json_path", "give json_path, as order.items[0].id, and json_value, what stands there, together")
    given["json_path"] = _path(given.get("json_path", ""), given.get("json_value"))
    given["selector"] = _selector(given.get("selector", ""))
    return MessageFilter(**given)


NAMES = frozenset(field.name for field in fields(MessageFilter))


def _check_text(name: str, value: Any) -> None:
    most = TEXT_CHARACTERS_MAX if name == "text" else NAME_CHARACTERS_MAX
    if not isinstance(value, str):
        raise InvalidFilter(name, "must be a text")
    if name != "selector" and len(value) > most:
        raise InvalidFilter(name, f"must have at most {most} characters")
    if not _is_storable(value):
        raise InvalidFilter(name, "has NUL or half of a surrogate pair in it")


def _is_storable(text: str) -> bool:
    return not any(letter == "\x00" or "\ud800" <= letter <= "\udfff" for letter in text)


def _check_ranges(given: Mapping[str, Any]) -> None:
    bounds = dict.fromkeys(("age_min_ms", "age_max_ms", "accepted_from", "accepted_to"), INSTANT_MAX)
    for name, most in (*bounds.items(), ("attempts_min", ATTEMPTS_MAX), ("attempts_max", ATTEMPTS_MAX)):
        value = given.get(name)
        if value is not None and (type(value) is not int or not 0 <= value <= most):
            raise InvalidFilter(name, f"must be a whole number of 0 to {most}")
    for least, most_name in (("age_min_ms", "age_max_ms"), ("attempts_min", "attempts_max")):
        low, high = given.get(least), given.get(most_name)
        if low is not None and high is not None and low > high:
            raise InvalidFilter(least, f"is greater than {most_name}: nothing is between them")
    first, end = given.get("accepted_from"), given.get("accepted_to")
    if first is not None and end is not None and first >= end:
        raise InvalidFilter("accepted_from", "is not before accepted_to: nothing is between them")


def _path(text: str, value: Any) -> Path | None:
    if not text:
        return None
    if not is_constant(value) or (isinstance(value, str) and (len(value) > CONSTANT_CHARACTERS_MAX or not _is_storable(value))):
        raise InvalidFilter("json_value", f"must be a number, true, false, null or a text of at most {CONSTANT_CHARACTERS_MAX} characters")
    try:
        return read_path(text)
    except InvalidPath as error:
        raise InvalidFilter("json_path", str(error)) from error


def _selector(text: str) -> Selector | None:
    """Strings are compared with numbers as STOMP's consumers do: its headers are strings, whatever they mean."""
    if not text.strip():
        return None
    try:
        return compile_selector(text)
    except SelectorError as error:
        raise InvalidFilter("selector", str(error)) from error
