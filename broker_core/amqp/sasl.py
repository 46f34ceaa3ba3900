"""The SASL layer (security, 5.3): what the client is offered, and what it says. Who may come in is decided elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from .performatives import SaslInit
from .refusals import DECODE_ERROR, ConnectionFault

PLAIN, SCRAM_SHA_256, EXTERNAL, ANONYMOUS = "PLAIN", "SCRAM-SHA-256", "EXTERNAL", "ANONYMOUS"
RESPONSE_OCTETS_MAX = 4096
"""Of what a mechanism says at a time: a name, a password of at most 1024 octets, a nonce."""


@dataclass(slots=True)
class Login:
    """Who wants in. Answer with challenge, accept or reject. What the client says is not shown by repr."""

    mechanism: str
    """One of those offered."""
    response: bytes
    hostname: str

    def __repr__(self) -> str:
        return f"Login(mechanism={self.mechanism!r}, hostname={self.hostname!r})"


@dataclass(slots=True)
class Proof:
    """What the client says to a challenge. Answered as Login is."""

    response: bytes

    def __repr__(self) -> str:
        return "Proof()"


def login_of(init: SaslInit, offered: tuple[str, ...]) -> Login | None:
    """None: the client wants a mechanism that was not offered. Raises ConnectionFault."""
    response = checked(init.initial_response or b"")
    return Login(str(init.mechanism), response, init.hostname or "") if init.mechanism in offered else None


def checked(response: bytes) -> bytes:
    if len(response) > RESPONSE_OCTETS_MAX:
        raise ConnectionFault(DECODE_ERROR, f"a SASL response has {len(response)} octets, {RESPONSE_OCTETS_MAX} are allowed")
    return response


def read_plain(response: bytes) -> tuple[str, str, str] | None:
    """Of PLAIN (RFC 4616): the identity to act as, who logs in, and the password. None: it is not what it should be."""
    parts = response.split(b"\0")
    if len(parts) != 3:
        return None
    try:
        act_as, login, password = (part.decode() for part in parts)
    except UnicodeDecodeError:
        return None
    return act_as, login, password
