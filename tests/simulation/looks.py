"""What browsers are shown, and what they should have been: everything that was there when they came and nobody settled meanwhile, once, in order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .audit import BEST_EFFORT, CLOCK_LAG_MS, DEAD, REASON, REMOVED, Auditor, Broken, Known

PURGED = "queue/d"
"""Operators throw away what is in it, and the auditor hears of it later."""


@dataclass(eq=False)
class Look:
    """One browser of a session."""

    name: str
    address: str
    expected: list[Known]
    """Confirmed, and not known to be over, when it was asked for."""
    over: frozenset[str]
    """What was known to be over by then."""
    open: bool = True
    shown: set[str] = field(default_factory=set)
    last: Known | None = None
    orders: dict[tuple[object, ...], int] = field(default_factory=dict)
    mode = "browser"
    auto = False
    """It never acknowledges."""


class Looks:
    def __init__(self, auditor: Auditor, counts: Counter[str]) -> None:
        self._auditor, self._counts = auditor, counts
        self._missing: list[tuple[str, Known]] = []

    def begin(self, name: str, address: str, now: int) -> Look:
        known = [message for message in self._auditor.known.values() if message.address == address]
        there = [m for m in known if address in m.seen or not (m.delay or m.by_sql)]  # a node may be late
        expected = [m for m in there if m.confirmed and m.level > BEST_EFFORT and not m.acked and not m.excused and address != PURGED]
        over = frozenset(m.uid for m in known if address in m.ack_confirmed | m.rejection_confirmed or 0 < m.expires <= now)
        return Look(name, address, expected, over)

    def shows(self, look: Look, uid: str, body: bytes, headers: dict[str, str], now: int) -> None:
        message = self._auditor.known.get(uid)
        if message is None:
            raise Broken(f"{uid} was shown in {look.address} and never sent")
        self._require(not message.refused, f"{uid} was shown in {look.address}, and {message.refused}")
        self._require(body == message.body, f"{uid} was shown with another body than it was sent with")
        copy = f"{uid}, removed" if message.owed and headers.get(REASON) in REMOVED else uid
        self._require(copy not in look.shown, f"{copy} was shown to {look.name} twice")
        refused = look.address == DEAD and message.by_sql  # at once, whatever its delay
        self._require(refused or now >= message.due - CLOCK_LAG_MS, f"{uid} was shown {message.due - now} ms before it was due")
        look.shown.add(copy)
        if look.address == DEAD:
            self._require(not message.unkept, f"{uid} was kept when it died, and wished otherwise")
            return
        self._require(message.address == look.address, f"{uid} was sent to {message.address} and shown in {look.address}")
        self._require(uid not in look.over or bool(message.excused), f"{uid} was over before {look.name} looked, and was shown to it")
        self._auditor.transactions.sees_send(message)
        last, look.last = look.last, message
        self._require(last is None or last.priority >= message.priority, f"{uid} was shown to {look.name} after one of lower priority")
        key = message.session, message.priority, message.stored, message.delay
        self._require(look.orders.get(key, -1) < message.order, f"{uid} was shown to {look.name} out of order")
        look.orders[key] = message.order

    def ends(self, look: Look, now: int) -> None:
        """The mark that says: this was all."""
        self._require(look.open, f"{look.name} was told twice that this was all")
        look.open = False
        self._counts["browsed to the end"] += 1
        for message in look.expected:
            unsettled = not (message.acked or message.nacks or message.rejected) and not message.excused and not 0 < message.expires <= now
            if unsettled and message.uid not in look.shown:
                self._missing.append((look.name, message))

    def check_end(self) -> None:
        """What was missing then is excused only if it was on its way to somebody who never acknowledges, or had to make room."""
        for name, message in self._missing:
            lost = self._auditor.removes and bool(message.excused) and DEAD not in message.seen  # removed, and then its dead copy
            self._require(message.unacknowledged or message.removed or lost, f"{message.uid} was there and not shown to {name}")

    @staticmethod
    def _require(holds: bool, sentence: str) -> None:
        if not holds:
            raise Broken(sentence)
