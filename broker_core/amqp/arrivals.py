"""What a message of AMQP asks the broker for (AMQP JMS mapping 3). Most producers repeat all but a message's body, its identifier and the time of its creation:
what the rest comes to is found out once, and known again."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from broker_core.engine.dead import ADDED
from broker_core.engine.levels import ASKED, UNMAPPED, LevelMapping, level_of
from broker_core.engine.message import Encoding, Header
from broker_core.engine.message_group import MessageGroup

from .amending import with_annotations
from .frames import OCTETS_A_MICROSECOND
from .mapping import BROKERS_PREFIX, CREATED, EXPIRY, GROUP, IN_GROUP, MESSAGE_ID, RELIABILITY, REPLY_TO, TO, id_text
from .performatives import MessageHeader
from .sections import DATA, REMEMBERED_OCTETS_MAX, VALUE, Opening, check_body, content_of, open_message
from .types import Malformed

INVALID_FIELD = "amqp:invalid-field"
DELIVERY_DELAY, DELIVERY_TIME = "x-opt-delivery-delay", "x-opt-delivery-time"
"""Ms from now; an instant, as a JMS client says it."""
DESTINATION_KIND = "x-opt-jms-dest"
"""The annotation that tells of which kind the destination in `to` is."""
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


class Said:
    """Where a message goes, and its answer: as written. One object for all that say the same in the same octets."""

    __slots__ = ("kind", "reply_to", "to")

    def __init__(self, to: str | None, kind: object, reply_to: str | None) -> None:
        self.to = to
        """For links to the anonymous terminus."""
        self.kind = kind
        """What an annotation says of `to`."""
        self.reply_to = reply_to


class Arrived:
    """What a message says of itself to the broker."""

    __slots__ = ("body_at", "header", "said")

    def __init__(self, header: Header, said: Said, body_at: int) -> None:
        self.header = header
        self.said = said
        self.body_at = body_at
        """Where what the engine keeps as its body begins."""


class Likeness:
    """A message that others may be like, in all but its identifier, the time of its creation and its body."""

    __slots__ = ("_after", "_before", "_between", "_created", "_created_end", "_end", "_header", "_id", "_id_end", "_said", "_start")

    def __init__(self, octets: bytes, opening: Opening, values: list[Any], places: list[int], header: Header, said: Said) -> None:
        """`places`: within the opening's octets, those of properties' fields."""
        self._header, self._said = header, said
        self._start = start = opening.body_at - len(opening.octets)
        self._end = start + opening.application_properties_end
        self._id = self._id_end = 0
        if places and values[MESSAGE_ID].__class__ is str and octets[start + places[MESSAGE_ID]] == SHORT_STRING:
            self._id = start + places[MESSAGE_ID] + 2
            self._id_end = self._id + octets[self._id - 1]
        self._created = self._created_end = self._id_end
        if len(places) > CREATED and octets[start + places[CREATED]] == TIMESTAMP:
            self._created = start + places[CREATED] + 1
            self._created_end = self._created + 8
        self._before = octets[: self._id]
        self._between = octets[self._id_end : self._created]
        self._after = octets[self._created_end : self._end]

    def read(self, octets: bytes) -> Arrived | None:
        """None: the message is another, or one that must be looked into. Raises Malformed."""
        end, like = self._end, self._header
        if not octets.startswith(self._before) or octets[self._id_end : self._created] != self._between or octets[self._created_end : end] != self._after:
            return None
        if octets[end : end + 3] not in CONTENTS:
            return None
        try:
            kind, size, body_at = content_of(octets, octets[end + 2], end + 3, end)
            name = id_text(octets[self._id : self._id_end].decode())
        except (IndexError, struct.error, UnicodeDecodeError):
            return None
        if kind is None or size != len(octets) - body_at:
            return None
        header = Header(
            octets[self._start : body_at], like.priority, like.reliability, like.expiration, Encoding.AMQP, name or like.message_id, like.client_id,
            like.annotations, like.delay, like.duplicate_id, like.group, like.stated,
        )  # fmt: skip
        return Arrived(header, self._said, body_at)


SHORT_STRING, TIMESTAMP = 0xA1, 0x83
CONTENTS = (b"\0\x53" + bytes((DATA,)), b"\0\x53" + bytes((VALUE,)))
"""How the sections begin that may have a content (see sections)."""


class Arrivals:
    """Of one link. What does not differ is made once, and the engine, the store and consumers know it again."""

    __slots__ = ("_arrived", "_beginning", "_client_id", "_like", "_mapping", "_octets", "_stated", "effort")

    def __init__(self, client_id: str, mapping: LevelMapping = UNMAPPED) -> None:
        """`mapping`: of the account, of delivery modes to levels."""
        self._client_id = client_id
        self._mapping = mapping
        self._arrived: Arrived | None = None
        """The last one that was looked into."""
        self._stated: MessageHeader | None = None
        """Its section header."""
        self._octets = -1
        """How many the whole message had, if it was nothing but its content behind:"""
        self._beginning = b""
        self._like: Likeness | None = None
        self.effort = 0
        """Microseconds, about, that those took which were looked into; whoever bounds it sets it back."""

    def read(self, octets: bytes, now: int, *, whole: bool = True) -> Arrived | None:
        """`now`: instant in ms. `whole`: these are all octets of the message; else None means that more are needed to tell. Raises Malformed."""
        if whole:
            if len(octets) == self._octets and octets.startswith(self._beginning):
                return self._arrived
            if self._like is not None and (arrived := self._like.read(octets)) is not None:
                return arrived
        opening = open_message(octets, complete=whole)
        if opening is None:
            return None
        if whole:
            check_body(opening, octets[opening.body_at :])
        last = self._arrived
        if last is not None and opening.octets == last.header.octets and opening.header is self._stated:
            return Arrived(last.header, last.said, opening.body_at)
        self.effort += len(opening.octets) // OCTETS_A_MICROSECOND
        values, places = opening.placed_properties()
        arrived, repeats = self._look_into(opening, values, now)
        if repeats and len(opening.octets) <= REMEMBERED_OCTETS_MAX:
            self._arrived, self._stated = arrived, opening.header
            self._like = Likeness(octets, opening, values, places, arrived.header, arrived.said)
            simple = opening.content is not None and opening.content_octets == len(octets) - opening.body_at
            self._octets, self._beginning = (len(octets), octets[: opening.body_at]) if simple and whole else (-1, b"")
        return arrived

    def _look_into(self, opening: Opening, values: list[Any], now: int) -> tuple[Arrived, bool]:
        """Whether the same octets will mean the same later, too. `values`: of properties."""
        stated, annotations, properties = opening.header, opening.annotations(), opening.application_properties()
        fields = len(values)
        octets, delay, timed = opening.octets, 0, False
        named: str | None = None
        if annotations:
            if DELIVERY_DELAY in annotations or DELIVERY_TIME in annotations:
                delay, timed = _delay(annotations, now), True
            named = _named_level(annotations)
            if not NOT_KEPT.isdisjoint(annotations):
                octets, timed = with_annotations(octets, dict.fromkeys(NOT_KEPT)), True
        durable, priority, ttl = (None, 4, None) if stated is None else (stated.durable or None, stated.priority, stated.ttl)
        level, is_stated, told = level_of(named, durable, self._mapping)
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
            is_stated,
        )
        said = Said(values[TO] if fields > TO else None, annotations.get(DESTINATION_KIND), values[REPLY_TO] if fields > REPLY_TO else None)
        return Arrived(header, said, opening.body_at), not timed


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


