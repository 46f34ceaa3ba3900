"""What a selector sees of a message: the fields of its header by their JMS names (JMS 3.8.1.1), all else as its protocol decoded it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .message import STORED, Message
from .shard import Shard
from .subscription import Filter

Value = str | int | float | bool | None
FIELDS: dict[str, Callable[[Shard, Message], Value]] = {
    "JMSPriority": lambda _, message: message.header.priority,
    "JMSDeliveryMode": lambda _, message: "PERSISTENT" if message.header.reliability >= STORED else "NON_PERSISTENT",
    "JMSMessageID": lambda shard, message: shard.message_id(message),
    "JMSTimestamp": lambda _, message: message.accepted_at,
    "JMSCorrelationID": lambda shard, message: _decoded(shard, message).get("correlation-id"),
    "JMSType": lambda shard, message: _decoded(shard, message).get("type"),
}


def takes(shard: Shard, wanted: Filter, message: Message) -> bool:
    """Whether the filter lets the message through. It has its sequence and its instant already."""
    header = message.header
    if wanted.sender and wanted.sender == header.client_id:
        return False
    selector = wanted.selector
    if selector is None:
        return True
    decoded = _decoded(shard, message).get
    if FIELDS.keys().isdisjoint(selector.identifiers):
        return selector.matches(decoded)
    return selector.matches(lambda name: FIELDS[name](shard, message) if name in FIELDS else decoded(name))


def _decoded(shard: Shard, message: Message) -> Mapping[str, str]:
    header = message.header
    if header.properties is None:
        header.properties = shard.decode(header)
    return header.properties
