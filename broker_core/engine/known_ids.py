"""What duplicate detection remembers (see duplicates): the identifiers of accepted messages, for each destination in the order of their acceptance."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .destination import Destination


class KnownIds:
    """Of one destination. Not a plain dict: from its front thousands are taken one after the other, and each would look for the first that is left."""

    __slots__ = ("_accepted_at", "stored_at", "trimmed_before")

    def __init__(self) -> None:
        self._accepted_at: OrderedDict[str, int] = OrderedDict()
        """Instants in ms, ascending."""
        self.stored_at = 0
        """When a commit last wrote rows of them; 0: none did."""
        self.trimmed_before = 0
        """Rows older than this instant are deleted, or being deleted."""

    def __len__(self) -> int:
        return len(self._accepted_at)

    def __contains__(self, identifier: str) -> bool:
        return identifier in self._accepted_at

    @property
    def oldest_at(self) -> int:
        """Only if there is one."""
        return self._accepted_at[next(iter(self._accepted_at))]

    def instants(self) -> list[int]:
        """In order."""
        return list(self._accepted_at.values())

    def has(self, identifier: str, after: int) -> bool:
        """Whether its message was accepted later than `after`."""
        accepted_at = self._accepted_at.get(identifier)
        return accepted_at is not None and accepted_at > after

    def add(self, identifier: str, now: int) -> bool:
        """It is the youngest; False: it was among the others, too old to count."""
        new = identifier not in self._accepted_at
        self._accepted_at[identifier] = now
        if not new:
            self._accepted_at.move_to_end(identifier)
        return new

    def load(self, instants: Iterable[int], identifiers: Iterable[str]) -> None:
        """What was remembered before a recovery, oldest first."""
        accepted_at = self._accepted_at
        for instant, identifier in zip(instants, identifiers, strict=True):
            if identifier in accepted_at:
                del accepted_at[identifier]
            accepted_at[identifier] = instant

    def forget_oldest(self) -> None:
        self._accepted_at.popitem(last=False)

    def forget(self, upto: int, at_most: int) -> int:
        """The oldest, if accepted by then; how many."""
        accepted_at, forgotten = self._accepted_at, 0
        for identifier in accepted_at:
            if forgotten == at_most or accepted_at[identifier] > upto:
                break
            forgotten += 1
        for _ in range(forgotten):
            accepted_at.popitem(last=False)
        return forgotten


class Duplicates:
    """What concerns all destinations that detect duplicates."""

    __slots__ = ("dropped", "ids", "leaving", "turns")

    def __init__(self) -> None:
        self.dropped = 0
        """Sends that were confirmed and dropped, since recovery."""
        self.ids = 0
        """Remembered in all."""
        self.turns: deque[Destination] = deque()
        """Those with a window; first who is next to be looked through for what is too old."""
        self.leaving: dict[int, int] = {}
        """Numbers of destinations that remember nothing any more, whose rows are to be deleted; and when the last of them were written."""
