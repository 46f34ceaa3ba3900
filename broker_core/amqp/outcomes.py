"""What a consumer's session has not settled, and what it says became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_core.engine.commands import Settle, Transacted
from broker_core.engine.outcome import Outcome

from .performatives import Accepted, DeliveryState, Disposition, Modified, Rejected, Released, TransactionalState
from .refusals import INVALID_FIELD, SessionFault
from .tokens import Settled

if TYPE_CHECKING:
    from .sender import Sender
    from .session import Session

MODULUS = 1 << 32
RANGE_MAX = 1 << 31
ACCEPTED = Outcome.ACCEPTED
COMMENT_CHARACTERS_MAX = 256
LOOK_EFFORT = 16
"""Deliveries that a disposition may mean, looked at in a microsecond, about."""


class Unsettled:
    """Of one session."""

    __slots__ = ("_gone", "deliveries", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.deliveries: dict[int, tuple[Sender, int]] = {}
        """Link and tag, by delivery-id. Some of them may be of links that are gone:"""
        self._gone = 0
        """So many at the most."""

    def forget(self, sender: Sender) -> None:
        """The link is gone. All are looked at when much of them may be, so that each costs a constant number of steps, however many links go."""
        self._gone += sender.delivered
        if self._gone and 2 * self._gone >= len(self.deliveries):
            self.session.connection.effort += len(self.deliveries) // LOOK_EFFORT
            self.deliveries = {number: each for number, each in self.deliveries.items() if not each[0].closing}
            self._gone = 0

    def disposition(self, disposition: Disposition, events: list[Any]) -> None:
        """It has a state, or settles. Raises SessionFault."""
        first, last, state = disposition.first, disposition.last, disposition.state
        if last is None or last == first:
            if (found := self.deliveries.pop(first, None)) is not None and not found[0].closing:
                if disposition.settled and state.__class__ is Accepted and _joins(found, events):
                    return
                self._settle(found[0], range(found[1], found[1] + 1), first, disposition, events)
            return
        taken = self._take(first, last)
        at = 0
        while at < len(taken):
            sender, tag = taken[at][1]
            upto = at + 1
            while upto < len(taken) and taken[upto][1] == (sender, tag + upto - at) and taken[upto][0] == taken[at][0] + upto - at:
                upto += 1
            self._settle(sender, range(tag, tag + upto - at), taken[at][0], disposition, events)
            at = upto

    def _take(self, first: int, last: int) -> list[tuple[int, tuple[Sender, int]]]:
        """Those of the range that are unsettled, in order; they are not any more."""
        unsettled = self.deliveries
        count = (last - first) % MODULUS + 1
        if last < first and count > RANGE_MAX:  # else it goes on behind the highest number, as RFC 1982 has it
            raise SessionFault(INVALID_FIELD, f"a disposition is about deliveries {first} to {last}, which comes before")
        if count <= len(unsettled):
            self.session.connection.effort += count // LOOK_EFFORT
            ids = [delivery_id % MODULUS for delivery_id in range(first, first + count)]
        else:
            self.session.connection.effort += len(unsettled) // LOOK_EFFORT
            ids = [delivery_id for delivery_id in unsettled if (delivery_id - first) % MODULUS < count]
        found = [(delivery_id, unsettled.pop(delivery_id)) for delivery_id in ids if delivery_id in unsettled]
        return [each for each in found if not each[1][0].closing]

    def _settle(self, sender: Sender, tags: range, first: int, disposition: Disposition, events: list[Any]) -> None:
        """Of one link, neighbours in every respect."""
        state, transaction = disposition.state, None
        if state.__class__ is TransactionalState:
            transaction, state = state.txn_id, state.outcome
        outcome = outcome_of(state, sender.default_outcome)
        if outcome is None and disposition.settled:  # received is no outcome, and there will be no other
            outcome = outcome_of(None, sender.default_outcome)
        if outcome is None:  # it is not over
            for number, tag in enumerate(tags):
                self.deliveries[first + number] = (sender, tag)
            return
        why = why_rejected(state) if state.__class__ is Rejected else ""
        token = None if disposition.settled else Settled(self.session, first, first + len(tags) - 1, told(disposition.state))
        peer = self.session.connection.peer
        if transaction is None:
            events.append(Settle(peer, sender.link, tags, 0, outcome, token, why))
        else:
            events.append(Transacted(peer, transaction, Settle(peer, sender.link, tags, 0, outcome, comment=why), token))


def why_rejected(state: Any) -> str:
    """As its consumer says, for those who find the message dead; empty: it does not."""
    error = state.error
    if error is None:
        return ""
    said = f"{error.condition}: {error.description}" if error.description else error.condition
    return "".join([each if each.isprintable() else " " for each in said[:COMMENT_CHARACTERS_MAX]])


def plain(outcome: object) -> Accepted | Rejected | Released | Modified | None:
    """Without what it may carry along."""
    if isinstance(outcome, Modified):
        return Modified(outcome.delivery_failed, outcome.undeliverable_here)
    return outcome.__class__() if isinstance(outcome, Accepted | Rejected | Released) else None


def told(state: DeliveryState | None) -> DeliveryState | None:
    """What the peer's word is answered with: the same, but for what it carries along, which could be large."""
    if isinstance(state, TransactionalState):
        return TransactionalState(state.txn_id, plain(state.outcome))
    return plain(state)


def _joins(found: tuple[Sender, int], events: list[Any]) -> bool:
    """Clients accept delivery by delivery what they get: if this one is the next of what was accepted just now, it is accepted with that."""
    if not events or (last := events[-1]).__class__ is not Settle:
        return False
    (sender, tag), tags = found, last.tags
    if last.link != sender.link or tags.__class__ is not range or tags.stop != tag or last.outcome is not ACCEPTED or last.token is not None:
        return False
    last.tags = range(tags.start, tag + 1)
    return True


def outcome_of(state: DeliveryState | None, default: Any) -> Outcome | None:
    """What a consumer's word means for the engine; None: it is not the last one. Without a word the source's default outcome holds, and without
    that the message was not used."""
    kind = state.__class__
    if kind is Accepted:
        return ACCEPTED
    if kind is Released:
        return Outcome.UNUSED
    if kind is Rejected:
        return Outcome.REJECTED
    if kind is Modified:
        if state.undeliverable_here:  # type: ignore[union-attr]
            return Outcome.REJECTED
        return Outcome.FAILED if state.delivery_failed else Outcome.UNUSED  # type: ignore[union-attr]
    if state is None:
        return Outcome.UNUSED if default is None else outcome_of(default, None)
    return None
