"""Administered objects (items 46, 116, 117): connection factories and destinations that operators name and set up, and clients look up by name.

Here is what they may say; the console writes them into a table, the node hands one to a client that asks for it while it connects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .engine.address import is_reserved, is_valid
from .engine.levels import ASKED, BELOW_STORED

FACTORY, QUEUE, TOPIC = KINDS = ("factory", "queue", "topic")
NAME_MAX = 255
"""Characters of an object's name, and of a client identifier."""
MODES = ("PERSISTENT", "NON_PERSISTENT")
SECONDS_MAX = 315_360_000
"""Ten years."""
FLAG = (bool, False, True)
SECONDS = (float, 0, SECONDS_MAX)
COUNT = (int, 0, 1_000_000)
NUMBERS: dict[str, tuple[type, float, float]] = {
    "disable_set_client_id": FLAG,
    "enable_shared_client_id": FLAG,
    "override_priority": (int, 0, 9),
    "override_expiration": SECONDS,
    "override_headers_to_temporary_destinations": FLAG,
    "consumer_flow_limit": (int, 0, 65_535),
    "consumer_flow_threshold": (float, 1, 100),
    "connection_flow_count": COUNT,
    "connection_flow_limit_enabled": FLAG,
    "connection_flow_limit": COUNT,
    "ack_on_produce": FLAG,
    "ack_on_acknowledge": FLAG,
    "ack_timeout": SECONDS,
    "optimize_acknowledge": FLAG,
    "optimize_acknowledge_timeout": SECONDS,
    "reconnect_enabled": FLAG,
    "reconnect_attempts": (int, -1, 1_000_000),
    "reconnect_interval": SECONDS,
    "priority": (int, 0, 9),
    "time_to_live": SECONDS,
}
WORDS: dict[str, tuple[str, ...]] = {
    "persistent_reliability": ASKED,
    "nonpersistent_reliability": ASKED,
    "override_delivery_mode": MODES,
    "delivery_mode": MODES,
    "profile": ("sun", "activemq", "websphere"),
}
OF_DESTINATIONS = ("destination", "delivery_mode", "priority", "time_to_live", "consumer_flow_limit")
OF_FACTORIES = ("configured_client_id", *(name for name in (*NUMBERS, *WORDS) if name not in OF_DESTINATIONS or name == "consumer_flow_limit"))
"""By the names that docs/client.md has."""


def problem(name: str, kind: str, attributes: Mapping[str, Any]) -> str:
    """A sentence that says why the object cannot be, or nothing."""
    if not _is_text(name):
        return f"an administered object needs a name of 1 to {NAME_MAX} printable characters"
    if kind not in KINDS:
        return f"the kind must be one of {', '.join(KINDS)}"
    known = OF_FACTORIES if kind == FACTORY else OF_DESTINATIONS
    for attribute, value in attributes.items():
        if attribute not in known:
            return f"{attribute} is no attribute of a {kind}; these are {', '.join(known)}"
        if wrong := _wrong(attribute, value, kind):
            return f"{attribute} must be {wrong}"
    if kind != FACTORY and "destination" not in attributes:
        return "name the destination that it stands for"
    return ""


def _wrong(attribute: str, value: Any, kind: str) -> str:
    if attribute == "configured_client_id":
        return "" if _is_text(value) else f"a text of 1 to {NAME_MAX} printable characters"
    if attribute == "destination":
        fine = isinstance(value, str) and is_valid(f"{kind}/{value}") and not is_reserved(f"{kind}/{value}") and _is_printable(value)
        return "" if fine else f"the name of a {kind} of clients: 1 to 255 octets, without wildcards"
    if attribute in WORDS:
        return "" if value in WORDS[attribute] else f"one of {', '.join(WORDS[attribute])}"
    kind_of, low, high = NUMBERS[attribute]
    if kind_of is bool:
        return "" if value.__class__ is bool else "true or false"
    whole = value.__class__ is int or (kind_of is float and value.__class__ is float)
    return "" if whole and low <= value <= high else f"a {'whole number' if kind_of is int else 'number'} from {low} to {high}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NAME_MAX and _is_printable(value)


def _is_printable(value: str) -> bool:
    return value.isprintable() and value == value.strip()


def warnings(attributes: Mapping[str, Any]) -> list[str]:
    """What its operator may not have meant (item 118)."""
    level = attributes.get("persistent_reliability")
    return [f"persistent messages are sent as {level}: they are lost when the broker stops"] if level in BELOW_STORED else []
