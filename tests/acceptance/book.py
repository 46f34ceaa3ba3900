"""What producers and consumers saw, and whether it keeps the broker's promises. Thread-safe.

A `send` is one SEND frame: the client repeats a message whose confirmation it did not see under a new send id, so that duplicates made by
repeating are told from duplicates made by the broker. It has a copy in every place that takes it: a queue, or each durable subscription
whose selector chooses it. These promises are checked:

    lost          a send was confirmed, yet in some place no delivery of it was ever acknowledged
    came back     a copy was delivered again after the receipt for its acknowledgement
    unflagged     a copy was delivered twice without `redelivered:true` on the second delivery
    out of order  what one connection sent came in another order, to a place that has one consumer
    early         a copy was delivered before its delay was over
    stray         a copy was delivered in a place that does not take it
    corrupted     a body or a message is not what was sent
    uncommitted   a send was delivered whose transaction was not committed
    torn          of a transaction whose COMMIT got no answer one part was done and another was not

and those about message groups (groups.py).

A consumer may read late what a former node wrote, from its own socket's buffer; that is no second delivery after the acknowledgement.
So every connection carries the number of the faults before it (`generation`), and a delivery counts as come back only on a connection
opened after the last fault before that receipt.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from tests.acceptance.groups import NEVER, Arrival, Group, Groups

EARLY_SECONDS = 0.1
"""The broker takes its clock anew from the database with each term; a delayed message may be so much before ours."""


class State(Enum):
    OPEN = "open"
    IN_DOUBT = "its COMMIT has left and no answer is here"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True)
class Transaction:
    name: str
    state: State = State.OPEN
    generation: int = NEVER
    """In which its COMMIT left."""
    sends: list[str] = field(default_factory=list)
    settled: list[tuple[str, str]] = field(default_factory=list)
    """(place, send id) of what it acknowledged."""
    again: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Those of them that were delivered after its COMMIT had left; True: surely by the broker after that, False: perhaps only read late."""


@dataclass(slots=True)
class Copy:
    deliveries: int = 0
    unflagged: int = 0
    acknowledging: bool = False
    """The last delivery's consumer has sent its ACK."""
    acknowledged: int = NEVER
    """The generation in which the receipt for the ACK was read."""
    within: Transaction | None = None
    """The transaction that acknowledged it last, if its COMMIT has left."""
    refused: bool = False
    """Some consumer said NACK."""


@dataclass(slots=True)
class Send:
    number: int
    """In the order of sending."""
    stream: str
    """The connection that sent it."""
    copies: dict[str, Copy]
    """By place."""
    transaction: Transaction | None
    due_at: float = 0.0
    """By our clock, if it is delayed."""
    group: Group | None = None
    confirmed: bool = False


