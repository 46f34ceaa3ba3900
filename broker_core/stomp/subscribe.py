"""What the headers of a SUBSCRIBE ask for, in our words and in those of ActiveMQ, Artemis and RabbitMQ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from broker_core.engine.address import is_topic
from broker_core.engine.commands import UNLIMITED_CREDIT
from broker_core.engine.eligibility import PRIORITY_MAX
from broker_core.engine.link import NO_THRESHOLD
from broker_core.engine.pattern import has_wildcards, problem
from broker_core.engine.selector import SelectorError, compile_selector
from broker_core.engine.subscription import EVERYTHING, Filter

from .limits import Limits
from .mapping import NAME_MAX, flag, is_whole, quoted
from .sections import Malformed

if TYPE_CHECKING:
    from .temporaries import Temporaries


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
    client_id: str | None = None
    """Whose subscription it looks at. None: that of the connection's client."""
    threshold: int = NO_THRESHOLD
    """Percent of `credit` (Attach.threshold)."""


DURABLE_NAMES = ("durable-subscription-name", "activemq.subscriptionName", "durable-subscriber-name")
"""Our contract's, ActiveMQ's, Artemis's."""
THRESHOLD = "consumer-flow-threshold"
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
    priority, threshold = _consumer_priority(headers), _threshold(headers)
    wanted = _filter(headers, client_id)
    if browses:
        name = _browsed(headers) if on_topic else ""
        return Subscribe(address, destination, acknowledge, credit, name, wanted=wanted, browses=True, client_id=headers.get("client-id"))
    if not on_topic:
        return Subscribe(address, destination, acknowledge, credit, wanted=wanted, exclusive=exclusive, priority=priority, threshold=threshold)
    name, durable = subscription_name(headers)
    shared = flag(headers, "shared") or (durable and not client_id and not is_named(headers))
    if shared and not name:
        raise Malformed(f"a shared subscription needs a name: header {DURABLE_NAMES[0]}, or subscription-name for one that is not durable")
    if name and not durable and not shared:
        raise Malformed(f"header subscription-name of SUBSCRIBE is for shared subscriptions; a durable one is named by {DURABLE_NAMES[0]}")
    return Subscribe(address, destination, acknowledge, credit, name, durable, shared, wanted, exclusive, priority, threshold=threshold)


def _browsed(headers: dict[str, str]) -> str:
    """The name of the durable subscription of a topic that is to be looked at."""
    name, durable = subscription_name(headers)
    if not durable:
        raise Malformed(
            f"header browser of SUBSCRIBE is for queues, and for durable subscriptions of topics, which header {DURABLE_NAMES[0]} names: "
            "a topic itself keeps no messages to look at"
        )
    return name


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
            selector = compile_selector(headers["selector"])
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
    return min(limits.prefetch_default, limits.prefetch_max)


def _threshold(headers: dict[str, str]) -> int:
    value = headers.get(THRESHOLD)
    if value is None:
        return NO_THRESHOLD
    if not (value.isascii() and value.isdigit() and len(value) <= 3 and 1 <= int(value) <= NO_THRESHOLD):
        raise Malformed(f"header {THRESHOLD} is {quoted(value)}, not a whole number of percent from 1 to {NO_THRESHOLD}")
    return int(value)


def _consumer_priority(headers: dict[str, str]) -> int:
    for name in CONSUMER_PRIORITIES:
        value = headers.get(name)
        if value is not None:
            if not (is_whole(value, 4) and abs(int(value)) <= PRIORITY_MAX):
                raise Malformed(f"header {name} is {quoted(value)}, not a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}")
            return int(value)
    return 0
