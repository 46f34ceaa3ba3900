"""What is to be written, in order."""

from __future__ import annotations


class Outbox(list[bytes]):
    def take(self) -> list[bytes]:
        """All of it, as one piece; nothing is left."""
        taken = [b"".join(self)] if self else []
        self.clear()
        return taken
