"""STOMP headers to engine values and back: what a SEND asks for, what a dead message tells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from broker_core.engine import address as addresses
from broker_core.engine.dead import ADDED
from broker_core.engine.levels import ASKED, UNMAPPED, LevelMapping, level_of
from broker_core.engine.message import Encoding, Header
from broker_core.engine.message_group import GROUP_ID, GROUP_SEQUENCE, MessageGroup, group_of
from broker_core.engine.pattern import has_wildcards
from broker_core.engine.refusal import Refusal

from .escaping import canonical, header_line, read_canonical
from .sections import DUPLICATE_IDS, Malformed

if TYPE_CHECKING:
    from .temporaries import Temporaries

BROKERS_OWN = frozenset(
    (
        "receipt", "transaction", "content-length", "message-id", "subscription", "ack", "redelivered", "timestamp", "receipt-id",
        "delay", "AMQ_SCHEDULED_DELAY", "browser", "JMSXDeliveryCount", *ADDED,
    )
)  # fmt: skip
"""Headers of a SEND that are not kept: they concern its frame or its sending only, or are the broker's to state in MESSAGE and must not be
forged. A delay would be a second one where a consumer sends on what it received."""
DELAYS = ("delay", "AMQ_SCHEDULED_DELAY")
"""Our contract's, ActiveMQ's."""
DELAY_MS_MAX = 10 * 365 * 86_400_000
"""Ten years: what is wanted later is a mistake in the unit."""
OTHER_SCHEDULES = ("AMQ_SCHEDULED_CRON", "AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "_AMQ_SCHED_DELIVERY", "x-delay")
"""ActiveMQ's repetitions, Artemis's instant, RabbitMQ's delay: to ignore them would be to deliver too early or too seldom."""
OTHER_EXPIRATION = "expiration"
"""RabbitMQ's, in ms from the send: to ignore it would be to deliver what nobody wants any more."""
DUPLICATE_ID_OCTETS_MAX = 255
GROUP_SEQUENCE_DIGITS_MAX = 10
"""Those of an int of JMS."""
INSTANT_MAX = (1 << 63) - 1
"""Instants are 64-bit integers in the store."""
NAME_MAX = 255
"""Characters of a subscription's name, or of a message group's."""


def quoted(text: str) -> str:
    """A peer's text inside an error: short, and without what could disturb a terminal or a log line."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[:80])
    return f"'{shown}...'" if len(text) > 80 else f"'{shown}'"


@lru_cache(maxsize=1024)
def address_of(destination: str) -> str:
    """`/queue/orders` or `orders` to the canonical `queue/orders`. Raises Malformed."""
    if destination.startswith("/"):
        address = destination[1:]
        kind = address.partition("/")[0]
        if kind not in addresses.KINDS:
            raise Malformed(f"destination {quoted(destination)} is none of /queue/NAME, /topic/NAME, /temp-queue/NAME, /temp-topic/NAME")
    else:
        address, kind = f"queue/{destination}", "queue"
    if not addresses.is_valid(address):
        raise invalid(destination)
    return address


def invalid(destination: str) -> Malformed:
    reason = "wildcards are for SUBSCRIBE, on topics" if has_wildcards(destination) else Refusal.INVALID_DESTINATION.value
    return Malformed(f"destination {quoted(destination)} is not valid: {reason}")


# -- SEND ---------------------------------------------------------------------------------------------------------------------------
def outgoing(
    headers: dict[str, str], lines: bytes | None, client_id: str, temporaries: Temporaries, mapping: LevelMapping = UNMAPPED
) -> tuple[str, Header, str]:
    """The address and the shared part of messages sent with these headers, whose `lines` are given if they are in canonical form already; and the
    address of the sender's temporary destination that is to take replies, if that is where it wants them. Raises Malformed, naming header and value."""
    destination = headers.get("destination")
    if destination is None:
        raise Malformed("SEND needs header destination")
    address = temporaries.address_of(destination)
    headers, replies = temporaries.reply_to(headers)
    level, stated, told = level_of(_named_level(headers), flag(headers, "persistent") if "persistent" in headers else None, mapping)
    if told != headers.get("reliability"):
        headers = {name: value for name, value in headers.items() if name != "reliability"} | ({"reliability": told} if told else {})
        lines = None
    if lines is None or replies or not BROKERS_OWN.isdisjoint(headers):
        lines = canonical({name: value for name, value in headers.items() if name not in BROKERS_OWN})
    header = Header(
        lines,
        _priority(headers["priority"]) if "priority" in headers else 4,
        level,
        _expiration(headers),
        Encoding.STOMP,
        client_id=client_id,
        delay=_delay(headers),
        duplicate_id=_duplicate_id(headers),
        group=_group(headers) if GROUP_ID in headers else None,
        stated=stated,
    )
    return address, header, replies


