"""What an AMQP session sends, and its transactions."""

from __future__ import annotations

from collections.abc import Callable

from broker_core.amqp.composite import write_composite
from broker_core.amqp.performatives import (
    SENDER, Accepted, Attach, Coordinator, Declare, Declared, DeliveryState, Discharge,
    Disposition, Rejected, Source, Target, TransactionalState,
)  # fmt: skip

from .amqp_base import Base
from .amqp_links import Outward
from .amqp_messages import spoken, written
from .audit import Broken, Known
from .transactions import Transaction


class Producing(Base):
    """Its producers, and the one link to its transactions."""

    # -- producing --------------------------------------------------------------------------------------------------------------------
    def _producer(self, address: str) -> Outward:
        """A link for it: one of its own, or one for all addresses."""
        speech = self.speech
        found = [link for link in speech.outward.values() if link is not self._coordinator and not link.leaving and link.address in (address, "")]
        if found:
            return found[0]
        anonymous, second = self._random.random() < 0.2, self._random.random() < 0.2
        link = self._attach_outward("" if anonymous else address, second=second)
        written_as, capabilities = spoken(self._said(address), self._random)
        target = Target(None) if anonymous else Target(written_as, capabilities=capabilities)
        speech.say(Attach(link.name, link.handle, SENDER, 2, int(second), Source("here"), target, initial_delivery_count=link.count))
        return link

    def _attach_outward(self, address: str, *, second: bool = False) -> Outward:
        self._named += 1
        handle = self.speech.free_handle()
        link = Outward(handle, f"{self.name}>{self._named}", address, second)
        link.count = link.limit = self._random.choice((0, 5))
        self.speech.outward[handle] = link
        return link

    def send(
        self, address: str, level: int, priority: int, expires: int, size: int, mark: str, receipt: bool, reply_to: str = "", delay: int = 0,
        *, named: bool = False, kept: bool = True,
    ) -> Known | None:  # fmt: skip
        """None: there is no credit for it."""
        assert not reply_to, "whoever wants replies speaks STOMP"
        link = self._producer(address)
        if link.credit <= 0 or link.rest:
            return None
        for other, (message, _, _) in list(self._pending.items()):  # else it would overtake what goes there
            if message.address == address:
                self.finish(other)
        within = self.transaction
        message = self._author(address, level, priority, expires, size, mark, replies="", delay=delay, kept=kept)
        self._auditor.counts["sent by AMQP"] += 1
        self._log(("send", message.uid, address))
        if within is not None:
            within.sent.append(message)
            self._links_of[message] = link
        self._deliver(link, message, within, settled=not receipt, named=named)
        return message

    def _deliver(self, link: Outward, message: Known, within: Transaction | None, *, settled: bool, named: bool) -> None:
        to = "" if link.address else spoken(self._said(message.address), self._random)[0]
        if to and "/" not in to and message.address.startswith("topic/"):
            to = f"topic://{to}"
        octets = written(message, self._random, named=named, to=to)

        def heard(state: DeliveryState | None) -> None:
            link.told -= 1
            self._hear_of(message, within, state)
            if link.second:
                self.speech.say(Disposition(SENDER, number, None, True))

        number = self.speech.number
        state = TransactionalState(self._txn) if within is not None else None
        self.speech.deliver(link, octets, state, None if settled else heard)
        if link.rest:
            self._pending[link] = message, within, number
            if self._random.random() < 0.1:
                self.abort(link)

    def _hear_of(self, message: Known, within: Transaction | None, state: DeliveryState | None) -> None:
        if isinstance(state, TransactionalState):
            if within is None:
                raise Broken(f"{message.uid} was sent in no transaction and was accepted in one")
            state = state.outcome
        elif within is not None and isinstance(state, Accepted):
            raise Broken(f"{message.uid} was sent in a transaction and was accepted outside of it")
        self._log(("outcome", message.uid, type(state).__name__))
        if isinstance(state, Accepted):
            if within is None:
                self._auditor.confirmed(message.uid)
        elif isinstance(state, Rejected):
            self._auditor.refused(message, "it was rejected")
            if within is not None and not within.hopeless:
                within.hopeless = f"{message.uid} of it was rejected"
        else:
            raise Broken(f"{message.uid} was answered by {state}")

    def finish(self, link: Outward) -> None:
        self.speech.finish(link)
        self._pending.pop(link, None)

    def finish_all(self) -> None:
        for link in list(self._pending):
            self.finish(link)

    def go_on(self) -> None:
        self.speech.go_on()
        for link in [link for link in self._pending if not link.rest]:
            del self._pending[link]

    def abort(self, link: Outward) -> None:
        """It was never sent."""
        message, within, number = self._pending.pop(link)
        self._log(("abort", message.uid))
        self._auditor.counts["transfers aborted"] += 1
        self.speech.abort(link)
        self._auditor.refused(message, "its transfer was aborted")
        if self.speech.answers.pop(number, None) is not None:
            link.told -= 1
        if within is not None:
            within.sent.remove(message)

    # -- transactions -----------------------------------------------------------------------------------------------------------------
    def begin(self, *, branch: bool = False) -> None:
        """It has begun when the broker has given it a name. Distributed ones are others' affair."""
        link = self._coordinator
        if link is None:
            link = self._coordinator = self._attach_outward("")
            link.count = link.limit = 0
            attach = Attach(link.name, link.handle, SENDER, 0, 0, Source("here"), Coordinator(), initial_delivery_count=0)
            self.speech.say(attach)
        elif link.credit > 0 and not self._declaring and self.transaction is None:
            self._declaring = True
            began = self._now()
            self._tell(link, Declare(), lambda state: self._declared(state, began))

    def _tell(self, link: Outward, said: Declare | Discharge, heard: Callable[[DeliveryState | None], None]) -> None:
        def answered(state: DeliveryState | None) -> None:
            link.told -= 1
            heard(state)

        self.speech.deliver(link, b"\0\x53\x77" + write_composite(said), None, answered)
        self.finish(link)

    def _declared(self, state: DeliveryState | None, began: int) -> None:
        self._declaring = False
        if isinstance(state, Rejected):
            return
        if not isinstance(state, Declared):
            raise Broken(f"a transaction was declared, and answered by {state}")
        self._txn = state.txn_id
        self.transaction = Transaction()
        self._undecided.append(self.transaction)
        self.transaction.is_over = self._is_lost
        self._auditor.counts["transactions declared"] += 1
        self._auditor.transactions.begins(self.transaction, began)

    def end(self, *, commit: bool) -> None:
        transaction, self.transaction = self.transaction, None
        link = self._coordinator
        assert transaction is not None and link is not None
        self.finish_all()
        how = "COMMIT" if commit else "ABORT"
        self._log((how, self.name, [message.uid for message in transaction.sent]))
        self._auditor.transactions.ends(transaction, how)
        if link.credit > 0 and (commit or self._random.random() < 0.8):
            self._tell(link, Discharge(self._txn, not commit), lambda state: self._discharged(transaction, state))
        elif not commit:  # with its coordinator's link it is rolled back
            self._coordinator = None
            self.speech.detach(link.handle, closed=True)
        else:
            raise Broken("a coordinator gives no credit for the end of a transaction that it has begun")

    def _discharged(self, transaction: Transaction, state: DeliveryState | None) -> None:
        self._undecided.remove(transaction)
        if isinstance(state, Accepted):
            self._auditor.transactions.ended(transaction, self._now())
        elif isinstance(state, Rejected) and transaction.ended == "COMMIT":
            told = (state.error.description or "").partition(":")[0] if state.error else ""
            self._auditor.transactions.refused(transaction, told)
        else:
            raise Broken(f"a transaction was to be ended by {transaction.ended}, and answered by {state}")

    def spoil(self) -> None:
        """What is settled already has no number any more: it cannot be acknowledged in a transaction."""

    def prepare(self, adopt: Callable[[Transaction], None]) -> None:
        raise AssertionError("distributed transactions are not begun by AMQP")
