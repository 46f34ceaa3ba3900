"""Properties of a message: typed values by name, and how they travel as STOMP headers.

Each property is a header of its own name whose text any client can read: `true`, `42`, `1.5`, `north`. A header's value has no type, so
`property-types` names those that are not strings: `count=int,ratio=float,ok=bool`. Whoever ignores it sees strings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, MutableMapping

from broker_core.engine.dead import ADDED
from broker_core.stomp.escaping import escape
from broker_core.stomp.mapping import DELAYS, OTHER_SCHEDULES

from .bounds import wrong_property, wrong_text
from .exceptions import MessageFormatException, MessageNotWriteableException

PropertyValue = bool | int | float | str

TYPES_HEADER = "property-types"
PROTOCOL_HEADERS = frozenset((
    "destination", "message-id", "subscription", "ack", "redelivered", "timestamp", "content-length", "content-type", "receipt", "receipt-id",
    "transaction", "persistent", "reliability", "priority", "expires", "delay", "correlation-id", "reply-to", "type", TYPES_HEADER,
    "original-destination", "browser", "version", "selector", "id", "expiration",
))  # fmt: skip
"""They say something of the message or its frame, and are no properties."""
OF_THE_CLIENT = frozenset(("JMSXGroupID", "JMSXGroupSeq"))
"""The properties beginning with JMS that an application may set; JMS_ begins a provider's own, which it may set too."""
OF_THE_PROVIDER = frozenset(
    ("JMSXDeliveryCount", "JMSXUserID", "JMSXAppID", "JMSXProducerTXID", "JMSXConsumerTXID", "JMSXRcvTimestamp")
)
"""They describe one sending or one delivery: a message that is sent again does not take them along."""
SCHEDULES = frozenset((*DELAYS, *OTHER_SCHEDULES))
"""Other providers' ways to have a message later: the broker would take one of them away from the message and end the connection for the others."""
RESERVED_WORDS = frozenset(("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"))
INTEGER_MIN, INTEGER_MAX = -(1 << 63), (1 << 63) - 1
"""A long of JMS."""

_IDENTIFIER = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_SPECIAL = re.compile(r"[\\\r\n:]")
_TYPES: dict[type, str] = {bool: "bool", int: "int", float: "float"}


class Properties(MutableMapping[str, PropertyValue]):
    """What `message.properties` is. Names are those of JMS 3.5.1: letters, digits, _ and $, no word of the selectors' grammar."""

    __slots__ = ("_read_only", "_values")

    def __init__(self, values: dict[str, PropertyValue] | None = None, *, read_only: bool = False) -> None:
        self._values: dict[str, PropertyValue] = {} if values is None else values
        self._read_only = read_only

    def __getitem__(self, name: str) -> PropertyValue:
        return self._values[name]

    def __setitem__(self, name: str, value: PropertyValue) -> None:
        self._check_writeable()
        _check_name(name)
        checked = _checked(name, value)
        if wrong := wrong_property(name, text_of(checked)) or (wrong_text(checked) if isinstance(checked, str) else ""):
            raise MessageFormatException(f"property {name!r} {wrong}")
        self._values[name] = checked

    def __delitem__(self, name: str) -> None:
        self._check_writeable()
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Properties({self._values})"

    def state(self, name: str, value: PropertyValue) -> None:
        """For the provider: set what applications may not."""
        self._values[name] = value

    def _check_writeable(self) -> None:
        if self._read_only:
            raise MessageNotWriteableException("the properties of a received message are read-only: call clear_properties() first")

    # -- the conversions of JMS 3.5.4 -------------------------------------------------------------------------------------------------
    def get_boolean(self, name: str) -> bool:
        value = self._values.get(name)
        if isinstance(value, bool):
            return value
        if value is None or (isinstance(value, str) and value.lower() in ("true", "false")):
            return value is not None and value.lower() == "true"
        raise _not_readable(name, value, "a boolean")

    def get_int(self, name: str) -> int:
        value = self._values.get(name)
        if isinstance(value, str):
            try:
                return int(value)
            except ValueError:
                raise _not_readable(name, value, "an integer") from None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise _not_readable(name, value, "an integer")

    def get_float(self, name: str) -> float:
        value = self._values.get(name)
        if isinstance(value, str):
            try:
                return float(value)
            except ValueError:
                raise _not_readable(name, value, "a number") from None
        if isinstance(value, float):
            return value
        raise _not_readable(name, value, "a number")

    def get_string(self, name: str) -> str | None:
        """The text of whatever it is; None if there is none."""
        value = self._values.get(name)
        return None if value is None else text_of(value)


