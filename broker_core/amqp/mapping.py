"""Messages of AMQP to engine values and back (AMQP JMS mapping 3): what a selector sees of a message, what a consumer is told. What a message asks for is
read by `arrivals`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from broker_core.engine.dead import ADDED, REASON, TRUNCATED
from broker_core.engine.message import STORED, Header, Message, StoredBody
from broker_core.engine.message_group import GROUP_ID, GROUP_SEQUENCE
from broker_core.engine.properties import Value

from .amending import with_annotations, without_body, without_expiry, write_header
from .sections import open_message
from .types import UUID

RELIABILITY = "x-opt-reliability"
BROKERS_PREFIX = "x-opt-"
"""Before the names of what the broker adds to a message: annotations that begin so may be ignored (messaging 3.2.10)."""

MESSAGE_ID, USER_ID, TO, SUBJECT, REPLY_TO, CORRELATION_ID, EXPIRY, CREATED, GROUP, IN_GROUP = 0, 1, 2, 3, 4, 5, 8, 9, 10, 11
"""Places of properties' fields."""

Convert = Callable[[Message], tuple[bytes, bytes | StoredBody]]
"""A message of another protocol: the octets of its Opening, and its body."""


def id_text(value: Any) -> str:
    """A message identifier as JMS has it (AMQP JMS mapping 3.2.1.1), but that a string is given as it is."""
    if isinstance(value, str):
        return value.replace("\0", "")  # no STOMP frame can say it, no database keeps it
    if isinstance(value, UUID):
        digits = value.hex()
        return f"ID:AMQP_UUID:{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return f"ID:AMQP_BINARY:{value.hex().upper()}" if isinstance(value, bytes) else f"ID:AMQP_ULONG:{int(value)}"


# -- selectors ------------------------------------------------------------------------------------------------------------------------
def decode(header: Header) -> Mapping[str, Value]:
    """What a selector sees of a message of AMQP, beside what the engine knows: JMSCorrelationID, JMSType, JMSTimestamp, JMSXGroupID, JMSXGroupSeq and
    JMSXUserID, and its application properties with their types. All of it was read when the message arrived, or it would not have been taken."""
    return Selectable(header.octets)


class Selectable(Mapping[str, Value]):
    """Read when it is asked for."""

    __slots__ = ("_fields", "_opening", "_properties")

    def __init__(self, octets: bytes) -> None:
        self._opening = open_message(octets)
        self._fields: dict[str, Value] | None = None
        self._properties: dict[str, Value] | None = None

    def __getitem__(self, name: str) -> Value:
        if name in FIELDS:
            if self._opening is None or self._opening.fields_said <= FIELDS[name]:
                raise KeyError(name)
            return self._of_fields()[name]
        return self._of_properties()[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._of_properties(), **self._of_fields()})

    def __len__(self) -> int:
        return len({**self._of_properties(), **self._of_fields()})

    def _of_fields(self) -> dict[str, Value]:
        if self._fields is None:
            values = [] if self._opening is None else self._opening.property_values()
            said = {name: values[place] for name, place in FIELDS.items() if place < len(values)}
            self._fields = {name: selectable(value) for name, value in said.items() if value is not None}
            if said.get("JMSCorrelationID") is not None:
                self._fields["JMSCorrelationID"] = id_text(said["JMSCorrelationID"])
            if said.get("JMSXUserID") is not None:
                self._fields["JMSXUserID"] = said["JMSXUserID"].decode("utf-8", "replace")
            if said.get(GROUP_SEQUENCE) is not None:
                self._fields[GROUP_SEQUENCE] = signed(said[GROUP_SEQUENCE])
        return self._fields

    def _of_properties(self) -> dict[str, Value]:
        if self._properties is None:
            said = {} if self._opening is None else self._opening.application_properties()
            # A property of the application that is called as a field is none: JMS keeps these names for itself (3.5.1).
            self._properties = {
                str(name): selectable(value) for name, value in said.items() if isinstance(name, str) and name not in ADDED and name not in FIELDS
            }
        return self._properties


FIELDS = {
    "JMSCorrelationID": CORRELATION_ID, "JMSType": SUBJECT, "JMSTimestamp": CREATED, GROUP_ID: GROUP, GROUP_SEQUENCE: IN_GROUP, "JMSXUserID": USER_ID,
}  # fmt: skip


def signed(sequence: int) -> int:
    """Of a group, as JMS has it: of 32 bits with a sign."""
    return sequence - (1 << 32) if sequence >= 1 << 31 else int(sequence)


def selectable(value: Any) -> Value:
    """As selectors compare it; None for what they know nothing of."""
    kind = value.__class__
    if kind in (bool, int, float, str):
        plain: Value = value
        return plain
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    return str(value) if isinstance(value, str) else None


# -- deliveries -----------------------------------------------------------------------------------------------------------------------
def delivery(message: Message, now: int, convert: Convert) -> tuple[bytes, bytes | StoredBody]:
    """The message as a consumer gets it: what comes before its body, and its body. `now`: instant in ms."""
    header, body = message.header, message.body
    assert body is not None, "a body that is only in the store must be read before its message is written"
    octets = header.octets
    if not header.encoding:
        octets, body = convert(message)
    if header.annotations:
        added = annotations_of(header.annotations)
        if not body and header.encoding and added.get(BROKERS_PREFIX + TRUNCATED):
            octets = without_body(octets)
        octets = with_annotations(octets, added)
        if BROKERS_PREFIX + REASON in added:  # it is dead, and lives on for as long as its header says
            octets = without_expiry(octets)
    failures = message.failures or (1 if message.redelivered else 0)
    ttl = max(header.expiration - now, 1) if header.expiration else 0
    return write_header(header.reliability >= STORED, header.priority, ttl, failures) + octets, body


def annotations_of(annotations: str) -> dict[str, Any]:
    """What the broker added to a message, as message-annotations."""
    return {BROKERS_PREFIX + name: value for name, value in json.loads(annotations).items()}
