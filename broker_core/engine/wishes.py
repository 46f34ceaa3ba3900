"""What a message itself wishes for the case that it dies (checklist item 78). Its sender says so with properties that have Open MQ's names; they are looked
for when it dies and not before, so that messages which never do pay nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .message import Header

if TYPE_CHECKING:
    from .shard import Shard

PRESERVE, TRUNCATE, LOG = "JMS_SUN_PRESERVE_UNDELIVERED", "JMS_SUN_TRUNCATE_MSG_BODY", "JMS_SUN_LOG_DEAD_MESSAGES"
MARK = "JMS_SUN_"
"""In whatever form a header section has: what all of them begin with."""
_OCTETS = MARK.encode()


@dataclass(slots=True, frozen=True)
class Wishes:
    """None: as its destination and the broker have it."""

    preserve: bool | None = None
    """True: to the dead message queue although its destination discards the dead; False: discarded although it would go there."""
    truncate: bool | None = None
    """Its dead copy has no body."""
    log: bool | None = None
    """Its death is told to whoever keeps the log."""


NONE = Wishes()


def wishes_of(shard: Shard, header: Header) -> Wishes:
    if _OCTETS not in header.octets:
        return NONE
    said = shard.decode(header)
    return Wishes(_flag(said.get(PRESERVE)), _flag(said.get(TRUNCATE)), _flag(said.get(LOG)))


def _flag(value: object) -> bool | None:
    """What is neither true nor false is no wish."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return value if isinstance(value, bool) else None
