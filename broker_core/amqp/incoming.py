"""A delivery of a producer's that is under way, and what becomes of the body of a large one, part by part."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_core.engine.message import Message

from .performatives import TransactionalState


@dataclass(slots=True, eq=False)
class Incoming:
    """A delivery under way."""

    delivery_id: int
    settled: bool
    state: TransactionalState | None
    """The transaction that it is sent in."""
    pieces: list[bytes] = field(default_factory=list)
    octets: int = 0
    """Held in `pieces`."""
    held: int = 0
    """What they take, for all of the connection's deliveries that have begun."""
    body: int = 0
    """Octets of the large body that are on their way to the store."""
    message: Message | None = None
    """Of a large one: what is known of it."""
    address: str = ""
    replies: str = ""


@dataclass(slots=True)
class BodyPart:
    """A part of the large body whose Send will follow. Parts of several may come in turns."""

    of: Incoming
    octets: bytes


@dataclass(slots=True)
class BodyDropped:
    """The large body's message will not be sent."""

    of: Incoming
