"""A naive broker: one list of messages a queue, no pages, no segments, no octets. It predicts who may get what; the engine must agree."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False)
class NaiveMessage:
    name: str
    order: int
    priority: int
    stored: bool
    colour: str = ""
    state: str = "waiting"
    """waiting, held, settled, dead, lost"""
    holder: int = 0
    failures: int = 0
    left: bool = False
    """It was delivered at least once."""
    seen: bool = False
    """Somebody may have looked at it: another delivery must be flagged."""
    seen_before: bool = False
    """The same before it was delivered last: its consumer may say that nobody has looked at it."""
    was_there: bool = False
    """Before a crash: it is flagged if it lay before something that had left."""


@dataclass
class NaiveLink:
    peer: int
    credit: int
    exclusive: bool = False
    priority: int = 0
    colour: str = ""
    """It takes only these; empty: all."""
    threshold: int = 100
    """Percent of its credit: when it had all of that it gets no more before it holds so little."""
    is_full: bool = False
    held: dict[int, NaiveMessage] = field(default_factory=dict)

    def takes(self, message: NaiveMessage) -> bool:
        return self.colour in ("", message.colour)

    @property
    def has_room(self) -> bool:
        return not self.is_full and len(self.held) < self.credit

    def look(self) -> None:
        """Its deliveries are others."""
        self.is_full = len(self.held) > self.credit * self.threshold // 100 if self.is_full else len(self.held) >= self.credit


class NaiveBroker:
    has_groups = False
    """Then consumers that take everything wait for what came back, while a selective one goes on with what it found."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.messages: dict[str, NaiveMessage] = {}
        self.links: dict[int, NaiveLink] = {}
        self.paused = False
        self.purged: list[list[NaiveMessage]] = []
        """What each purge discarded and may be undone."""

    def send(self, name: str, priority: int, *, stored: bool, colour: str = "") -> None:
        self.messages[name] = NaiveMessage(name, len(self.messages), priority, stored, colour)

    def waiting(self) -> list[NaiveMessage]:
        return [message for message in self.messages.values() if message.state == "waiting"]

    def shown(self) -> list[str]:
        """What a browser sees, in order."""
        there = [message for message in self.messages.values() if message.state in ("waiting", "held")]
        return [message.name for message in sorted(there, key=lambda m: (-m.priority, not m.stored, m.order))]

    def may_go_first(self, message: NaiveMessage, link: NaiveLink) -> bool:
        """Nothing of its lane that the link takes and that never left waits before it, and nothing of a higher priority; what a selective link takes
        of that may have to be found first."""
        waiting = [other for other in self.waiting() if link.takes(other)]
        if not link.colour and any(other.priority > message.priority for other in waiting):
            return False
        lane = [m for m in waiting if (m.priority, m.stored) == (message.priority, message.stored)]
        return message.left or all(other.order >= message.order or other.left for other in lane)

    def is_for(self, message: NaiveMessage, number: int) -> bool:
        return self.links[number].takes(message)

    def eligible(self) -> list[NaiveLink]:
        """Of exclusive links the one of the highest priority, of equals the first; without any, all."""
        exclusive = [link for link in self.links.values() if link.exclusive]
        return [max(exclusive, key=lambda link: link.priority)] if exclusive else list(self.links.values())

    def deliver(self, number: int, tag: int, name: str, *, redelivered: bool) -> None:
        link, message = self.links[number], self.messages[name]
        assert not self.paused, f"{name} left while consumers are paused"
        assert message.state == "waiting", f"{name} was delivered while it is {message.state}"
        assert link.takes(message), f"link {number} got {name} and takes only what is {link.colour}"
        assert self.may_go_first(message, link), f"{name} overtook another of its lane"
        assert link.has_room, f"link {number} got {name} beyond its credit"
        assert link in self.eligible(), f"link {number} got {name}, an exclusive consumer is there"
        others = {n: other for n, other in self.links.items() if other in self.eligible() and self.is_for(message, n)}
        others = {n: other for n, other in others.items() if not other.colour}  # a selective one may not know of it yet
        sooner = [n for n, other in others.items() if other.priority > link.priority and other.has_room]
        assert not sooner or (link.colour and self.has_groups), f"link {number} got {name}, {sooner} of higher priority had room"
        assert redelivered or not message.seen, f"{name} came again without its flag"
        assert not redelivered or message.seen or message.was_there or not message.left, f"{name} is flagged, and nobody has looked at it"
        message.state, message.holder, message.left = "held", number, True
        message.seen_before, message.seen = message.seen or redelivered, True
        link.held[tag] = message
        link.look()

    def settle(self, number: int, tags: list[int], outcome: str) -> None:
        for tag in tags:
            message = self.links[number].held.pop(tag)
            message.holder = 0
            if outcome == "accepted":
                message.state = "settled"
            elif outcome in ("released", "unused"):
                message.state = "waiting"
                message.seen = message.seen_before or outcome == "released"
            elif outcome == "rejected":
                message.state = "dead"
            else:
                message.failures += 1
                message.state = "dead" if message.failures > self.maximum else "waiting"
        self.links[number].look()

    def lose_link(self, number: int) -> None:
        for message in self.links.pop(number).held.values():
            message.state, message.holder = "waiting", 0

    def crash(self) -> None:
        self.links.clear()
        for message in self.messages.values():
            message.was_there = True
            if message.state == "held":
                message.state, message.holder = "waiting", 0
            if not message.stored and message.state == "waiting":
                message.state = "lost"

    def purge(self) -> int:
        waiting = self.waiting()
        for message in waiting:
            message.state = "settled"
        stored = [message for message in waiting if message.stored]
        if stored:
            self.purged.append(stored)
        return len(waiting)

    def undo(self, number: int) -> int:
        back = self.purged.pop(number)
        for message in back:
            message.state = "waiting"
            message.was_there = True
        return len(back)

    def owes(self) -> bool:
        """Somebody may receive and something waits: after a flush with all reads answered that must not be."""
        able = [link for link in self.eligible() if link.has_room]
        return not self.paused and any(link.takes(message) for message in self.waiting() for link in able)

    @property
    def depth(self) -> int:
        return sum(message.state in ("waiting", "held") for message in self.messages.values())

    @property
    def dead(self) -> int:
        return sum(message.state == "dead" for message in self.messages.values())