def _not_readable(name: str, value: object, wanted: str) -> MessageFormatException:
    if value is None:
        return MessageFormatException(f"the message has no property {name!r} to be read as {wanted}: ask `{name!r} in message.properties` first")
    return MessageFormatException(f"property {name!r} is {value!r}, which cannot be read as {wanted}")


def _check_name(name: str) -> None:
    if not isinstance(name, str) or _IDENTIFIER.fullmatch(name) is None:
        raise MessageFormatException(f"{name!r} cannot name a property: use letters, digits, _ and $, not beginning with a digit")
    if name.upper() in RESERVED_WORDS:
        raise MessageFormatException(f"{name!r} cannot name a property: it is a word of the selectors' grammar")
    if name in PROTOCOL_HEADERS:
        raise MessageFormatException(f"{name!r} cannot name a property: STOMP has a header of this name; add a prefix, as in 'my_{name}'")
    if name in SCHEDULES:
        raise MessageFormatException(f"{name!r} cannot be set: set the producer's delivery_delay to have a message delivered later, once")
    if name in ADDED:
        raise MessageFormatException(f"{name!r} cannot be set: it is the broker's to say of dead messages; choose another name")
    if name.startswith("JMS") and not name.startswith("JMS_") and name not in OF_THE_CLIENT:
        raise MessageFormatException(f"{name!r} cannot be set: names beginning with JMS belong to the provider, but for JMSXGroupID, JMSXGroupSeq and JMS_...")


def _checked(name: str, value: object) -> PropertyValue:
    """The value as one of the four types themselves, not of a subclass such as an enumeration."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not INTEGER_MIN <= value <= INTEGER_MAX:
            raise MessageFormatException(f"property {name!r} is an integer of more than 64 bits: make it a str")
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return str(value)
    raise MessageFormatException(f"property {name!r} cannot be a {type(value).__name__}: use str, bool, int or float, or put it into the body")


# -- as headers -----------------------------------------------------------------------------------------------------------------------
def text_of(value: PropertyValue) -> str:
    """As others read it; numbers as Java's Double.valueOf and Long.valueOf take them."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value)


def header_lines(properties: Mapping[str, PropertyValue]) -> str:
    """Lines of a SEND, each with its LF in front."""
    lines, types = [], []
    for name, value in properties.items():
        if name in OF_THE_PROVIDER:
            continue
        if value.__class__ is str:
            text = value
        else:
            text = text_of(value)
            if (kind := _TYPES.get(value.__class__)) is not None:
                types.append(f"{name}={kind}")
        lines.append(header_line(name, text))
    if types:
        lines.append(f"\n{TYPES_HEADER}:{','.join(types)}")
    return "".join(lines)


def header_line(name: str, value: str) -> str:
    """With its LF in front."""
    if _SPECIAL.search(value) is not None:
        value = escape(value, "1.2")
    if _SPECIAL.search(name) is not None:
        name = escape(name, "1.2")
    return f"\n{name}:{value}"


def from_headers(headers: Mapping[str, str]) -> dict[str, PropertyValue]:
    """The properties among the headers of a received message. A type that does not fit its value is not believed."""
    values: dict[str, PropertyValue] = {name: value for name, value in headers.items() if name not in PROTOCOL_HEADERS}
    if TYPES_HEADER in headers:
        for each in headers[TYPES_HEADER].split(","):
            name, _, kind = each.partition("=")
            value = values.get(name)
            if isinstance(value, str) and not wrong_property(name, text_of(typed := _typed(value, kind))):
                values[name] = typed
    return values


def _typed(value: str, kind: str) -> PropertyValue:
    try:
        if kind == "int":
            return int(value)
        if kind == "float":
            return float(value)
    except ValueError:
        return value
    return value == "true" if kind == "bool" and value in ("true", "false") else value