def _delay(headers: dict[str, str]) -> int:
    for name in OTHER_SCHEDULES:
        if name in headers:
            raise Malformed(f"header {name} of SEND is not supported: a message is delayed once, by header {DELAYS[0]} in milliseconds")
    for name in DELAYS:
        value = headers.get(name)
        if value is not None:
            if not (value.isascii() and value.isdigit() and len(value) <= 12 and int(value) <= DELAY_MS_MAX):
                raise Malformed(f"header {name} is {quoted(value)}, not a number of milliseconds up to {DELAY_MS_MAX}, ten years")
            return int(value)
    return 0


def _duplicate_id(headers: dict[str, str]) -> str:
    for name in DUPLICATE_IDS:
        value = headers.get(name)
        if value is not None:
            octets = len(value.encode())
            if not 0 < octets <= DUPLICATE_ID_OCTETS_MAX:
                raise Malformed(f"header {name} must have 1 to {DUPLICATE_ID_OCTETS_MAX} octets, it has {octets}")
            return value
    return ""


def _group(headers: dict[str, str]) -> MessageGroup | None:
    if len(headers[GROUP_ID]) > NAME_MAX:
        raise Malformed(f"header {GROUP_ID} must have at most {NAME_MAX} characters")
    sequence = headers.get(GROUP_SEQUENCE, "0")
    if not is_whole(sequence, GROUP_SEQUENCE_DIGITS_MAX):
        raise Malformed(f"header {GROUP_SEQUENCE} is {quoted(sequence)}, not a whole number (-1: the last of its group)")
    return group_of(headers)


def _priority(value: str) -> int:
    if len(value) != 1 or value not in "0123456789":
        raise Malformed(f"header priority is {quoted(value)}, not a digit 0 to 9")
    return int(value)


def _expiration(headers: dict[str, str]) -> int:
    if OTHER_EXPIRATION in headers:
        raise Malformed(f"header {OTHER_EXPIRATION} of SEND is not supported: state header expires, an instant in milliseconds since 1970")
    value = headers.get("expires", "0")
    if not (value.isascii() and value.isdigit() and len(value) <= 19 and int(value) <= INSTANT_MAX):
        raise Malformed(f"header expires is {quoted(value)}, not an instant in milliseconds since 1970 (0: never)")
    return int(value)


def _named_level(headers: dict[str, str]) -> str | None:
    named = headers.get("reliability")
    if named is not None and named not in ASKED:
        raise Malformed(f"header reliability is {quoted(named)}, none of {', '.join(ASKED)}")
    return named


def flag(headers: dict[str, str], name: str) -> bool:
    """A header that is `true` or `false`, in any case; absent: false."""
    if name not in headers:
        return False
    value = headers[name].lower()
    if value not in ("true", "false"):
        raise Malformed(f"header {name} is {quoted(headers[name])}, neither true nor false")
    return value == "true"


def is_whole(value: str, digits_max: int) -> bool:
    """A whole number of so many digits, perhaps with a sign before it."""
    digits = value.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= digits_max


# -- selectors ----------------------------------------------------------------------------------------------------------------------
def decode(header: Header) -> Mapping[str, str]:
    """What a selector sees of a header section: the sender's headers, all strings."""
    return read_canonical(header.octets) if header.encoding == Encoding.STOMP else {}


# -- MESSAGE ------------------------------------------------------------------------------------------------------------------------
def annotation_lines(annotations: str, version: str) -> bytes:
    """What the broker added to a message (reason, time, origin of a dead message) as header lines joined by LF."""
    lines = []
    for name, value in json.loads(annotations).items():
        lines.append(header_line(name, value if isinstance(value, str) else json.dumps(value), version))
    return "\n".join([line for line in lines if line]).encode()
