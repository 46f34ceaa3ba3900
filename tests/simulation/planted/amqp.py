"""AMQP: credit, outcomes, counts and what becomes of what is under way."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from broker_core.amqp.refusals import LinkFault
from broker_core.amqp import arrivals, connection, outcomes, receiver, sender, session
from broker_core.engine import browsing, engine, settlement, subscribing
from broker_core.engine.outcome import Outcome

from .plant import Plant


def released_is_a_failure(plant: Plant) -> None:
    """What nobody has looked at has failed once more."""
    right = outcomes.outcome_of
    plant.put(outcomes, "outcome_of", lambda *said: Outcome.FAILED if right(*said) is Outcome.UNUSED else right(*said))


def released_loses_its_place(plant: Plant) -> None:
    """What nobody has looked at comes behind what waits."""
    right = settlement.come_back

    def come_back(shard: Any, cursor: Any, message: Any, *, flagged: bool = True) -> None:
        if flagged or message.body is None or not cursor.ready:
            right(shard, cursor, message, flagged=flagged)
            return
        cursor.ready.append(message.again())
        cursor.octets += message.weight
        shard.memory += message.weight

    plant.put(settlement, "come_back", come_back)


def released_is_flagged(plant: Plant) -> None:
    """What nobody has looked at comes back as if somebody had."""
    right = settlement.come_back
    plant.put(settlement, "come_back", lambda *what, flagged=True: right(*what, flagged=True))


def browser_credit_ignored(plant: Plant) -> None:
    """A browser is shown a copy more than it asked for."""
    right = browsing.grant

    def grant(shard: Any, browser: Any, command: Any) -> None:
        command.credit += bool(command.credit)
        right(shard, browser, command)

    plant.put(engine.browsing, "grant", grant)


def drained_with_credit(plant: Plant) -> None:
    """The answer to a drain leaves the credit as it is."""

    def tell(self: Any) -> None:
        if self._drained and not self.closing and not self.waiting:
            self._drained, self._drain = False, 0
            self.session.write_flow(self.handle, self._count, self._credit, drained=True)

    plant.put(sender.Sender, "tell_drained", tell)


def drained_too_early(plant: Plant) -> None:
    """A consumer is told that it is drained while deliveries still wait for its session."""

    def drained(self: Any, drain: int) -> None:
        if drain == self._drain and not self.closing:
            self._drain = 0
            self._lapsed += self._credit
            self.session.write_flow(self.handle, self._count, 0, drained=True)

    plant.put(sender.Sender, "drained", drained)


def failures_counted_twice(plant: Plant) -> None:
    """A delivery-count says one more than has failed."""
    right = sender.delivery

    def delivery(message: Any, *how: Any) -> Any:
        failures = message.failures
        message.failures += bool(failures)
        try:
            return right(message, *how)
        finally:
            message.failures = failures

    plant.put(sender, "delivery", delivery)


def on_its_way_not_counted(plant: Plant) -> None:
    """Credit is given beyond what the consumer has not counted yet."""
    right = engine._HANDLERS[engine.c.Grant]

    def grant(shard: Any, command: Any) -> None:
        command.counted = None
        right(shard, command)

    plant.put(engine, "_HANDLERS", {**engine._HANDLERS, engine.c.Grant: grant})


def settled_is_told(plant: Plant) -> None:
    """A message that was settled when it was sent is accepted all the same."""
    right = receiver.Receiver.accept

    def accept(self: Any, sent: Any) -> None:
        sent.settled = False
        right(self, sent)

    plant.put(receiver.Receiver, "accept", accept)


def credit_is_used_up(plant: Plant) -> None:
    """A producer gets credit once."""
    right = receiver.Receiver.replenish

    def replenish(self: Any) -> None:
        if not self._size:
            right(self)

    plant.put(receiver.Receiver, "replenish", replenish)


def aborted_is_whole(plant: Plant) -> None:
    """What there is of a message that was aborted is taken for all of it."""
    right = receiver.Receiver.transfer

    def transfer(self: Any, said: Any, payload: bytes, events: list[Any]) -> None:
        if said.aborted and self._incoming is not None and self._incoming.message is None:
            said.aborted = False
        right(self, said, payload, events)

    plant.put(arrivals, "check_body", lambda *_what: None)
    plant.put(receiver.Receiver, "transfer", transfer)


def cut_off_is_whole(plant: Plant) -> None:
    """What has come of a message when its connection is cut is taken for all of it."""
    right = connection.Connection.receive_eof

    def receive_eof(self: Any, now: int) -> list[Any]:
        events: list[Any] = []
        for each in self.sessions.by_channel.values():
            for link in each.links.values():
                begun = getattr(link, "_incoming", None)
                if begun is not None and begun.message is None and begun.pieces:
                    with suppress(LinkFault):
                        link._take(begun, b"".join(begun.pieces), events)
        return [*events, *right(self, now)]

    plant.put(arrivals, "check_body", lambda *_what: None)
    plant.put(connection.Connection, "receive_eof", receive_eof)


def stolen_and_kept(plant: Plant) -> None:
    """A consumer whose subscription another connection takes over goes on."""
    plant.put(subscribing, "_steal", lambda _shard, _subscription: None)


def detached_is_ended(plant: Plant) -> None:
    """A durable subscription ends whenever its link is detached."""
    right = sender.Sender.close
    plant.put(sender.Sender, "close", lambda self, _closed, events: right(self, True, events))


def window_ignored(plant: Plant) -> None:
    """More is sent than the peer's session has room for."""
    right = session.Session.pump

    def pump(self: Any) -> None:
        self._remote_window = 1000
        right(self)

    plant.put(session.Session, "pump", pump)
    plant.put(session.Session, "room", property(lambda _self: 1000))


def outcome_leaves_its_transaction(plant: Plant) -> None:
    """What is accepted within a transaction is over at once."""
    right = outcomes.Unsettled._settle

    def settle(self: Any, link: Any, tags: Any, first: int, disposition: Any, events: list[Any]) -> None:
        right(self, link, tags, first, disposition, events)
        if isinstance(events[-1], outcomes.Transacted):
            events[-1] = events[-1].work

    plant.put(outcomes.Unsettled, "_settle", settle)


BUGS = (
    released_is_a_failure,
    released_loses_its_place,
    released_is_flagged,
    browser_credit_ignored,
    drained_with_credit,
    drained_too_early,
    failures_counted_twice,
    on_its_way_not_counted,
    settled_is_told,
    credit_is_used_up,
    aborted_is_whole,
    cut_off_is_whole,
    stolen_and_kept,
    detached_is_ended,
    window_ignored,
    outcome_leaves_its_transaction,
)
