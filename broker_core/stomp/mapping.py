"""STOMP headers to engine values and back: what a SEND or SUBSCRIBE asks for, what a dead message tells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

from broker_core.engine import address as addresses
from broker_core.engine.address import is_topic
from broker_core.engine.commands import UNLIMITED_CREDIT
from broker_core.engine.dead import ADDED
from broker_core.engine.eligibility import PRIORITY_MAX
from broker_core.engine.message import Encoding, Header, Reliability
from broker_core.engine.message_group import GROUP_ID, GROUP_SEQUENCE, MessageGroup, group_of
from broker_core.engine.pattern import has_wildcards, problem
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import SelectorError, compile_selector
from broker_core.engine.subscription import EVERYTHING, Filter

from .escaping import canonical, header_line, read_canonical
from .limits import Limits
from .sections import DUPLICATE_IDS, Malformed

if TYPE_CHECKING:
    from .temporaries import Temporaries

RELIABILITIES = {
    "best-effort": Reliability.BEST_EFFORT,
    "express": Reliability.EXPRESS,
    "reliable-np": Reliability.RELIABLE_NONPERSISTENT,
    "reliable": Reliability.RELIABLE,
    "assured": Reliability.ASSURED,
}
BROKERS_OWN = frozenset(
    (
        "receipt", "transaction", "content-length", "message-id", "subscription", "ack", "redelivered", "timestamp", "receipt-id",
        "delay", "AMQ_SCHEDULED_DELAY", "browser", *ADDED,
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
def outgoing(headers: dict[str, str], lines: bytes | None, client_id: str, temporaries: Temporaries) -> tuple[str, Header, str]:
    """The address and the shared part of messages sent with these headers, whose `lines` are given if they are in canonical form already; and the
    address of the sender's temporary destination that is to take replies, if that is where it wants them. Raises Malformed, naming header and value."""
    destination = headers.get("destination")
    if destination is None:
        raise Malformed("SEND needs header destination")
    address = temporaries.address_of(destination)
    headers, replies = temporaries.reply_to(headers)
    if lines is None or replies or not BROKERS_OWN.isdisjoint(headers):
        lines = canonical({name: value for name, value in headers.items() if name not in BROKERS_OWN})
    header = Header(
        lines,
        _priority(headers["priority"]) if "priority" in headers else 4,
        _reliability(headers),
        _expiration(headers),
        Encoding.STOMP,
        client_id=client_id,
        delay=_delay(headers),
        duplicate_id=_duplicate_id(headers),
        group=_group(headers) if GROUP_ID in headers else None,
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


def _reliability(headers: dict[str, str]) -> Reliability:
    """R23: without `persistent` a message is express, with it assured; `reliability` says it exactly and wins."""
    persistent = flag(headers, "persistent")
    named = headers.get("reliability")
    if named is None:
        return Reliability.ASSURED if persistent else Reliability.EXPRESS
    level = RELIABILITIES.get(named)
    if level is None:
        raise Malformed(f"header reliability is {quoted(named)}, none of {', '.join(RELIABILITIES)}")
    return level


def flag(headers: dict[str, str], name: str) -> bool:
    """A header that is `true` or `false`, in any case; absent: false."""
    if name not in headers:
        return False
    value = headers[name].lower()
    if value not in ("true", "false"):
        raise Malformed(f"header {name} is {quoted(headers[name])}, neither true nor false")
    return value == "true"


# -- SUBSCRIBE ----------------------------------------------------------------------------------------------------------------------
class Acknowledge(Enum):
    """STOMP 1.2, "SUBSCRIBE ack Header"."""

    AUTO = "auto"
    CLIENT = "client"
    CLIENT_INDIVIDUAL = "client-individual"


@dataclass(slots=True)
class Subscribe:
    """What a SUBSCRIBE asks for."""

    address: str
    destination: str
    """As the client wrote it."""
    acknowledge: Acknowledge
    credit: int
    name: str = ""
    """Of the subscription; empty: it has none."""
    durable: bool = False
    shared: bool = False
    wanted: Filter = EVERYTHING
    exclusive: bool = False
    priority: int = 0
    """Of the consumer."""
    browses: bool = False
    """It looks, and consumes nothing."""


DURABLE_NAMES = ("durable-subscription-name", "activemq.subscriptionName", "durable-subscriber-name")
"""Our contract's, ActiveMQ's, Artemis's."""
CONSUMER_PRIORITIES = ("consumer-priority", "activemq.priority", "x-priority")
"""Artemis's and ours, ActiveMQ's, RabbitMQ's."""


def subscribing(headers: dict[str, str], limits: Limits, client_id: str, temporaries: Temporaries) -> Subscribe:
    """Raises Malformed, naming header and value."""
    destination = headers.get("destination")
    if destination is None:
        raise Malformed("SUBSCRIBE needs header destination")
    address = _pattern(destination) if has_wildcards(destination) else temporaries.address_of(destination)
    on_topic = is_topic(address)
    browses = flag(headers, "browser")
    if browses and on_topic:
        raise Malformed("header browser of SUBSCRIBE is for queues: a topic keeps no messages to look at")
    if not on_topic:
        for name in DURABLE_NAMES:
            if name in headers:
                raise Malformed(f"header {name} of SUBSCRIBE is for topics: a queue keeps its messages anyway")
        if flag(headers, "shared") or "subscription-name" in headers:
            name = "subscription-name" if "subscription-name" in headers else "shared"
            raise Malformed(f"header {name} of SUBSCRIBE is for topics: the consumers of a queue share it anyway")
    named = headers.get("ack", "auto")
    try:
        acknowledge = Acknowledge(named)
    except ValueError:
        raise Malformed(f"header ack is {quoted(named)}, none of auto, client, client-individual") from None
    prefetch = _prefetch(headers, limits)
    credit = UNLIMITED_CREDIT if acknowledge is Acknowledge.AUTO else prefetch
    exclusive = flag(headers, "exclusive") or flag(headers, "activemq.exclusive")
    priority = _consumer_priority(headers)
    wanted = _filter(headers, client_id)
    if browses:
        return Subscribe(address, destination, acknowledge, credit, wanted=wanted, browses=True)
    if not on_topic:
        return Subscribe(address, destination, acknowledge, credit, wanted=wanted, exclusive=exclusive, priority=priority)
    name, durable = subscription_name(headers)
    shared = flag(headers, "shared") or (durable and not client_id and not is_named(headers))
    if shared and not name:
        raise Malformed(f"a shared subscription needs a name: header {DURABLE_NAMES[0]}, or subscription-name for one that is not durable")
    if name and not durable and not shared:
        raise Malformed(f"header subscription-name of SUBSCRIBE is for shared subscriptions; a durable one is named by {DURABLE_NAMES[0]}")
    return Subscribe(address, destination, acknowledge, credit, name, durable, shared, wanted, exclusive, priority)


def _pattern(destination: str) -> str:
    """The address of all topics that match."""
    address = destination[1:] if destination.startswith("/") else f"queue/{destination}"
    if sentence := problem(address):
        raise Malformed(f"destination {quoted(destination)} is not valid: {sentence}")
    return address


def is_named(headers: dict[str, str]) -> bool:
    """A header for it names a durable subscription."""
    return any(header in headers for header in DURABLE_NAMES)


def subscription_name(headers: dict[str, str]) -> tuple[str, bool]:
    """The name of the subscription and whether it is durable. With RabbitMQ's `durable:true` alone the id names it; as there
    it is nobody's in particular if the connection has no client identifier: whoever names it shares it."""
    for header in DURABLE_NAMES:
        if header in headers:
            if not 0 < len(headers[header]) <= NAME_MAX:
                raise Malformed(f"header {header} must have 1 to {NAME_MAX} characters")
            return headers[header], True
    if flag(headers, "durable"):
        if not 0 < len(headers.get("id", "")) <= NAME_MAX:
            raise Malformed(f"a durable subscription is named by header {DURABLE_NAMES[0]}, or by an id of 1 to {NAME_MAX} characters")
        return headers["id"], True
    name = headers.get("subscription-name", "")
    if len(name) > NAME_MAX:
        raise Malformed(f"header subscription-name must have at most {NAME_MAX} characters")
    return name, False


def _no_local(headers: dict[str, str]) -> bool:
    return flag(headers, "no-local") or flag(headers, "activemq.noLocal")


def _filter(headers: dict[str, str], client_id: str) -> Filter:
    selector = None
    if headers.get("selector"):
        try:
            selector = compile_selector(headers["selector"], coerce=True)  # STOMP's headers are strings, whatever they mean
        except SelectorError as error:
            raise Malformed(f"header selector is not valid: {error}") from None
    if not _no_local(headers):
        return Filter(selector) if selector else EVERYTHING
    if not client_id:
        raise Malformed("header no-local of SUBSCRIBE needs a client: state header client-id in CONNECT")
    return Filter(selector, client_id)


def _prefetch(headers: dict[str, str], limits: Limits) -> int:
    """Zero means what it meant where the header comes from: no limit for RabbitMQ's prefetch-count, as few as possible for ActiveMQ's."""
    for name, zero in (("prefetch-count", limits.prefetch_max), ("activemq.prefetchSize", 1)):
        value = headers.get(name)
        if value is not None:
            if not (value.isascii() and value.isdigit()):
                raise Malformed(f"header {name} is {quoted(value)}, not a number of messages")
            return min(int(value[:18]), limits.prefetch_max) or zero
    return limits.prefetch_default


def _consumer_priority(headers: dict[str, str]) -> int:
    for name in CONSUMER_PRIORITIES:
        value = headers.get(name)
        if value is not None:
            if not (is_whole(value, 4) and abs(int(value)) <= PRIORITY_MAX):
                raise Malformed(f"header {name} is {quoted(value)}, not a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}")
            return int(value)
    return 0


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
