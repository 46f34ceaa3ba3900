"""A naive broker that knows message groups: it remembers who got what of each, and says who may get more."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.engine.naive import NaiveBroker, NaiveLink, NaiveMessage


@dataclass(eq=False)
class GroupedMessage(NaiveMessage):
    group: str = ""
    closes: bool = False
    instance: int = 0
    """How many messages before it closed its group."""
    due: int = 0
    """While it is delayed."""


class GroupedBroker(NaiveBroker):
    has_groups = True

    def __init__(self, maximum: int, delay: int, window: int) -> None:
        super().__init__(maximum)
        self.delay = delay
        self.window = window
        """Messages of a lane that are set aside before the lane waits."""
        self.owners: dict[str, list[int]] = {}
        """By group the open links that got messages of it, in that order; one that takes all is the last."""
        self.closings: Counter[str] = Counter()
        """How often a group was closed, or will be."""

    def send_grouped(self, name: str, priority: int, *, stored: bool, colour: str, group: str, closes: bool) -> None:
        before = sum(m.closes for m in self.messages.values() if isinstance(m, GroupedMessage) and m.group == group)
        self.messages[name] = GroupedMessage(name, len(self.messages), priority, stored, colour, group=group, closes=closes, instance=before)
        self.closings[group] += closes

    # -- whose it is ----------------------------------------------------------------------------------------------------------------------
    def owner(self, message: NaiveMessage) -> int:
        """0: it has none; -1: nobody can tell, as a group is over when its last message finds an owner, who may have no room for it yet."""
        assert isinstance(message, GroupedMessage)
        if self.closings[message.group]:
            return -1
        if message.group:
            for number in self.owners.get(message.group, ()):
                if self.links[number].takes(message):
                    return number
        return 0

    def is_for(self, message: NaiveMessage, number: int) -> bool:
        return self.links[number].takes(message) and self.owner(message) in (0, number)

    def join(self, number: int, link: NaiveLink) -> None:
        self.links[number] = link
        for group, owners in self.owners.items():
            self.owners[group] = [owner for owner in owners if self.links[owner] in self.eligible()]

    # -- what happens ---------------------------------------------------------------------------------------------------------------------
    def deliver(self, number: int, tag: int, name: str, *, redelivered: bool) -> None:
        message = self.messages[name]
        assert isinstance(message, GroupedMessage)
        owner = self.owner(message)
        assert owner in (-1, 0, number), f"link {number} got {name} of group {message.group}, which link {owner} owns"
        super().deliver(number, tag, name, redelivered=redelivered)
        owners = self.owners.setdefault(message.group, [])
        if message.group and number not in owners:
            owners.append(number)

    def may_go_first(self, message: NaiveMessage, link: NaiveLink) -> bool:
        assert isinstance(message, GroupedMessage)
        number = link.peer
        mine = [m for m in self.waiting() if self.is_for(m, number) and isinstance(m, GroupedMessage)]
        if any(self.comes_before(m, message) and link.takes(m) and self.owner(m) in (-1, 0, number) for m in self.waiting()):
            return False
        sooner = [m for m in mine if m.priority > message.priority and not self.is_stalled(m)]
        return bool(link.colour) or not sooner

    def comes_before(self, other: NaiveMessage, message: NaiveMessage) -> bool:
        """Of one group, or of none: what came back first, the rest in order. A group that was closed is another one."""
        assert isinstance(other, GroupedMessage) and isinstance(message, GroupedMessage)
        if (other.priority, other.stored, other.group, other.instance) != (message.priority, message.stored, message.group, message.instance):
            return False
        if other.order >= message.order or (message.left and not other.left):
            return False
        return not other.left or (message.group != "" and not message.left and not self.closings[message.group])

    def is_stalled(self, message: NaiveMessage) -> bool:
        """It may have to wait for owners of what lies in its lane."""
        waiting = [m for m in self.waiting() if (m.priority, m.stored) == (message.priority, message.stored)]
        return len(waiting) > self.window

    def settle(self, number: int, tags: list[int], outcome: str, now: int = 0) -> None:
        failed = [self.links[number].held[tag] for tag in tags] if outcome == "failed" and self.delay else []
        super().settle(number, tags, outcome)
        for message in failed:
            if message.state == "waiting" and isinstance(message, GroupedMessage):
                message.state, message.due = "delayed", now + self.delay

    def wake(self, now: int) -> None:
        for message in self.messages.values():
            if isinstance(message, GroupedMessage) and message.state == "delayed" and message.due <= now:
                message.state = "waiting"

    def lose_link(self, number: int) -> None:
        super().lose_link(number)
        for owners in self.owners.values():
            if number in owners:
                owners.remove(number)

    def crash(self) -> None:
        self.wake(1 << 62)
        super().crash()
        self.owners.clear()

    def purge(self) -> int:
        self.wake(1 << 62)
        return super().purge()

    def owes(self) -> bool:
        able = [link for link in self.eligible() if link.has_room]
        return not self.paused and any(self.is_for(m, link.peer) and not self.is_stalled(m) for m in self.waiting() for link in able)

    @property
    def depth(self) -> int:
        return sum(message.state in ("waiting", "held", "delayed") for message in self.messages.values())
