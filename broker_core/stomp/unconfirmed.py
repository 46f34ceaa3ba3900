"""The sends of one connection whose receipt is outstanding, and how many there may be (R20)."""

from __future__ import annotations

from collections import deque

from .limits import Limits


class Unconfirmed:
    """Kept up to date by the connection itself, without a call for each SEND."""

    __slots__ = ("_limits", "octets", "sizes")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.sizes: deque[int] = deque()
        """Octets of each that are held in memory, in the order of the sends."""
        self.octets = 0
        """Of all."""

    @property
    def full(self) -> bool:
        """A connection that only sends is not read for now."""
        limits = self._limits
        return len(self.sizes) >= limits.unconfirmed_max or self.octets >= limits.unconfirmed_octets_max

    def excess(self) -> str:
        """Why a connection that cannot be paused, as its ACKs would stay unread, has gone too far; empty: it has not."""
        limits, factor = self._limits, self._limits.subscriber_unconfirmed_factor
        if len(self.sizes) > limits.unconfirmed_max * factor:
            return f"more than {limits.unconfirmed_max * factor} sends wait for their receipt"
        if self.octets > limits.unconfirmed_octets_max * factor:
            return f"more than {limits.unconfirmed_octets_max * factor} octets wait for their receipt"
        return ""
