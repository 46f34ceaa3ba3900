"""Transactions, judged as a whole by what clients see: whoever saw one of its sends knows that what it acknowledged never comes again, and what
comes again that it had acknowledged says that none of its sends is ever seen. So it is where nobody heard the answer to COMMIT, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .audit import Known, Subscription

ACK, NACK, REJECT, RELEASE = "ACK", "NACK", "REJECT", "RELEASE"
"""The last: nobody has looked at it. AMQP alone says that."""
FOR_EVER = 300_000
"""Longer than a history."""
Place = tuple[str, str]
"""Where a message is acknowledged, and its uid."""


@dataclass(eq=False)
class Transaction:
    """What a session did between BEGIN and its end."""

    xid: str = ""
    """Of a branch of a distributed transaction."""
    doomed: bool = False
    """Nobody knows whether it is prepared: it is rolled back."""
    lasts_until: int = 1 << 62
    """From then on the broker may roll it back."""
    sent: list[Known] = field(default_factory=list)
    settled: list[tuple[Subscription, list[Known], str]] = field(default_factory=list)
    """And how."""
    ended: str = ""
    """COMMIT or ABORT, once it is said."""
    is_over: bool = False
    """Its connection ended before either."""
    confirmed: bool = False
    hopeless: str = ""
    """Why its COMMIT must be refused, or that it was."""
    done: str = ""
    """A send of it that was seen."""
    undone: str = ""
    """Something that came again, though it was acknowledged in it."""
    again: set[Place] = field(default_factory=set)
    """What of it came again."""

    @property
    def is_in_doubt(self) -> bool:
        return self.ended == "COMMIT" and not (self.confirmed or self.hopeless)


class Transactions:
    def __init__(self, require: Callable[[bool, str], None], dead: str, lasts_ms: int, counts: Counter[str], confirm: Callable[[Known], None]) -> None:
        """`lasts_ms`: so long the broker keeps one open at least."""
        self._require, self._dead, self._lasts_ms, self.counts, self._confirm = require, dead, lasts_ms, counts, confirm
        self._known: list[Transaction] = []
        self._held: dict[Place, tuple[Transaction, str]] = {}
        """What the last transaction that settled it has, and how it did."""

    def begins(self, transaction: Transaction, now: int) -> None:
        if self._lasts_ms < FOR_EVER:
            transaction.lasts_until = now + self._lasts_ms
        self._known.append(transaction)

    # -- what sessions say ----------------------------------------------------------------------------------------------------------------
    def settles(self, transaction: Transaction, at: Subscription, messages: list[Known], how: str) -> None:
        """An ACK or NACK within it. A roll-back is a failure, and that it is none is known when the commit is."""
        for message in messages:
            at.outstanding.pop(message.uid, None)
        if transaction.is_over:  # the broker has closed the connection, and the client does not know yet
            return
        transaction.settled.append((at, messages, how))
        for message in messages:
            message.nacks += at.address != self._dead
            if how == ACK or (how == REJECT and at.address == self._dead):
                message.acked.add(at.place)
            elif how == REJECT:
                message.rejected.add(at.place)
            self._held[at.place, message.uid] = transaction, how
        self.counts[f"{how} in a transaction"] += 1

    def ends(self, transaction: Transaction, how: str) -> None:
        """COMMIT or ABORT is said; after an ABORT it comes back at any time."""
        transaction.ended = "" if transaction.is_over else how
        if how == "ABORT":
            self._comes_back(transaction)
            self._forgets(transaction)

    def abandons(self, transaction: Transaction) -> None:
        """Its connection ends before it does, which is no failure."""
        if transaction.ended or transaction.is_over:
            return
        transaction.is_over = True
        self._comes_back(transaction)
        self._forgets(transaction)
        self.counts["transactions abandoned"] += 1
        for at, messages, _ in transaction.settled if self._lasts_ms >= FOR_EVER else ():
            for message in messages:
                message.nacks -= at.address != self._dead

    def _comes_back(self, transaction: Transaction) -> None:
        for place, message in self._has(transaction):
            message.acked.discard(place)
            message.rejected.discard(place)

    def _forgets(self, transaction: Transaction) -> None:
        for place, message in self._has(transaction):  # what came again and was settled again is there twice
            self._held.pop((place, message.uid), None)

    def _has(self, transaction: Transaction) -> list[tuple[str, Known]]:
        """What it settled and has not come again since."""
        settled = [(at.place, message) for at, messages, _ in transaction.settled for message in messages]
        return [(place, message) for place, message in settled if self._held.get((place, message.uid), (None,))[0] is transaction]

    # -- what they hear -------------------------------------------------------------------------------------------------------------------
    def ended(self, transaction: Transaction, now: int) -> None:
        """The receipt of its end. What was acknowledged when the broker had rolled it back already was refused, and is no failure."""
        self.counts[f"transactions ended by {transaction.ended}"] += 1
        if transaction.ended == "ABORT":
            for at, messages, _ in transaction.settled if now < transaction.lasts_until else ():
                for message in messages:
                    message.nacks_confirmed += at.address != self._dead
            return
        self._require(not transaction.hopeless, f"a COMMIT was confirmed that had to be refused: {transaction.hopeless}")
        self._require(not transaction.undone, f"a COMMIT was confirmed, and {transaction.undone}, which it acknowledged, came again")
        transaction.confirmed = True
        for message in transaction.sent:
            self._confirm(message)
        if not transaction.done:
            self._counts(transaction)

    def refused(self, transaction: Transaction, told: str) -> None:
        """The ERROR that answers COMMIT."""
        if transaction.ended != "COMMIT":
            return
        self.counts[f"transactions refused, {told}"] += 1
        transaction.hopeless = transaction.hopeless or "its COMMIT was refused"
        self._require(not transaction.done, f"a COMMIT was refused, and {transaction.done} of it was seen")
        self._comes_back(transaction)

    def _counts(self, transaction: Transaction) -> None:
        """It is known to be committed: what was done within it counts."""
        for at, messages, how in transaction.settled:
            for message in messages:
                dead = at.address == self._dead
                if how == ACK or (how == REJECT and dead):
                    message.ack_confirmed.add(at.place)
                    message.nacks -= not dead
                elif how == REJECT:
                    message.rejection_confirmed.add(at.place)
                elif how == RELEASE:
                    message.nacks -= not dead
                else:
                    message.nacks_confirmed += not dead

    def prepared(self, transaction: Transaction) -> None:
        """The receipt of its PREPARE: from now on it lasts until its manager says what becomes of it."""
        self._require(not transaction.hopeless, f"a PREPARE was confirmed that had to be refused: {transaction.hopeless}")
        self._require(not transaction.again, f"a PREPARE was confirmed, and {transaction.again}, which it acknowledged, came again")
        transaction.lasts_until = 1 << 62
        self.counts["branches prepared"] += 1

    def dooms(self, transaction: Transaction) -> None:
        """Its PREPARE has no answer, or was refused."""
        transaction.doomed = True
        self.counts["branches in doubt"] += 1
        self.ends(transaction, "ABORT")

    # -- what anybody sees ----------------------------------------------------------------------------------------------------------------
    def sees_send(self, message: Known) -> None:
        """A message that was sent within a transaction was delivered or shown."""
        transaction = message.within
        if transaction is None:
            return
        self._require(transaction.ended == "COMMIT", f"{message.uid} came, and its transaction was not committed")
        self._require(not transaction.hopeless, f"{message.uid} came, and its transaction could not be committed: {transaction.hopeless}")
        self._require(
            not transaction.undone, f"{message.uid} came, and {transaction.undone}, which was acknowledged in its transaction, had come again"
        )
        if not transaction.done:
            transaction.done = message.uid
            if not transaction.confirmed:
                self._counts(transaction)

    def sees_again(self, message: Known, place: str, now: int | None) -> None:
        """A message came from this place (now), or was on its way to somebody who never acknowledges. If a transaction had settled it there, that is
        open no more, or was not committed."""
        held = self._held.pop((place, message.uid), None)
        if held is None or message.excused:
            return
        transaction, how = held
        if not transaction.ended:
            self._require(now is None or now >= transaction.lasts_until, f"{message.uid} came from {place}, an open transaction has it")
        elif how in (NACK, RELEASE):
            return
        transaction.again.add((place, message.uid))
        if now is not None and transaction.ended:
            done = transaction.done
            self._require(not done, f"{message.uid} came again, and was acknowledged in the transaction of {done}, which was seen")
            transaction.undone = transaction.undone or message.uid

    def dies(self, message: Known, now: int) -> None:
        """It is in the dead message queue: acknowledged it would not be there; rejected it would."""
        held = self._held.get((message.address, message.uid))
        if held is not None and held[1] == ACK and not message.owed:
            self.sees_again(message, message.address, now)

    # -- the end --------------------------------------------------------------------------------------------------------------------------
    def check_end(self) -> None:
        for transaction in self._known:
            self._check_whole(transaction)

    def _check_whole(self, transaction: Transaction) -> None:
        promised = [message for message in transaction.sent if message.stored and not message.excused and not message.said]
        seen = [message.uid for message in promised if message.seen or message.acked or message.removed]
        sent = [message.uid for message in promised]
        self._require(len(seen) in (0, len(promised)), f"of the transaction of {sent} only {seen} came")
        if transaction.ended != "COMMIT" or not promised or not transaction.settled:
            return
        self.counts["transactions in doubt, done"] += transaction.is_in_doubt and bool(seen)
        self.counts["transactions in doubt, not done"] += transaction.is_in_doubt and not seen
        if not seen:
            lost = [message.uid for place, message in self._acknowledged(transaction) if (place, message.uid) not in transaction.again]
            self._require(not lost, f"nothing of the transaction of {sent} came, and what it acknowledged is gone: {lost}")

    def _acknowledged(self, transaction: Transaction) -> list[tuple[str, Known]]:
        """What must come again if it was not committed. Of the dead nobody knows for whom they died."""
        return [
            (at.place, message)
            for at, messages, how in transaction.settled
            for message in messages
            if how == ACK and not message.excused and message.level and not message.removed and self._dead not in message.seen | message.acked
        ]
