"""What the broker takes of an application, as far as that can be told here: it would end the connection, with all that share it.

The bounds are the broker's own, from its rooms. What is wrong is said as the rest of a sentence that begins with what it is wrong with; nothing: it is fine.
"""

from __future__ import annotations

from math import isnan
from typing import Any

from broker_core.engine.message_group import GROUP_ID, GROUP_SEQUENCE
from broker_core.stomp.escaping import escape
from broker_core.stomp.limits import Limits
from broker_core.stomp.mapping import (
    DUPLICATE_ID_OCTETS_MAX,
    GROUP_SEQUENCE_DIGITS_MAX,
    NAME_MAX,
    is_whole,
)
from broker_core.stomp.sections import DUPLICATE_IDS

from .exceptions import JMSException
from .settings import DeliveryMode

CLIENT_ID_MAX = Limits().client_id_max
LINE_OCTETS_MAX = Limits().line_octets_max
VALUE_OCTETS_MAX = LINE_OCTETS_MAX - 64
"""A line less the name of its header."""
SHORT = VALUE_OCTETS_MAX // 2
"""However much of it must be escaped."""


def wrong_text(value: Any) -> str:
    """With the value of a header."""
    if value.__class__ is str and len(value) <= SHORT and value.isascii() and "\0" not in value:  # nearly always
        return ""
    if not isinstance(value, str):
        return f"is {value!r}: it must be a str"
    if "\0" in value:
        return "holds a NUL character, which no header of STOMP can: leave it out"
    try:
        octets = len(escape(value, "1.2").encode())
    except UnicodeEncodeError as error:
        return f"cannot be written as UTF-8: {error.reason}"
    return f"is too long: the broker takes {VALUE_OCTETS_MAX} octets, this has {octets}" if octets > VALUE_OCTETS_MAX else ""


def wrong_number(value: object) -> bool:
    """It is no number that can be compared with others."""
    return not isinstance(value, int | float) or isinstance(value, bool) or isnan(value)


def check_timeout(timeout: object) -> None:
    """Of a call that waits."""
    if timeout is not None and (wrong_number(timeout) or timeout < 0):  # type: ignore[operator]
        raise JMSException(f"the timeout is {timeout!r}: it must be a number of seconds, 0 to wait for nothing, or None to wait for ever")


def is_delivery_mode(mode: object) -> bool:
    return isinstance(mode, int) and not isinstance(mode, bool) and mode in DeliveryMode.__members__.values()


def check_delivery_mode(mode: object) -> None:
    if not is_delivery_mode(mode):
        raise JMSException(f"the delivery mode is {mode!r}: use DeliveryMode.PERSISTENT or NON_PERSISTENT")


def wrong_property(name: str, text: str) -> str:
    """With a property that the broker reads."""
    if name == GROUP_ID and len(text) > NAME_MAX:
        return f"has {len(text)} characters: name the group with at most {NAME_MAX} characters"
    if name == GROUP_SEQUENCE and not is_whole(text, GROUP_SEQUENCE_DIGITS_MAX):
        return f"is {text!r}: use a whole number of at most {GROUP_SEQUENCE_DIGITS_MAX} digits, -1 with the last message of its group"
    if name in DUPLICATE_IDS and not 0 < (octets := len(text.encode("utf-8", "surrogatepass"))) <= DUPLICATE_ID_OCTETS_MAX:
        return f"has {octets} octets: name the message with 1 to {DUPLICATE_ID_OCTETS_MAX} octets, or leave the property out"
    return ""


def wrong_in_connect(value: object) -> str:
    """With a header of CONNECT, which knows no escapes."""
    if wrong := wrong_text(value):
        return wrong
    return "holds a line break, which cannot be said while connecting: leave it out" if {"\r", "\n"} & set(str(value)) else ""


def wrong_client_id(client_id: object) -> str:
    if wrong := wrong_in_connect(client_id):
        return wrong
    length = len(str(client_id))
    return f"has {length} characters: use at most {CLIENT_ID_MAX} characters" if length > CLIENT_ID_MAX else ""


def wrong_subscription_name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= NAME_MAX:
        return f"is {name!r}: it needs 1 to {NAME_MAX} characters"
    return wrong_text(name)
