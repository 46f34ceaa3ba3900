"""The operations of a shard that wait or run (operating.py)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .operation import Operation

RUNNING_MAX = 4
"""At a time: each has two pages in memory."""


class Operations:
    __slots__ = ("beside", "changed", "known", "running", "waiting")

    def __init__(self) -> None:
        self.known: dict[int, Operation] = {}
        """Those that wait or run, by number."""
        self.waiting: deque[Operation] = deque()
        self.running: deque[Operation] = deque()
        """The next to take a step first."""
        self.changed: dict[int, Operation] = {}
        """Whose rows go into the commit."""
        self.beside = False
        """The last flush had something to tell to peers: there is other work."""

    @property
    def is_due(self) -> bool:
        """Some of them can take a step now."""
        if self.waiting and len(self.running) < RUNNING_MAX:
            return True
        return any(operation.pages for operation in self.running)
