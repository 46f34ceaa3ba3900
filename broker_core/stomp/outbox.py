"""What is to be written, in order: pieces of frames, joined when they leave, and large bodies in their places."""

from __future__ import annotations

from itertools import groupby

from broker_core.engine.message import StoredBody


class Outbox(list[bytes | StoredBody]):
    def take(self) -> list[bytes | StoredBody]:
        """All of it, in as few pieces as may be; nothing is left."""
        taken: list[bytes | StoredBody]
        try:
            taken = [b"".join(self)]  # type: ignore[arg-type]
        except TypeError:  # a large body is among them
            taken = []
            for stored, run in groupby(self, lambda piece: piece.__class__ is StoredBody):
                if stored:
                    taken.extend(run)
                else:
                    taken.append(b"".join(run))  # type: ignore[arg-type]
        self.clear()
        return taken
