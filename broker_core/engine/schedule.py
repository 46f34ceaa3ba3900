"""The delayed messages that are due soon, in memory; all others are rows of the store only (R3), read ahead in the order in which they are due.

`horizon` parts them: every row up to it is in `near`, whatever lies beyond is not, so that a million delayed messages cost no memory and nothing
is asked of the store at each tick. A read moves the horizon on; an overflow of `near` takes it back, and the rows are read again.

A message that waits has its number in `sequence` (its own it gets when it becomes visible) and the instant at which it is due in `accepted_at`.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from .message import Message

if TYPE_CHECKING:
    from .rescheduling import Asked

Key = tuple[int, int]
"""(due, number): the order in which delayed messages become visible. Of those due at the same instant the one sent first."""
LAST = (1 << 63) - 1
"""No number is higher."""
ENTRY_OCTETS = 512
"""What a message that waits takes beside its own octets: else a million empty ones would count as nothing."""


def key_of(message: Message) -> Key:
    return message.accepted_at, message.sequence


def octets_of(message: Message) -> int:
    """In memory."""
    return ENTRY_OCTETS + message.weight


class Heap:
    """Messages by their keys."""

    __slots__ = ("_entries", "octets")

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, Message]] = []
        self.octets = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def first(self) -> Key:
        """Only if there is one."""
        due, number, _ = self._entries[0]
        return due, number

    def push(self, message: Message) -> None:
        heappush(self._entries, (message.accepted_at, message.sequence, message))
        self.octets += octets_of(message)

    def pop(self) -> Message:
        message = heappop(self._entries)[2]
        self.octets -= octets_of(message)
        return message

    def find(self, number: int) -> Message | None:
        return next((message for _, sequence, message in self._entries if sequence == number), None)

    def messages(self) -> list[Message]:
        """In order."""
        return [message for _, _, message in sorted(self._entries)]

    def keep(self, wanted: Callable[[Message], bool]) -> list[Message]:
        """Only those that are wanted; what is not."""
        kept, gone = [], []
        for entry in self._entries:
            if wanted(entry[2]):
                kept.append(entry)
            else:
                gone.append(entry[2])
        heapify(kept)
        self._entries = kept
        self.octets -= sum(map(octets_of, gone))
        return gone


class Schedule:
    __slots__ = ("_mark", "asked", "discarding", "gone", "horizon", "near", "owned", "paused", "read", "reserved", "rows", "unwritten")

    def __init__(self) -> None:
        self.rows = 0
        """Delayed messages of all destinations that the store keeps."""
        self.near = Heap()
        """The first of them. While a read is on its way also those of its interval that came after it was asked for."""
        self.unwritten = Heap()
        """Best effort: in memory only."""
        self.horizon: Key = (0, 0)
        self.read = 0
        """The number of the read on its way; 0: none."""
        self.owned: Key | None = None
        """How far that read can move the horizon; None: no further, it was asked too early."""
        self.reserved = 0
        """Octets set aside for its answer."""
        self._mark = 0
        """The highest number when it was asked for: what has a higher one came later."""
        self.paused = False
        """There is no disk space: what is due must wait (R21)."""
        self.asked: dict[int, Asked] = {}
        """Operators' requests by the reads of their rows (rescheduling.py)."""
        self.gone: dict[int, None] = {}
        """Numbers of rows that went while a read was on its way that may still bring them, as far as that matters."""
        self.discarding: dict[int, None] = {}
        """Numbers of destinations that are no more, whose rows are to be deleted."""

    @property
    def is_waiting(self) -> bool:
        """Something is delayed."""
        return self.rows > 0 or self.unwritten.octets > 0 or self.read > 0

    @property
    def memory(self) -> int:
        return self.near.octets + self.unwritten.octets + self.reserved

    @property
    def beyond(self) -> int:
        """Rows that are in the store only."""
        return self.rows - len(self.near)

    def waits_until(self, due: int) -> bool:
        """Something is, or may be, due by then."""
        firsts = [heap.first[0] for heap in (self.near, self.unwritten) if heap]
        return min(firsts, default=LAST) <= due or self._bound < (due, LAST)

    def next_due(self) -> int | None:
        """When the first message is due that may become visible without another read."""
        if self.paused:
            return None
        bound = self._bound
        firsts = [heap.first for heap in (self.near, self.unwritten) if heap]
        return min([first[0] for first in firsts if first <= bound], default=None)

    @property
    def _bound(self) -> Key:
        """Up to here the order is known."""
        return self.horizon if self.read or self.beyond else (LAST, LAST)

    def pop_due(self, now: int) -> Message | None:
        """The next message that is due. None: none is, or earlier ones must be read first."""
        heap = self.near
        if self.unwritten and not (heap and heap.first < self.unwritten.first):
            heap = self.unwritten
        if not heap or heap.first[0] > now or heap.first > self._bound:
            return None
        message = heap.pop()
        if heap is self.near:
            self.rows -= 1
            if self.asked:
                self.gone[message.sequence] = None
        return message

    # -- by an operator's hand ------------------------------------------------------------------------------------------------------------
    def find(self, number: int) -> Message | None:
        """The message of this number, if it is in memory. As many are looked at as there are."""
        return self.near.find(number) or self.unwritten.find(number)

    def withdraw(self, message: Message, *, in_memory: bool) -> None:
        """It waits no more."""
        if in_memory and self.unwritten.keep(lambda each: each is not message):
            return
        if in_memory:
            self.near.keep(lambda each: each is not message)
        self.rows -= 1
        if self.asked or self.read:
            self.gone[message.sequence] = None

    def forget_gone(self) -> None:
        """Nothing is on its way any more that could bring it."""
        if self.gone and not (self.asked or self.read):
            self.gone = {}

    # -- what comes ---------------------------------------------------------------------------------------------------------------------
    def add(self, message: Message, known_until: int) -> None:
        """One more row. `known_until`: how far ahead, in ms, it is worth while to keep rows in memory."""
        if not self.read and not self.beyond:
            self.horizon = max(self.horizon, (known_until, LAST))
        self.rows += 1
        if key_of(message) <= (self.owned or self.horizon):
            self.near.push(message)

    def forget(self, destination: int, scheduled: int) -> list[Message]:
        """The destination ends, and `scheduled` messages for it were waiting. Returns those that are no rows."""
        self.near.keep(lambda message: message.destination != destination)
        unwritten = self.unwritten.keep(lambda message: message.destination != destination)
        if scheduled > len(unwritten):
            self.rows -= scheduled - len(unwritten)
            self.discarding[destination] = None
        return unwritten

    def shrink(self, rows: int, octets: int) -> None:
        """Keep the first so many rows and octets, one at least, in memory; the horizon comes back to the last of them."""
        first, *others = self.near.messages()[: max(rows, 1)]
        bound = key_of(first)
        octets -= octets_of(first)
        for message in others:
            octets -= octets_of(message)
            if octets < 0:
                break
            bound = key_of(message)
        if bound > self.horizon:
            self.owned = bound
        else:
            self.horizon, self.owned = bound, None
        self.near.keep(lambda message: key_of(message) <= bound)

    # -- what is read -------------------------------------------------------------------------------------------------------------------
    def begin(self, read: int, upto: int, octets: int, highest: int) -> None:
        """Rows beyond the horizon and due by `upto` are asked for. From now on what comes of that interval is held here."""
        self.read, self.owned, self.reserved, self._mark = read, (upto, LAST), octets, highest

    def take(self, rows: list[Message], complete: bool, exists: Callable[[int], bool]) -> None:
        """The answer. Only rows of destinations that exist are of interest."""
        end, self.owned, self.read, self.reserved = self.owned, None, 0, 0
        if end is None:
            self.forget_gone()
            return
        if not complete:
            end = min(end, key_of(rows[-1]))
            self.near.keep(lambda message: key_of(message) <= end)
        for row in rows:
            if key_of(row) <= end and row.sequence <= self._mark and exists(row.destination) and row.sequence not in self.gone:
                self.near.push(row)
        self.horizon = end
        self.forget_gone()
