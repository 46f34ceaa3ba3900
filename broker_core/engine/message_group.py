"""Which group a message belongs to, as its sender says (JMSXGroupID and JMSXGroupSeq, JMS 3.5.9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .message import Message
    from .shard import Shard

GROUP_ID = "JMSXGroupID"
GROUP_SEQUENCE = "JMSXGroupSeq"
_MARK = GROUP_ID.encode()


@dataclass(slots=True, frozen=True)
class MessageGroup:
    """Shared by all messages with the same header section."""

    name: str
    closes: bool = False
    """With this message the group is over: the next one of its name may go to another consumer."""


def group_of(properties: Mapping[str, object]) -> MessageGroup | None:
    """None: the message belongs to no group."""
    name = properties.get(GROUP_ID)
    return MessageGroup(str(name), properties.get(GROUP_SEQUENCE) in ("-1", -1)) if name else None


def recognize(shard: Shard, messages: Iterable[Message]) -> None:
    """Rows do not tell the groups of their messages. Most have none, which is seen without decoding their header sections; but AMQP has no name for
    it in them."""
    for message in messages:
        header = message.header
        if header.group is None and (header.encoding or _MARK in header.octets):
            header.group = group_of(shard.decode(header))