@dataclass(slots=True)
class Book:
    sends: dict[str, Send] = field(default_factory=dict)
    transactions: dict[str, Transaction] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    """ERROR frames that clients received, by text, and how often."""
    confirmed: int = 0
    due: int = 0
    """Copies of confirmed sends."""
    delivered: int = 0
    flagged: int = 0
    acknowledged: int = 0
    generation: int = 0
    last_confirmed_at: float = 0.0
    last_delivered_at: float = 0.0
    groups: Groups = field(default_factory=Groups)
    _last: dict[tuple[str, str], int] = field(default_factory=dict)
    """(place, stream) -> the number of the send last delivered there for the first time."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # -- producers ------------------------------------------------------------------------------------------------------------------
    def sent(
        self, send_id: str, places: Iterable[str], *,
        stream: str = "", transaction: str = "", delay_ms: int = 0, group: Group | None = None,
    ) -> None:  # fmt: skip
        """Called before the SEND frame leaves."""
        due_at = time.monotonic() + delay_ms / 1000 if delay_ms else 0.0
        with self._lock:
            within = self.transactions[transaction] if transaction else None
            self.sends[send_id] = Send(len(self.sends), stream, {place: Copy() for place in places}, within, due_at, group)
            if within is not None:
                within.sends.append(send_id)

    def confirm(self, send_ids: list[str]) -> None:
        with self._lock:
            for send_id in send_ids:
                self._confirm(send_id)

    def _confirm(self, send_id: str) -> None:
        self.last_confirmed_at = time.monotonic()
        send = self.sends[send_id]
        if send.confirmed:
            self._violate(f"confirmed twice: {send_id}")
        send.confirmed = True
        self.confirmed += 1
        self.due += len(send.copies)

    # -- consumers ------------------------------------------------------------------------------------------------------------------
    def deliver(
        self, place: str, send_id: str, *, redelivered: bool, generation: int, intact: bool, alone: bool = False, holder: str = ""
    ) -> None:  # fmt: skip
        """`alone`: this is the only consumer there. `holder` names the consumer and its connection."""
        with self._lock:
            self.last_delivered_at = time.monotonic()
            self.delivered += 1
            self.flagged += redelivered
            send = self.sends.get(send_id)
            if send is None:
                self._violate(f"corrupted: nobody sent {send_id!r}")
                return
            if not intact:
                self._violate(f"corrupted: the body of {send_id}")
            if send.transaction is not None and send.transaction.state in (State.OPEN, State.ABORTED):
                self._violate(f"uncommitted: {send_id} of {send.transaction.name}, which is {send.transaction.state.value}")
            copy = send.copies.get(place)
            if copy is None:
                self._violate(f"stray: {send_id} in {place}")
                return
            self._judge(place, send_id, send, copy, redelivered=redelivered, generation=generation, alone=alone)
            if send.group is not None and not send.due_at:
                arrival = Arrival(place, send.group, send.stream, send.number, holder)
                if not self.groups.deliver(arrival, redelivered=redelivered, refused=copy.refused):
                    self._violate(f"out of order in its group: {send_id} to {holder}, {send.group.name} of {send.stream}")

    def _judge(self, place: str, send_id: str, send: Send, copy: Copy, *, redelivered: bool, generation: int, alone: bool) -> None:
        copy.deliveries += 1
        copy.unflagged += not redelivered
        if self.last_delivered_at < send.due_at - EARLY_SECONDS:
            self._violate(f"early: {send_id} in {place}, by {send.due_at - self.last_delivered_at:.2f} s")
        if copy.unflagged > 1 and not redelivered:
            self._violate(f"unflagged: delivery {copy.deliveries} of {send_id} in {place} (generation {generation})")
        if copy.acknowledged == NEVER:
            copy.acknowledging = False
            if copy.within is not None:
                surely = generation >= copy.within.generation
                copy.within.again[place, send_id] = surely or copy.within.again.get((place, send_id), False)
        elif generation >= copy.acknowledged:
            self._violate(f"came back: {send_id} in {place}, acknowledged in generation {copy.acknowledged}, delivered again in {generation}")
        if alone and not redelivered and not send.due_at:
            key = place, send.stream
            if send.number < self._last.get(key, NEVER):
                self._violate(f"out of order: {send_id} in {place} after a later one of {send.stream}")
            self._last[key] = send.number

    def acknowledging(self, place: str, send_ids: list[str]) -> None:
        """Called before the ACK frame leaves."""
        with self._lock:
            for send_id in send_ids:
                self.sends[send_id].copies[place].acknowledging = True

    def acknowledge(self, place: str, send_ids: list[str], *, holder: str = "", said_at: float = 0.0) -> None:
        """The receipt for the ACK that left then is here."""
        with self._lock:
            self.groups.answered(holder, said_at)
            for send_id in send_ids:
                self._acknowledge(place, send_id)

    def refusing(self, place: str, send_id: str) -> None:
        """Called before the NACK frame leaves."""
        with self._lock:
            self.sends[send_id].copies[place].refused = True

    def _acknowledge(self, place: str, send_id: str) -> None:
        self.sends[send_id].copies[place].acknowledged = self.generation
        self.acknowledged += 1

    # -- transactions ---------------------------------------------------------------------------------------------------------------
    def begin(self, name: str) -> None:
        with self._lock:
            self.transactions[name] = Transaction(name)

    def committing(self, name: str, settled: list[tuple[str, str]]) -> None:
        """Called before the COMMIT frame leaves, with what the transaction acknowledges."""
        with self._lock:
            transaction = self.transactions[name]
            transaction.state, transaction.generation, transaction.settled = State.IN_DOUBT, self.generation, settled
            for place, send_id in settled:
                copy = self.sends[send_id].copies[place]
                copy.acknowledging, copy.within = True, transaction

    def committed(self, name: str) -> None:
        """The receipt for the COMMIT is here."""
        with self._lock:
            transaction = self.transactions[name]
            transaction.state = State.COMMITTED
            for send_id in transaction.sends:
                self._confirm(send_id)
            for place, send_id in transaction.settled:
                self._acknowledge(place, send_id)

    def aborted(self, name: str) -> None:
        """Its ABORT has left, or its connection ended before its COMMIT left."""
        with self._lock:
            self.transactions[name].state = State.ABORTED

    # -- anyone ---------------------------------------------------------------------------------------------------------------------
    def note_error(self, text: str) -> None:
        with self._lock:
            self.errors[text] = self.errors.get(text, 0) + 1

    def next_generation(self) -> int:
        """A fault has happened."""
        with self._lock:
            self.generation += 1
            return self.generation

    def backlog(self) -> int:
        return self.due - self.acknowledged

    def _violate(self, text: str) -> None:
        self.violations.append(f"{time.strftime('%H:%M:%S')} {text}")

    # -- the end --------------------------------------------------------------------------------------------------------------------
    def missing(self) -> list[str]:
        """Copies of confirmed sends that no consumer has acknowledged yet. At the very end: lost."""
        with self._lock:
            return [
                f"{send_id} in {place}: {copy}"
                for send_id, send in self.sends.items() if send.confirmed
                for place, copy in send.copies.items() if not copy.acknowledging
            ]  # fmt: skip

    def _torn(self) -> list[str]:
        """Transactions in doubt that were done in part: something shows that they were committed, and something that they were not."""
        torn = []
        for transaction in self.transactions.values():
            if transaction.state is State.IN_DOUBT:
                copies = [copy for send_id in transaction.sends for copy in self.sends[send_id].copies.values()]
                done = any(copy.deliveries for copy in copies) or any(key not in transaction.again for key in transaction.settled)
                undone = not all(copy.deliveries for copy in copies) or any(transaction.again.values())
                if done and undone:
                    torn.append(f"torn: {transaction}, whose sends have {copies}")
        return torn

    def verdict(self) -> list[str]:
        """Every broken promise; empty if all were kept."""
        return self.violations + [f"lost: {copy}" for copy in self.missing()] + self._torn() + self.groups.verdict()

    def progress(self) -> str:
        ended = {state: sum(each.state is state for each in list(self.transactions.values())) for state in State}
        return (
            f"sent {len(self.sends):,} confirmed {self.confirmed:,} delivered {self.delivered:,} (flagged {self.flagged:,}) "
            f"acknowledged {self.acknowledged:,} transactions {ended[State.COMMITTED]:,} "
            f"({ended[State.ABORTED]:,} aborted, {ended[State.IN_DOUBT]:,} in doubt) groups handed over {self.groups.handovers:,} "
            f"violations {len(self.violations)}"
        )
