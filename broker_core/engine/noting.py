"""What the log is told of messages that died and of sends that were refused, if it is to be told: bounded, and nothing of what a message holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .effects import Death, Turned

if TYPE_CHECKING:
    from .commands import Send
    from .message import Header
    from .refusal import Refusal
    from .shard import Shard

NOTED_MAX = 100
"""Of those that one flush tells of; others are counted. 0.5 KiB each."""
TRACEPARENT = "traceparent"
"""A property, or a header of STOMP, in which clients carry a trace (W3C Trace Context). Nothing here changes it."""
_OCTETS = TRACEPARENT.encode()
_TRACEPARENT = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def note(shard: Shard, what: Death | Turned) -> None:
    batch = shard.batch
    if len(batch.noted) < NOTED_MAX:
        batch.noted.append(what)
    else:
        batch.noted_more += 1


def note_refused(shard: Shard, send: Send, refusal: Refusal, detail: str) -> None:
    """Its sender is told; the log is if it is told of the dead."""
    if shard.limits.dead_log:
        peer = shard.peers.get(send.peer)
        account, trace = "" if peer is None else peer.account, traceparent_of(shard, send.message.header)
        note(shard, Turned(send.address, account, refusal.name, detail or refusal.value, trace))


def traceparent_of(shard: Shard, header: Header) -> str:
    """As its sender said it, if it can be one."""
    if _OCTETS not in header.octets:
        return ""
    said = shard.decode(header).get(TRACEPARENT)
    return said if isinstance(said, str) and _TRACEPARENT.fullmatch(said) else ""
