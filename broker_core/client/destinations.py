"""Queues and topics, by name. Values: equal when their names are; making one makes nothing in the broker."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from broker_core.engine.address import is_valid

from .settings import DeliveryMode
from .exceptions import IllegalStateException, InvalidDestinationException

WILDCARDS = frozenset(("*", "**", ">"))
"""Levels of a topic's name: any one, one or more, any number at the end (Open MQ)."""
_SURROGATE = re.compile("[\ud800-\udfff]")
"""No character, and nothing that UTF-8 can write."""


@dataclass(frozen=True, slots=True)
class Administered:
    """What an operator set up for a destination that was looked up by name. None: nothing."""

    name: str
    """The object's, not the destination's."""
    delivery_mode: DeliveryMode | None = None
    priority: int | None = None
    time_to_live: float | None = None
    """Seconds, 0: for ever."""
    consumer_flow_limit: int | None = None
    """Of each of its consumers; 0: the broker's maximum."""

    def over(self, mode: DeliveryMode, priority: int, seconds: float) -> tuple[DeliveryMode, int, float]:
        """What a message is sent with, whatever its producer and the factory say (item 117)."""
        return (
            mode if self.delivery_mode is None else self.delivery_mode,
            priority if self.priority is None else self.priority,
            seconds if self.time_to_live is None else self.time_to_live,
        )


@dataclass(frozen=True, slots=True)
class Destination:
    """Where messages are sent to and received from. Use Queue or Topic."""

    name: str
    administered: Administered | None = field(default=None, kw_only=True, compare=False, repr=False)
    """Of one that was looked up: `ConnectionFactory.lookup_destination`."""

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        name = self.name
        if self.is_pattern:
            name = ".".join("any" if level in WILDCARDS else level for level in name.split("."))
        if not (isinstance(name, str) and is_valid(f"{self.kind}/{name}")) or _SURROGATE.search(name):
            raise InvalidDestinationException(
                f"{self.name!r} cannot name a {self.kind}: use 1 to 255 octets of printable characters, '.' between levels, "
                "not starting with '/' and without '*' and '>', which stand for levels where a topic is consumed from"
            )

    @property
    def is_pattern(self) -> bool:
        """A topic with wildcards, `prices.*.eur`: it can be consumed from, not sent to."""
        return False

    @property
    def address(self) -> str:
        """As STOMP writes it: `/queue/orders`."""
        return f"/{self.kind}/{self.name}"

    def __str__(self) -> str:
        return self.address


@dataclass(frozen=True, slots=True)
class Queue(Destination):
    """Each message goes to one consumer."""

    kind: ClassVar[str] = "queue"


@dataclass(frozen=True, slots=True)
class Topic(Destination):
    """Each message goes to every subscription."""

    kind: ClassVar[str] = "topic"

    @property
    def is_pattern(self) -> bool:
        return not WILDCARDS.isdisjoint(self.name.split("."))


@dataclass(frozen=True, slots=True)
class TemporaryQueue(Queue):
    """A queue of its connection: only that one consumes from it, and it ends with it. Made by `Session.create_temporary_queue`."""

    deleting: Callable[[Destination], None] | None = field(default=None, compare=False, repr=False)
    """What `delete` calls; None: the queue is another connection's."""

    kind: ClassVar[str] = "temp-queue"

    def delete(self) -> None:
        """End it now. It must have no consumer any more."""
        _delete(self, self.deleting)


@dataclass(frozen=True, slots=True)
class TemporaryTopic(Topic):
    """A topic of its connection; see TemporaryQueue."""

    deleting: Callable[[Destination], None] | None = field(default=None, compare=False, repr=False)

    kind: ClassVar[str] = "temp-topic"

    def delete(self) -> None:
        """End it now. It must have no consumer any more."""
        _delete(self, self.deleting)


def _delete(destination: Destination, deleting: Callable[[Destination], None] | None) -> None:
    if deleting is None:
        raise IllegalStateException(f"{destination} belongs to another connection: only that one can delete it")
    deleting(destination)


KINDS: dict[str, type[Queue | Topic]] = {each.kind: each for each in (Queue, Topic, TemporaryQueue, TemporaryTopic)}


def destination_of(address: str) -> Queue | Topic:
    """`/queue/orders` or `orders` to the queue. Raises InvalidDestinationException."""
    kind, _, name = address[1:].partition("/") if address.startswith("/") else ("queue", "", address)
    if kind not in KINDS:
        raise InvalidDestinationException(f"{address!r} is none of /queue/NAME, /topic/NAME, /temp-queue/NAME, /temp-topic/NAME")
    return KINDS[kind](name)
