"""What each subscription of an ordinary topic is owed, and what it must not get. One begins somewhere between its SUBSCRIBE and the receipt of that:
what was confirmed before is not for it, what is sent after is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .audit import Known

A, B, DEEP = TOPICS = ("topic/u.a", "topic/u.b", "topic/u.b.c")
NEW = tuple(f"topic/u.new{number}" for number in range(50))
"""One after the other is used as a history goes on."""
ORDINARY = frozenset((*TOPICS, *NEW))
MATCHES = {A: {A}, B: {B}, "topic/u.*": ORDINARY - {DEEP}, "topic/u.>": ORDINARY, "topic/u.**": ORDINARY, "topic/*.b.>": {B, DEEP}}
"""What is subscribed to, and what that means: beside these topics there is TOPIC alone."""
SELECTORS: dict[str, Callable[[Known], bool]] = {
    "": lambda _message: True,
    "colour = 'red'": lambda message: message.colour == "red",
    "JMSPriority > 4 OR colour IN ('green', 'red')": lambda message: message.priority > 4 or message.colour != "blue",
}


@dataclass(frozen=True)
class Wanted:
    """As SUBSCRIBE says it; a durable subscription asked for with another one is another."""

    address: str
    selector: str
    no_local: bool


@dataclass(eq=False)
class Interest:
    """One subscription, from when it may begin."""

    place: str
    """It alone has this name."""
    wanted: Wanted
    client_id: str
    durable: bool
    said: int
    """When SUBSCRIBE was."""
    sure: int = 0
    """When its receipt came; 0: it may not have begun."""
    is_over: bool = False
    """From now on nothing is owed to it."""
    is_suspended: bool = False
    """It is being purged: nobody knows what it holds."""
    purged: int = 0
    """What was sent before is not owed to it any more."""

    def takes(self, message: Known) -> bool:
        wanted = self.wanted
        local = wanted.no_local and message.client_id == self.client_id
        return message.address in MATCHES[wanted.address] and SELECTORS[wanted.selector](message) and not local


class Interests:
    """Counts moments: whatever is said or confirmed has its own."""

    def __init__(self, require: Callable[[bool, str], None]) -> None:
        self._require = require
        self._moment = 0
        self._sent: list[Known] = []

    def moment(self) -> int:
        self._moment += 1
        return self._moment

    def sends(self, message: Known) -> None:
        if message.address in ORDINARY:
            message.said = self.moment()
            self._sent.append(message)

    def begins(self, place: str, wanted: Wanted, client_id: str, *, durable: bool) -> Interest:
        return Interest(f"{place}#{self._moment}", wanted, client_id, durable, self.moment())

    def is_sure(self, interest: Interest) -> None:
        interest.sure = interest.sure or self.moment()

    def goes_on(self, interest: Interest) -> None:
        """It has been purged."""
        interest.is_suspended, interest.purged = False, self.moment()

    def sees(self, interest: Interest, message: Known) -> None:
        what = f"{message.uid} of {message.client_id or 'nobody'} to {message.address}, {message.colour} with priority {message.priority},"
        self._require(interest.takes(message), f"{what} came to {interest.place}, which is {interest.wanted}")
        before = 0 < message.confirmed_at < interest.said
        self._require(not before, f"{what} was confirmed before {interest.place} was asked for, and came to it")

    def owed(self, interest: Interest) -> list[Known]:
        """What must have come to it, or must come, and was not consumed."""
        if not interest.sure or interest.is_over or interest.is_suspended:
            return []
        since = max(interest.sure, interest.purged)
        return [m for m in self._sent if since < m.said and self._is_promised(m) and interest.place not in m.acked and interest.takes(m)]

    @staticmethod
    def _is_promised(message: Known) -> bool:
        return message.confirmed_at > 0 and message.level > 0 and not message.excused
