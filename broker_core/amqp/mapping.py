"""Messages of AMQP to engine values and back (AMQP JMS mapping 3): what a message asks for, what a selector sees of it, what a consumer is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from broker_core.engine.dead import ADDED, REASON, TRUNCATED
from broker_core.engine.levels import ASKED, UNMAPPED, LevelMapping, level_of
from broker_core.engine.message import STORED, Encoding, Header, Message, StoredBody
from broker_core.engine.message_group import GROUP_ID, GROUP_SEQUENCE, MessageGroup
from broker_core.engine.properties import Value

from .sections import REMEMBERED_OCTETS_MAX, Opening, open_message, with_annotations, without_body, without_expiry, write_header
from .types import UUID, Malformed

INVALID_FIELD = "amqp:invalid-field"
DELIVERY_DELAY, DELIVERY_TIME = "x-opt-delivery-delay", "x-opt-delivery-time"
"""Ms from now; an instant, as a JMS client says it."""
RELIABILITY = "x-opt-reliability"
BROKERS_PREFIX = "x-opt-"
"""Before the names of what the broker adds to a message: annotations that begin so may be ignored (messaging 3.2.10)."""
NOT_KEPT = frozenset((DELIVERY_DELAY, *(BROKERS_PREFIX + name for name in ADDED)))
"""Annotations that are taken away: a delay would be a second one where a consumer sends on what it received; the others are the broker's to state of
dead messages."""
DUPLICATE_IDS = ("duplicate-id", "_AMQ_DUPL_ID")
"""Application properties, of the names that STOMP's headers have."""
DELAY_MS_MAX = 10 * 365 * 86_400_000
"""Ten years, as for STOMP."""
NAME_MAX = 255
"""Characters of a message group's name; octets of a duplicate's."""
PRIORITY_MAX = 9
LAST_OF_GROUP = (1 << 32) - 1
"""The sequence -1 of JMS in an unsigned integer."""

MESSAGE_ID, USER_ID, TO, SUBJECT, REPLY_TO, CORRELATION_ID, EXPIRY, CREATED, GROUP, IN_GROUP = 0, 1, 2, 3, 4, 5, 8, 9, 10, 11
"""Places of properties' fields."""

Convert = Callable[[Message], tuple[bytes, bytes | StoredBody]]
"""A message of another protocol: the octets of its Opening, and its body."""


class Arrived:
    """What a message says of itself to the broker."""

    __slots__ = ("header", "reply_to", "to")

    def __init__(self, header: Header, to: str | None, reply_to: str | None) -> None:
        self.header = header
        self.to = to
        """As written: for links to the anonymous terminus."""
        self.reply_to = reply_to
        """As written."""


