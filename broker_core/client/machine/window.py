"""How much is sent and not confirmed. The broker reads no more from a connection that has 1,000 messages or 1 MiB outstanding (R20), and ends one
that also consumes if it goes on: nobody gains from sending more than that ahead."""

from __future__ import annotations

from broker_core.stomp.limits import Limits

MESSAGES_MAX = Limits().unconfirmed_max
OCTETS_MAX = Limits().unconfirmed_octets_max


class Window:
    __slots__ = ("messages", "octets")

    def __init__(self) -> None:
        self.messages = 0
        self.octets = 0

    @property
    def is_full(self) -> bool:
        """The next send must wait. One message always fits, however large."""
        return self.messages >= MESSAGES_MAX or self.octets >= OCTETS_MAX

    def enter(self, octets: int) -> None:
        self.messages += 1
        self.octets += octets

    def leave(self, octets: int) -> None:
        self.messages -= 1
        self.octets -= octets
