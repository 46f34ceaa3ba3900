"""Where one connection sends to, for operators. Its protocol's machine keeps this beside what it keeps anyway, so that no message costs anything: STOMP
knows by header sections that are not like the one before, AMQP by links, or by what a message of the anonymous relay says that the one before did not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .address import is_temporary

PER_PEER = 65536
"""A producer's number is peer * 65536 + n, so that it tells its connection, and lists go on behind one."""
ADDRESSES_MAX = 256
"""Of one connection that are known by its messages, not by links: with a name of 255 characters each that is 100 KiB."""


class Producer:
    __slots__ = ("address", "link", "number", "sent", "since")

    def __init__(self, number: int, address: str, since: int, link: str | None, sent: Callable[[], int] | None) -> None:
        self.number = number
        self.address = address
        """As the client named it: an alias, perhaps."""
        self.since = since
        """When its link was opened, or its first message came, in ms."""
        self.link = link
        """Its name; None: it has no link of its own."""
        self.sent = sent
        """How many messages have come by the link; None: nobody counts them."""


class Producers:
    """Of one connection."""

    __slots__ = ("_addresses", "_known", "_made", "_peer")

    def __init__(self, peer: int) -> None:
        self._peer = peer
        self._made = 0
        self._known: dict[int, Producer] = {}
        self._addresses: set[str] = set()

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Producer]:
        """In order of their numbers."""
        return iter([self._known[number] for number in sorted(self._known)])

    def meet(self, address: str, now: int) -> None:
        """A message goes there, perhaps the first one. Temporary destinations are left out: who answers
        requests sends to as many as there are clients."""
        if address not in self._addresses and len(self._addresses) < ADDRESSES_MAX and not is_temporary(address):
            self._addresses.add(address)
            self.open(address, now)

    def open(self, address: str, now: int, link: str | None = None, sent: Callable[[], int] | None = None) -> int:
        """Its number, to be given to `close`."""
        while True:
            self._made += 1
            number = self._peer * PER_PEER + self._made % PER_PEER
            if number not in self._known:
                self._known[number] = Producer(number, address, now, link, sent)
                return number

    def close(self, number: int) -> None:
        self._known.pop(number, None)
