"""A naive broker with transactions: lists of names and no more. It says what each commit must do; the engine must agree."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_core.engine.message import STORED, Reliability

WAITING, HELD, RESERVED, OVER = "waiting", "held", "reserved", "over"


@dataclass(eq=False)
class NaiveMessage:
    name: str
    queue: str
    level: Reliability
    state: str = WAITING

    @property
    def may_be_lost_alone(self) -> bool:
        return self.level == Reliability.BEST_EFFORT


Place = tuple[int, str, int]
"""Of a delivery: peer, queue, tag."""


@dataclass(eq=False)
class NaiveTransaction:
    sends: list[NaiveMessage] = field(default_factory=list)
    accepted: list[NaiveMessage] = field(default_factory=list)


class NaiveTransactions:
    def __init__(self, limits: dict[str, int]) -> None:
        """How many messages each queue takes at most; what is one too many is turned away."""
        self.limits = limits
        self.messages: dict[str, NaiveMessage] = {}
        self.held: dict[Place, NaiveMessage] = {}
        self.open: dict[tuple[int, str], NaiveTransaction] = {}
        self.sent = 0

    def made(self, queue: str, level: Reliability) -> NaiveMessage:
        """One that is nowhere yet."""
        self.sent += 1
        return NaiveMessage(f"m{self.sent}", queue, level)

    def depth(self, queue: str) -> int:
        return sum(message.queue == queue for message in self.messages.values())

    def room(self, queue: str) -> int:
        return self.limits[queue] - self.depth(queue)

    def placed(self, message: NaiveMessage) -> None:
        self.messages[message.name] = message

    def over(self, message: NaiveMessage) -> None:
        message.state = OVER
        del self.messages[message.name]

    # -- deliveries -----------------------------------------------------------------------------------------------------------------------
    def deliver(self, place: Place, name: str) -> None:
        assert name in self.messages, f"{name} was delivered, and is nowhere"
        message = self.messages[name]
        assert message.state == WAITING, f"{name} was delivered while it is {message.state}"
        assert message.queue == place[1], f"{name} of {message.queue} came from {place[1]}"
        message.state = HELD
        self.held[place] = message

    def settle(self, place: Place, *, accepted: bool) -> None:
        message = self.held.pop(place)
        if accepted:
            self.over(message)
        else:
            message.state = WAITING

    # -- transactions ---------------------------------------------------------------------------------------------------------------------
    def acknowledge(self, transaction: NaiveTransaction, place: Place) -> None:
        message = self.held.pop(place)
        message.state = RESERVED
        transaction.accepted.append(message)

    def can_commit(self, transaction: NaiveTransaction) -> bool:
        """Everything that may not be lost alone fits, beside what is there and not taken away."""
        for queue in self.limits:
            freed = sum(message.queue == queue for message in transaction.accepted)
            wanted = sum(message.queue == queue and not message.may_be_lost_alone for message in transaction.sends)
            if wanted > freed and wanted > self.room(queue) + freed:
                return False
        return True

    def end(self, key: tuple[int, str], *, commit: bool) -> bool:
        """All of it or nothing; whether it was done."""
        transaction = self.open.pop(key)
        if not commit or not self.can_commit(transaction):
            for message in transaction.accepted:
                message.state = WAITING
            return not commit
        for message in transaction.accepted:
            self.over(message)
        for message in sorted(transaction.sends, key=lambda message: message.may_be_lost_alone):
            if not message.may_be_lost_alone or self.room(message.queue) > 0:
                self.placed(message)
        return True

    # -- failures -------------------------------------------------------------------------------------------------------------------------
    def lose(self, peer: int) -> None:
        for key in [key for key in self.open if key[0] == peer]:
            self.end(key, commit=False)
        for place in [place for place in self.held if place[0] == peer]:
            self.settle(place, accepted=False)

    def crash(self) -> None:
        for peer in {peer for peer, *_ in [*self.open, *self.held]}:
            self.lose(peer)
        for message in list(self.messages.values()):
            if message.level < STORED:
                self.over(message)