class Arrivals:
    """Of one link. Most producers repeat all but the body: what it comes to is made once then, and the engine, the store and consumers know it again."""

    __slots__ = ("_arrived", "_client_id", "_header", "_mapping", "_octets")

    def __init__(self, client_id: str, mapping: LevelMapping = UNMAPPED) -> None:
        """`mapping`: of the account, of delivery modes to levels."""
        self._client_id = client_id
        self._mapping = mapping
        self._octets = b"\xff"
        self._header: Any = None
        self._arrived: Arrived | None = None

    def read(self, opening: Opening, now: int) -> Arrived:
        """`now`: instant in ms. Raises Malformed."""
        if self._arrived is not None and opening.octets == self._octets and opening.header is self._header:
            return self._arrived
        arrived, repeats = self._read(opening, now)
        if repeats and len(opening.octets) <= REMEMBERED_OCTETS_MAX:
            self._octets, self._header, self._arrived = opening.octets, opening.header, arrived
        return arrived

    def _read(self, opening: Opening, now: int) -> tuple[Arrived, bool]:
        """Whether the same octets will mean the same later, too."""
        said, values, annotations = opening.header, opening.property_values(), opening.annotations()
        properties = opening.application_properties()
        fields = len(values)
        octets, delay, timed = opening.octets, 0, False
        named: str | None = None
        if annotations:
            if DELIVERY_DELAY in annotations or DELIVERY_TIME in annotations:
                delay, timed = _delay(annotations, now), True
            named = _named_level(annotations)
            if not NOT_KEPT.isdisjoint(annotations):
                octets = with_annotations(octets, dict.fromkeys(NOT_KEPT))
        durable, priority, ttl = (None, 4, None) if said is None else (said.durable or None, said.priority, said.ttl)
        level, stated, told = level_of(named, durable, self._mapping)
        expiration = 0
        if ttl:
            expiration, timed = now + ttl, True
        elif fields > EXPIRY and values[EXPIRY]:
            expiration = _instant(values[EXPIRY])
        header = Header(
            octets,
            int(min(priority, PRIORITY_MAX)),
            level,
            expiration,
            Encoding.AMQP,
            id_text(values[MESSAGE_ID]) if fields and values[MESSAGE_ID] is not None else "",
            self._client_id,
            f'{{"reliability":"{told}"}}' if told and told != named else "",
            delay,
            _duplicate_id(properties) if properties else "",
            _group(values) if fields > GROUP and values[GROUP] else None,
            stated,
        )
        return Arrived(header, values[TO] if fields > TO else None, values[REPLY_TO] if fields > REPLY_TO else None), not timed


def _instant(value: int) -> int:
    if value < 0:
        raise Malformed(f"absolute-expiry-time is {value}, before 1970", INVALID_FIELD)
    return value


def _delay(annotations: Mapping[Any, Any], now: int) -> int:
    name = DELIVERY_DELAY if DELIVERY_DELAY in annotations else DELIVERY_TIME
    value = annotations[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(f"the annotation {name} is no number of milliseconds", INVALID_FIELD)
    delay = int(value) if name == DELIVERY_DELAY else max(int(value) - now, 0)
    if not 0 <= delay <= DELAY_MS_MAX:
        raise Malformed(f"the annotation {name} delays the message by {delay} ms; up to {DELAY_MS_MAX} are allowed, ten years", INVALID_FIELD)
    return delay


def _named_level(annotations: Mapping[Any, Any]) -> str | None:
    named = annotations.get(RELIABILITY)
    if named is None:
        return None
    if not isinstance(named, str) or named not in ASKED:
        raise Malformed(f"the annotation {RELIABILITY} is none of {', '.join(ASKED)}", INVALID_FIELD)
    return str(named)


def _duplicate_id(properties: Mapping[str, Any]) -> str:
    for name in DUPLICATE_IDS:
        value = properties.get(name)
        if value is not None:
            text = id_text(value) if isinstance(value, bytes) else str(value)
            octets = len(text.encode())
            if not 0 < octets <= NAME_MAX:
                raise Malformed(f"the property {name} must have 1 to {NAME_MAX} octets, it has {octets}", INVALID_FIELD)
            return text
    return ""


def _group(values: list[Any]) -> MessageGroup:
    if len(values[GROUP]) > NAME_MAX:
        raise Malformed(f"group-id must have at most {NAME_MAX} characters", INVALID_FIELD)
    return MessageGroup(values[GROUP], len(values) > IN_GROUP and values[IN_GROUP] == LAST_OF_GROUP)


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
            self._properties = {str(name): selectable(value) for name, value in said.items() if isinstance(name, str) and name not in ADDED}
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
    said = write_header(
        durable=header.reliability >= STORED, priority=header.priority, ttl=ttl, first_acquirer=not failures, delivery_count=failures
    )  # fmt: skip
    return said + octets, body


def annotations_of(annotations: str) -> dict[str, Any]:
    """What the broker added to a message, as message-annotations."""
    return {BROKERS_PREFIX + name: value for name, value in json.loads(annotations).items()}
