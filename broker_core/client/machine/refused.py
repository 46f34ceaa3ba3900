"""What the broker's ERROR means, by the names of JMS."""

from __future__ import annotations

from broker_core.client.exceptions import (
    IllegalStateException,
    InvalidClientIDException,
    InvalidDestinationException,
    InvalidSelectorException,
    JMSException,
    JMSSecurityException,
    ResourceAllocationException,
    TransactionRolledBackException,
)
from broker_core.engine.refusal import Refusal
from broker_core.stomp.refusals import REFUSALS

from .reader import Frame

EXCEPTIONS: dict[Refusal, type[JMSException]] = {
    Refusal.INVALID_DESTINATION: InvalidDestinationException,
    Refusal.NO_SUCH_DESTINATION: InvalidDestinationException,
    Refusal.TOO_MANY_DESTINATIONS: ResourceAllocationException,
    Refusal.TOO_MANY_TEMPORARIES: ResourceAllocationException,
    Refusal.INVALID_PATTERN: InvalidDestinationException,
    Refusal.TEMPORARY_DESTINATION_GONE: InvalidDestinationException,
    Refusal.DESTINATION_PAUSED: ResourceAllocationException,
    Refusal.DESTINATION_EXISTS: InvalidDestinationException,
    Refusal.DESTINATION_IN_USE: IllegalStateException,
    Refusal.DESTINATION_RESERVED: InvalidDestinationException,
    Refusal.SUBSCRIPTION_IN_USE: IllegalStateException,
    Refusal.SUBSCRIPTION_OF_ANOTHER: JMSSecurityException,
    Refusal.ACCESS_DENIED: JMSSecurityException,
    Refusal.TOO_MANY_SUBSCRIPTIONS: ResourceAllocationException,
    Refusal.TOO_MANY_SELECTORS: ResourceAllocationException,
    Refusal.TOO_MANY_BROWSERS: ResourceAllocationException,
    Refusal.NOT_THE_OWNER: InvalidDestinationException,
    Refusal.FOREIGN_DESTINATION: InvalidDestinationException,
    Refusal.NOT_DURABLE: InvalidDestinationException,
    Refusal.NO_SUCH_SUBSCRIPTION: InvalidDestinationException,
    Refusal.CLIENT_ID_REQUIRED: IllegalStateException,
    Refusal.LINK_STOLEN: JMSException,
    Refusal.LINK_IN_USE: JMSException,
    Refusal.NO_SUCH_LINK: JMSException,
    Refusal.NO_SUCH_CONNECTION: JMSException,
    Refusal.NO_SUCH_CONSUMER: JMSException,
    Refusal.CONSUMER_CLOSED: JMSException,
    Refusal.NO_SUCH_NODE: JMSException,
    Refusal.NO_SUCH_LISTENER: JMSException,
    Refusal.ANOTHER_TERM: JMSException,
    Refusal.NO_SUCH_DELAYED: JMSException,
    Refusal.TRY_AGAIN: ResourceAllocationException,
    Refusal.NO_SUCH_DELIVERY: IllegalStateException,
    Refusal.NOT_OUTSTANDING: TransactionRolledBackException,
    Refusal.TRANSACTION_EXISTS: JMSException,
    Refusal.NO_SUCH_TRANSACTION: TransactionRolledBackException,
    Refusal.TRANSACTION_TIMED_OUT: TransactionRolledBackException,
    Refusal.TRANSACTION_TOO_LARGE: TransactionRolledBackException,
    Refusal.RELIABILITY_EXCEEDED: ResourceAllocationException,
    Refusal.DESTINATION_FULL: ResourceAllocationException,
    Refusal.TOO_MANY_PRODUCERS: ResourceAllocationException,
    Refusal.TOO_MANY_CONSUMERS: ResourceAllocationException,
    Refusal.MESSAGE_TOO_LARGE: ResourceAllocationException,
    Refusal.TOO_MANY_UNSETTLED: ResourceAllocationException,
    Refusal.XA_RBROLLBACK: TransactionRolledBackException,
    Refusal.XA_RBTIMEOUT: TransactionRolledBackException,
    Refusal.XA_RBOTHER: TransactionRolledBackException,
    Refusal.XA_HEURCOM: JMSException,
    Refusal.XA_HEURRB: JMSException,
    Refusal.XAER_DUPID: JMSException,
    Refusal.XAER_NOTA: JMSException,
    Refusal.XAER_PROTO: JMSException,
    Refusal.XAER_RMERR: JMSException,
    Refusal.INVALID_SETTING: JMSException,
    Refusal.REQUEST_EXPIRED: JMSException,
    Refusal.NOT_SUPPORTED: JMSException,
}
_BY_MESSAGE = {message: EXCEPTIONS.get(refusal, JMSException) for refusal, message in REFUSALS.items()}

_BEGINNINGS: tuple[tuple[str, type[JMSException]], ...] = (
    ("client identifier ", InvalidClientIDException),
    ("header client-id ", InvalidClientIDException),
    ("login or passcode ", JMSSecurityException),
    ("too many logins have failed", JMSSecurityException),
    ("the account ", JMSSecurityException),
    ("the password of ", JMSSecurityException),
    ("header selector is not valid", InvalidSelectorException),
    ("no administered object ", InvalidDestinationException),
    ("destination ", InvalidDestinationException),
    ("the body ", ResourceAllocationException),
    ("more than ", ResourceAllocationException),
    ("the broker has ", ResourceAllocationException),
)
"""Sentences that are no refusal of the engine but the connection's own, by how they begin."""


ADVICE: dict[str, str] = {
    Refusal.XAER_NOTA.name: "tpc_recover() names those that are there",
    Refusal.XAER_DUPID.name: "give each branch a xid of its own",
    Refusal.XA_RBROLLBACK.name: "do its work again in a new one",
    Refusal.XA_RBTIMEOUT.name: "do its work again in a new one, or give it more time with transaction_timeout",
    Refusal.XA_RBOTHER.name: "do its work again then",
    Refusal.XA_HEURCOM.name: "say tpc_forget(xid)",
    Refusal.XA_HEURRB.name: "say tpc_forget(xid), and put right by hand what was committed elsewhere",
}
"""What an application of this runtime does about it."""


def refused_as(refusal: Refusal) -> JMSException:
    """The exception for what the broker would refuse."""
    message = REFUSALS[refusal]
    return _exception(EXCEPTIONS[refusal], message, refusal.value)


def _exception(kind: type[JMSException], message: str, told: str) -> JMSException:
    sentence = message if not told or told == message else f"{message}: {told}"
    advice = f"; {ADVICE[message]}" if message in ADVICE else ""
    return kind(f"the broker refused: {sentence}{advice}", message)


def refused(frame: Frame) -> JMSException:
    """The exception for an ERROR frame."""
    message = frame.headers.get("message", "")
    told = frame.body.decode("utf-8", "replace").strip()
    kind = _BY_MESSAGE.get(message)
    if kind is None:
        kind = next((kind for beginning, kind in _BEGINNINGS if message.startswith(beginning)), JMSException)
    return _exception(kind, message, told)
