"""The coordinator of local transactions (transactions, 4): a link on which declares and discharges come as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_core.engine.commands import Begin, End

from .composite import compose
from .decoding import decode
from .performatives import (
    ACCEPTED, RECEIVER, Attach, Coordinator, Declare, Declared, DeliveryState, Discharge, Flow, Rejected, TransactionalState, Transfer,
)  # fmt: skip
from .refusals import INVALID_FIELD, NOT_IMPLEMENTED, ROLLED_BACK, TRANSFER_LIMIT, UNKNOWN_TRANSACTION, LinkFault, SessionFault
from .tokens import Transacting
from .types import Described, Malformed

if TYPE_CHECKING:
    from .session import Session

MODULUS = 1 << 32
CREDIT = 100
MESSAGE_OCTETS_MAX = 1024
"""Of a declare or a discharge."""
AMQP_VALUE = (0x77, "amqp:amqp-value:*")
"""What describes the section with the value."""
LOCAL = "amqp:local-transactions"
CAPABILITIES = (LOCAL, "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn")
"""A transaction may be worked on by any session of its connection, and any number at a time."""


class TransactionNames:
    """Of one connection: those of transactions that were declared and are not discharged."""

    def __init__(self) -> None:
        self._count = 0
        self._states: dict[bytes, TransactionalState] = {}

    def name(self) -> bytes:
        """A new one."""
        self._count += 1
        name = self._count.to_bytes(8, "big")
        self._states[name] = TransactionalState(name, ACCEPTED)
        return name

    def accepted(self, transaction: bytes) -> TransactionalState:
        """That a message was accepted within it: one value for all."""
        return self._states.get(transaction) or TransactionalState(transaction, ACCEPTED)

    def forget(self, transaction: bytes) -> None:
        self._states.pop(transaction, None)


class Transactions:
    """One such link; what it has declared and not discharged is rolled back when it closes."""

    role = RECEIVER
    unanswered = None
    """Its attach is answered at once."""

    def __init__(self, session: Session, attach: Attach) -> None:
        self.session = session
        self.handle = attach.handle
        self.name = attach.name
        self._attach = attach
        self._count = (attach.initial_delivery_count or 0) % MODULUS
        self._credit = CREDIT
        self._open: dict[bytes, None] = {}
        self._pieces: list[bytes] = []
        self._delivery_id = -1
        self._is_lost = False

    def answer(self) -> Attach:
        """To the peer's attach."""
        asked = self._attach
        wanted = set(asked.target.capabilities) if isinstance(asked.target, Coordinator) else set()
        answer = Attach(asked.name, asked.handle, RECEIVER, asked.snd_settle_mode, asked.rcv_settle_mode, asked.source)
        answer.target = Coordinator(tuple(each for each in CAPABILITIES if each == LOCAL or each in wanted))
        return answer

    def open(self, events: list[Any]) -> None:
        self.session.write(self.answer())
        self._attach = Attach(self.name, self.handle, self._attach.role)  # what else was said is not kept
        self.session.write_flow(self.handle, self._count, self._credit)

    # -- the link -------------------------------------------------------------------------------------------------------------------
    def close(self, closed: bool, events: list[Any]) -> None:
        self.lose(events)
        self.session.answer_detach(self.handle, closed)

    def lose(self, events: list[Any]) -> None:
        self._is_lost = True
        peer = self.session.connection.peer
        for transaction in self._open:
            events.append(End(peer, transaction, commit=False))
            self.session.connection.transactions.forget(transaction)
        self._open.clear()

    def leave(self, events: list[Any]) -> None:
        """The connection closes."""
        self.lose(events)

    def flow(self, flow: Flow, events: list[Any]) -> None:
        if flow.echo:
            self.session.write_flow(self.handle, self._count, self._credit)

    def replenish(self) -> None:
        """Credit is given back with each answer."""

    # -- declares and discharges ----------------------------------------------------------------------------------------------------
    def transfer(self, transfer: Transfer, payload: bytes, events: list[Any]) -> None:
        """Raises LinkFault, SessionFault."""
        if not self._pieces:
            if transfer.delivery_id is None:
                raise SessionFault(INVALID_FIELD, "the first transfer of a delivery has no delivery-id")
            if self._credit <= 0:
                raise LinkFault(TRANSFER_LIMIT, "a message came without credit for it")
            self._delivery_id = transfer.delivery_id
            self._credit -= 1
            self._count = (self._count + 1) % MODULUS
        self._pieces.append(payload)
        if transfer.aborted:
            self._pieces = []
            self._give_credit()
            return
        octets = b"".join(self._pieces)
        if len(octets) > MESSAGE_OCTETS_MAX or len(self._pieces) > MESSAGE_OCTETS_MAX:
            raise LinkFault(INVALID_FIELD, f"what is sent to a coordinator has at most {MESSAGE_OCTETS_MAX} octets")
        if transfer.more:
            return
        self._pieces = []
        try:
            said = _said(octets)
        except Malformed as malformed:
            raise LinkFault(malformed.condition, str(malformed)) from None
        token = Transacting(self, self._delivery_id, transfer.settled is True)
        if isinstance(said, Declare):
            self._declare(said, token, events)
        else:
            self._discharge(said, token, events)

    def _declare(self, declare: Declare, token: Transacting, events: list[Any]) -> None:
        if declare.global_id is not None:
            raise LinkFault(NOT_IMPLEMENTED, "distributed transactions are not begun here: global-id must be null")
        connection = self.session.connection
        transaction = connection.transactions.name()
        token.state = Declared(transaction)
        self._open[transaction] = None
        events.append(Begin(connection.peer, transaction, token))

    def _discharge(self, discharge: Discharge, token: Transacting, events: list[Any]) -> None:
        if discharge.txn_id not in self._open:
            raise LinkFault(UNKNOWN_TRANSACTION, "no transaction of this txn-id was declared on this link, or it was discharged")
        del self._open[discharge.txn_id]
        self.session.connection.transactions.forget(discharge.txn_id)
        events.append(End(self.session.connection.peer, discharge.txn_id, not discharge.fail, token))

    def tell(self, token: Transacting, state: DeliveryState) -> None:
        """The answer. A commit that could not be done was rolled back, whatever for (4.5.6)."""
        if self._is_lost:
            return
        if isinstance(state, Rejected) and not isinstance(token.state, Declared) and state.error is not None:
            state.error.condition = ROLLED_BACK
        elif isinstance(state, Rejected) and isinstance(token.state, Declared):
            self._open.pop(token.state.txn_id, None)
            self.session.connection.transactions.forget(token.state.txn_id)
        if not token.settled:
            self.session.settle_incoming(token.delivery_id, token.delivery_id, state)
        self._give_credit()

    def _give_credit(self) -> None:
        self._credit += 1
        self.session.write_flow(self.handle, self._count, self._credit)


def transaction_of(state: DeliveryState) -> TransactionalState | None:
    """In which the message is to be sent: all of its state that counts, and is kept."""
    if not isinstance(state, TransactionalState):
        return None
    return state if state.outcome is None else TransactionalState(state.txn_id)


def _said(octets: bytes) -> Declare | Discharge:
    """The value of the message's body; what may stand before it means nothing here. Raises Malformed."""
    at, end = 0, len(octets)
    while at < end:
        section, at = decode(octets, at, end)
        if isinstance(section, Described) and section.descriptor in AMQP_VALUE and isinstance(section.value, Described):
            said = compose(section.value)
            if isinstance(said, Declare | Discharge):
                return said
    raise Malformed("a coordinator understands declare and discharge")
