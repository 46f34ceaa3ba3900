"""What is to be written, in order: pieces of frames, joined when they leave, and large bodies in their places."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from broker_core.engine.message import StoredBody


@dataclass(slots=True, frozen=True)
class LargeBody:
    """The place of a body in its frame; its octets are read from the store when it is their turn."""

    stored: StoredBody
    presettled: tuple[int, int] | None = None
    """Link and tag of the delivery that counts as acknowledged when these octets have left (ack:auto); None: the client acknowledges it.
    Several frames may have the same body, each for a subscription of its own."""


Piece = bytes | LargeBody


class Outbox(list[Piece]):
    def take(self) -> list[Piece]:
        """All of it, in as few pieces as may be; nothing is left."""
        taken: list[Piece]
        try:
            taken = [b"".join(self)]  # type: ignore[arg-type]
        except TypeError:  # a large body is among them
            taken = []
            for large, run in groupby(self, lambda piece: piece.__class__ is LargeBody):
                if large:
                    taken.extend(run)
                else:
                    taken.append(b"".join(run))  # type: ignore[arg-type]
        self.clear()
        return taken
