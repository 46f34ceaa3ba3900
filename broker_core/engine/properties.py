"""What a selector sees of a message: the fields of its header by their JMS names (JMS 3.8.1.1), all else as its protocol decoded it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from .message import STORED, Header, Message

if TYPE_CHECKING:
    from .subscription import Filter

Value = str | int | float | bool | None


@lru_cache(512)
def read_annotations(text: str) -> Mapping[str, Value]:
    """What the broker added to a message. Who looks at a message for one thing soon does so for another: so many are remembered."""
    added: dict[str, Value] = json.loads(text)
    return added


class Knows(Protocol):
    """What is to be known of the broker: a shard does."""

    @property
    def decode(self) -> Callable[[Header], Mapping[str, Value]]: ...
    def message_id(self, message: Message) -> str: ...


class Properties(dict[str, Value]):
    """Of one message, while it is being routed: what a selector asked for once is at hand for the others. The header section is decoded when the first
    one asks for a property, and forgotten with this: headers are remembered for as long as producers repeat them, and would keep what was decoded."""

    __slots__ = ("_decoded", "are_text", "message", "shard")

    def __init__(self, shard: Knows, message: Message) -> None:
        self.shard = shard
        self.message = message
        self.are_text = not message.header.encoding
        """The sender could say nothing but strings, whatever they mean: STOMP's headers."""
        self._decoded: Mapping[str, Value] | None = None

    @property
    def decoded(self) -> Mapping[str, Value]:
        """The sender's, and what the broker added: consumers of dead messages may choose by reason and origin. A hyphen is a minus in a selector, so what
        the broker names with one has an underscore here."""
        if self._decoded is None:
            header = self.message.header
            self._decoded = self.shard.decode(header)
            if header.annotations:
                added = read_annotations(header.annotations)
                self._decoded = {**self._decoded, **{name.replace("-", "_"): value for name, value in added.items()}}
        return self._decoded

    def stated(self, field: str, header: str | None) -> Value:
        """A field that the sender filled in: of STOMP it is a header, if it has one; AMQP keeps fields and properties apart, and gives it by its JMS name."""
        name = field if self.message.header.encoding else header
        return None if name is None else self.decoded.get(name)

    def __missing__(self, name: str) -> Value:
        field = FIELDS.get(name)
        value = self[name] = self.decoded.get(name) if field is None else field(self)
        return value


FIELDS: dict[str, Callable[[Properties], Value]] = {
    "JMSPriority": lambda of: of.message.header.priority,
    "JMSDeliveryMode": lambda of: "PERSISTENT" if of.message.header.reliability >= STORED else "NON_PERSISTENT",
    "JMSMessageID": lambda of: of.shard.message_id(of.message),
    "JMSTimestamp": lambda of: of.stated("JMSTimestamp", None) or of.message.accepted_at,
    "JMSCorrelationID": lambda of: of.stated("JMSCorrelationID", "correlation-id"),
    "JMSType": lambda of: of.stated("JMSType", "type"),
}


def takes(wanted: Filter, properties: Properties) -> bool:
    """Whether the filter lets the message through. It has its sequence and its instant already."""
    if wanted.sender and wanted.sender == properties.message.header.client_id:
        return False
    return wanted.selector is None or wanted.selector.matches(properties.__getitem__, coerce=properties.are_text)
