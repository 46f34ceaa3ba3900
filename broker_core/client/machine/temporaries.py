"""The temporary destinations of a connection, by their full names.

The broker knows one as `<session>.<name>` and lets its owner say `<name>` alone. To the application it has its full name from the beginning, so that
it is equal to what others answer to; on the wire goes the short one. So it lives on when the connection is lost and comes back, as another session:
there the broker makes it again at its first use. What others were told before is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from broker_core.client.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from broker_core.client.exceptions import InvalidDestinationException

T = TypeVar("T", TemporaryQueue, TemporaryTopic)


class Temporaries:
    def __init__(self) -> None:
        self.session = ""
        """What the broker calls the present connection."""
        self._short: dict[Destination, str] = {}
        self._count = 0

    def create(self, kind: type[T], deleting: Callable[[Destination], None]) -> T:
        """A new one; `deleting` is what its delete() calls."""
        self._count += 1
        created = kind(f"{self.session}.{self._count}" if self.session else str(self._count), deleting=deleting)
        self._short[created] = f"/{kind.kind}/{self._count}"
        return created

    def delete(self, destination: Destination) -> str:
        """From now on it is not known. How it was said on the wire; empty: it was not known any more."""
        return self._short.pop(destination, "")

    def address_of(self, destination: Queue | Topic) -> str:
        """How to say it on the wire. Raises InvalidDestinationException if it was deleted."""
        if not isinstance(destination, TemporaryQueue | TemporaryTopic):
            return destination.address
        short = self._short.get(destination)
        if short is not None:
            return short
        if self.session and destination.name.startswith(f"{self.session}."):
            raise InvalidDestinationException(f"{destination} was deleted: create another one")
        return destination.address

    def check_own(self, destination: Queue | Topic) -> None:
        """Only who made it consumes from it (JMS 6.2.2)."""
        if isinstance(destination, TemporaryQueue | TemporaryTopic) and destination not in self._short:
            self.address_of(destination)
            raise InvalidDestinationException(f"{destination} belongs to another connection: only that one can consume from it")
