"""What both directions say alike: addresses, kinds, and which headers of STOMP are no properties."""

from __future__ import annotations

from broker_core.amqp import addresses
from broker_core.engine.address import is_valid
from broker_core.engine.dead import ADDED

MESSAGE_KIND = "x-opt-jms-msg-type"
MESSAGE, OBJECT, MAP, BYTES, STREAM, TEXT = range(6)
"""Kinds of messages of JMS, by the numbers of the annotation x-opt-jms-msg-type."""
TYPES = "property-types"
JSON, OCTETS, PLAIN_TEXT, SECTIONS = "application/json", "application/octet-stream", "text/plain;charset=utf-8", "application/amqp"
"""Content types; the last is ours, for a body that can only be given as the sections that it came in."""
FIELDS = frozenset(
    (
        "destination", "message-id", "subscription", "ack", "redelivered", "timestamp", "content-length", "content-type", "content-encoding", "receipt",
        "receipt-id", "transaction", "persistent", "reliability", "priority", "expires", "delay", "correlation-id", "reply-to", "type", "browser", "version",
        "selector", "id", "expiration", "JMSXGroupID", "JMSXGroupSeq", "JMSXUserID", "JMSXDeliveryCount", TYPES, *ADDED,
    )
)  # fmt: skip
"""Headers of STOMP that say something of the message or its frame: no application property has such a name on either side."""


def canonical(written: str | None, kind: object) -> str:
    """Of an address as AMQP clients write it, and what an annotation says of its kind. Empty: it is none of ours."""
    address = addresses.canonical(written, addresses.kind_numbered(kind)) if written else ""
    return address if address and is_valid(address) else ""


def of_amqp(address: str) -> tuple[str, int]:
    """A canonical address as AMQP clients write it, and the number of its kind. What is a queue's name alone needs no scheme."""
    kind, _, name = address.partition("/")
    return (name if kind == "queue" and canonical(name, None) == address else addresses.written(address)), addresses.KINDS.index(kind)
