"""What peers are told, in order, and only after the commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .message import Message
from .refusal import Refusal
from .subscription import Filter


@dataclass(slots=True)
class Confirmed:
    """What `token` asked for is done and, as far as its reliability promises, durable."""

    peer: int
    token: Any


@dataclass(slots=True)
class Attached:
    """The confirmation of an Attach to which the destination allows less credit than it asked for."""

    peer: int
    token: Any
    credit: int


@dataclass(slots=True)
class Delivered:
    """`messages` go to the link with consecutive tags, the first being `tag`."""

    peer: int
    link: int
    tag: int
    messages: list[Message]


@dataclass(slots=True)
class Refused:
    """The peer's mistake, or ours to bear: no exception, no harm to anyone else."""

    peer: int
    token: Any
    refusal: Refusal
    detail: str = ""
    link: int = 0


@dataclass(slots=True)
class Drained:
    peer: int
    link: int
    drain: int = 1
    """What the Grant had there that asked for it."""


@dataclass(slots=True)
class Detached:
    """The link ends on the engine's own account, for `refusal`. If the peer settles what it is given as it leaves, the engine waits for the peer's Detach
    behind that; otherwise it has closed the link."""

    peer: int
    link: int
    refusal: Refusal
    detail: str = ""


@dataclass(slots=True)
class Browsed:
    """The browser has been shown everything."""

    peer: int
    link: int


@dataclass(slots=True)
class Found:
    """The subscription that was looked for."""

    peer: int
    token: Any
    address: str
    """Of its topic, or a pattern of topics."""
    wanted: Filter
    shared: bool
    durable: bool


@dataclass(slots=True)
class Waiting:
    """What `token` asked for waits in a full destination: the answer comes when there is room."""

    peer: int
    token: Any


Output = Confirmed | Attached | Delivered | Refused | Drained | Browsed | Detached | Found | Waiting
