"""What an operator says of a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from broker_core.engine.address import is_reserved, is_temporary, is_valid
from broker_core.engine.levels import ASKED, BELOW_STORED
from broker_core.engine.settings import LINK_NAME

SURETY, ACTIVEMQ, RABBITMQ = KINDS = ("surety", "activemq", "rabbitmq")
TEXT_MAX = 255
"""Octets of a host, a login, a passcode, a virtual host, an address."""
CERTIFICATES_MAX = 65_536
HEART_BEAT_MS_MAX = 3_600_000
TAKEN_MAX = 1_000
"""Far addresses that one link takes from."""
LINKS_MAX = 1_000
"""Each takes one connection to its broker a direction."""
REDACTED = "***"
LOSES = BELOW_STORED
"""Levels at which persistent messages do not outlive the node."""
ERROR_MAX = 500
"""Characters of what a far broker said, which operators read."""


@dataclass(slots=True, frozen=True)
class ForeignLink:
    """One broker elsewhere, and how to log in there."""

    name: str
    host: str
    port: int = 61_613
    tls: bool = False
    """The far certificate is checked, by its host's name."""
    certificates: str = field(default="", repr=False)
    """PEM: the authorities that may have signed it; empty: those that the operating system trusts."""
    login: str = ""
    passcode: str = field(default="", repr=False)
    virtual_host: str = "/"
    heart_beat_ms: int = 10_000
    """0: none."""
    kind: str = SURETY
    """Whose ways of saying things are meant, where brokers differ."""
    persistent_reliability: str = "assured"
    """What persistent messages from there stand for here, a level or as-destination."""
    nonpersistent_reliability: str = "express"
    takes: Mapping[str, str] = field(default_factory=dict)
    """Of what is taken from there: the far address, and the destination here, as in queue/orders."""

    def redacted(self, text: str) -> str:
        """What may be read of an error: short, on one line, and never the passcode."""
        shown = text.replace(self.passcode, REDACTED) if self.passcode else text
        return "".join(letter if letter.isprintable() else " " for letter in shown[:ERROR_MAX]).strip()


NAMES = tuple(each.name for each in fields(ForeignLink) if each.name != "name")
_TEXTS = ("host", "login", "passcode", "virtual_host")
_LEVELS = ("persistent_reliability", "nonpersistent_reliability")


def problem(name: str, values: Mapping[str, Any]) -> str:
    """A sentence that says why the link cannot be so, or nothing. Never with the passcode in it."""
    if not (isinstance(name, str) and LINK_NAME.fullmatch(name)):
        return "a link needs a name of 1 to 63 letters, digits, dots, dashes and underscores"
    for each, value in values.items():
        if each not in NAMES:
            return f"{each} is not a link's; it has {', '.join(NAMES)}"
        if wrong := _wrong(each, value):
            return f"{each} must be {wrong}"
    if not values.get("host"):
        return "name the host of the other broker"
    return ""


def _wrong(name: str, value: Any) -> str:
    """What it must be; empty: it is."""
    if name in _TEXTS:
        return "" if _is_text(value) else f"a text of at most {TEXT_MAX} octets, without control characters"
    if name == "certificates":
        fine = isinstance(value, str) and value.isascii() and len(value) <= CERTIFICATES_MAX
        return "" if fine else f"certificates in PEM, at most {CERTIFICATES_MAX} octets"
    if name == "tls":
        return "" if isinstance(value, bool) else "true or false"
    if name == "port":
        return "" if type(value) is int and 0 < value < 65_536 else "a port, 1 to 65535"
    if name == "heart_beat_ms":
        return "" if type(value) is int and 0 <= value <= HEART_BEAT_MS_MAX else f"0, for none, or at most {HEART_BEAT_MS_MAX} ms"
    if name == "kind":
        return "" if value in KINDS else f"one of {', '.join(KINDS)}"
    if name in _LEVELS:
        return "" if value in ASKED else f"one of {', '.join(ASKED)}"
    return _no_addresses(value)


def _no_addresses(value: Any) -> str:
    if not isinstance(value, Mapping) or len(value) > TAKEN_MAX:
        return f"an object of far addresses and destinations here, at most {TAKEN_MAX}"
    for far, here in value.items():
        if not (_is_text(far) and far):
            return "an object whose names are far addresses, of 1 to 255 octets, without control characters"
        if not (isinstance(here, str) and _is_text(here) and is_valid(here)) or is_temporary(here) or is_reserved(here):
            return "an object whose values are destinations of clients, queue/<name> or topic/<name>"
    return ""


def _is_text(value: Any) -> bool:
    if not isinstance(value, str) or any("\ud800" <= letter <= "\udfff" for letter in value):
        return False
    return len(value.encode()) <= TEXT_MAX and not any(letter < " " or "\x7f" <= letter < "\xa0" for letter in value)
