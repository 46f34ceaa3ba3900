"""Every way the broker says no, as AMQP says it: an error condition, on the connection, the session, the link or the delivery that it concerns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from broker_core.engine.refusal import Refusal

from .frames import frame
from .performatives import Disposition, Error, Rejected

DECODE_ERROR = "amqp:decode-error"
FRAMING_ERROR = "amqp:connection:framing-error"
FORCED = "amqp:connection:forced"
FRAME_SIZE = "amqp:frame-size-too-small"
ILLEGAL_STATE = "amqp:illegal-state"
INVALID_FIELD = "amqp:invalid-field"
NOT_ALLOWED = "amqp:not-allowed"
NOT_FOUND = "amqp:not-found"
NOT_IMPLEMENTED = "amqp:not-implemented"
PRECONDITION_FAILED = "amqp:precondition-failed"
RESOURCE_DELETED = "amqp:resource-deleted"
RESOURCE_LIMIT = "amqp:resource-limit-exceeded"
RESOURCE_LOCKED = "amqp:resource-locked"
UNAUTHORIZED = "amqp:unauthorized-access"
ERRANT_LINK = "amqp:session:errant-link"
HANDLE_IN_USE = "amqp:session:handle-in-use"
UNATTACHED_HANDLE = "amqp:session:unattached-handle"
DETACH_FORCED = "amqp:link:detach-forced"
MESSAGE_SIZE = "amqp:link:message-size-exceeded"
STOLEN = "amqp:link:stolen"
TRANSFER_LIMIT = "amqp:link:transfer-limit-exceeded"
ROLLED_BACK = "amqp:transaction:rollback"
TRANSACTION_TIMEOUT = "amqp:transaction:timeout"
UNKNOWN_TRANSACTION = "amqp:transaction:unknown-id"

REFUSALS: dict[Refusal, str] = {
    Refusal.INVALID_DESTINATION: INVALID_FIELD,
    Refusal.NO_SUCH_DESTINATION: NOT_FOUND,
    Refusal.TOO_MANY_DESTINATIONS: RESOURCE_LIMIT,
    Refusal.TOO_MANY_TEMPORARIES: RESOURCE_LIMIT,
    Refusal.TEMPORARY_DESTINATION_GONE: NOT_FOUND,
    Refusal.NOT_THE_OWNER: NOT_ALLOWED,
    Refusal.NOT_DURABLE: NOT_ALLOWED,
    Refusal.ACCESS_DENIED: UNAUTHORIZED,
    Refusal.INVALID_PATTERN: INVALID_FIELD,
    Refusal.DESTINATION_PAUSED: PRECONDITION_FAILED,
    Refusal.DESTINATION_EXISTS: PRECONDITION_FAILED,
    Refusal.DESTINATION_IN_USE: RESOURCE_LOCKED,
    Refusal.DESTINATION_RESERVED: UNAUTHORIZED,
    Refusal.SUBSCRIPTION_IN_USE: RESOURCE_LOCKED,
    Refusal.SUBSCRIPTION_OF_ANOTHER: UNAUTHORIZED,
    Refusal.TOO_MANY_SUBSCRIPTIONS: RESOURCE_LIMIT,
    Refusal.TOO_MANY_SELECTORS: RESOURCE_LIMIT,
    Refusal.NO_SUCH_SUBSCRIPTION: NOT_FOUND,
    Refusal.CLIENT_ID_REQUIRED: PRECONDITION_FAILED,
    Refusal.LINK_STOLEN: STOLEN,
    Refusal.LINK_IN_USE: RESOURCE_LOCKED,
    Refusal.TOO_MANY_BROWSERS: RESOURCE_LIMIT,
    Refusal.NO_SUCH_CONNECTION: NOT_FOUND,
    Refusal.NO_SUCH_CONSUMER: NOT_FOUND,
    Refusal.CONSUMER_CLOSED: DETACH_FORCED,
    Refusal.NO_SUCH_NODE: NOT_FOUND,
    Refusal.NO_SUCH_LISTENER: NOT_FOUND,
    Refusal.ANOTHER_TERM: NOT_FOUND,
    Refusal.NO_SUCH_DELAYED: NOT_FOUND,
    Refusal.TRY_AGAIN: RESOURCE_LIMIT,
    Refusal.NO_SUCH_LINK: NOT_FOUND,
    Refusal.NO_SUCH_DELIVERY: ILLEGAL_STATE,
    Refusal.NOT_OUTSTANDING: ROLLED_BACK,
    Refusal.TRANSACTION_EXISTS: ILLEGAL_STATE,
    Refusal.NO_SUCH_TRANSACTION: UNKNOWN_TRANSACTION,
    Refusal.TRANSACTION_TIMED_OUT: TRANSACTION_TIMEOUT,
    Refusal.TRANSACTION_TOO_LARGE: RESOURCE_LIMIT,
    Refusal.RELIABILITY_EXCEEDED: PRECONDITION_FAILED,
    Refusal.TOO_MANY_CONSUMERS: RESOURCE_LIMIT,
    Refusal.FOREIGN_DESTINATION: NOT_ALLOWED,
    Refusal.TOO_MANY_PRODUCERS: RESOURCE_LIMIT,
    Refusal.DESTINATION_FULL: RESOURCE_LIMIT,
    **{refusal: ILLEGAL_STATE for refusal in Refusal if refusal.name.startswith(("XA_", "XAER_"))},
    Refusal.MESSAGE_TOO_LARGE: MESSAGE_SIZE,
    Refusal.TOO_MANY_UNSETTLED: RESOURCE_LIMIT,
    Refusal.INVALID_SETTING: INVALID_FIELD,
    Refusal.REQUEST_EXPIRED: PRECONDITION_FAILED,
    Refusal.NOT_SUPPORTED: NOT_IMPLEMENTED,
}
"""The condition for each refusal; its description is the refusal's sentence and the particulars."""
TEXT_MAX = 1024
"""Characters of a description; in a frame that has no room for it there are fewer (see `fitting`)."""


class Fault(Exception):
    """What the peer did wrong, or may not do."""

    def __init__(self, condition: str, text: str, info: dict[str, Any] | None = None) -> None:
        super().__init__(text)
        self.error = Error(condition, text[:TEXT_MAX], info)


class LinkFault(Fault):
    """It ends the link."""


class SessionFault(Fault):
    """It ends the session."""


class ConnectionFault(Fault):
    """It ends the connection."""


def fitting(channel: int, performative: Any, most: int) -> bytes:
    """Its frame, of at most so many octets: of what an error says there may be the beginning only."""
    octets = frame(channel, performative)
    beyond = len(octets) - most
    if beyond <= 0:
        return octets
    error = getattr(performative.state if isinstance(performative, Disposition) else performative, "error", None)
    if error is None:
        return octets
    said = (error.description or "").encode()
    shorter = Error(error.condition, said[: max(len(said) - beyond, 0)].decode(errors="ignore"))
    changed: dict[str, Any] = {"state": Rejected(shorter)} if isinstance(performative, Disposition) else {"error": shorter}
    return frame(channel, replace(performative, **changed))


def error_of(refusal: Refusal, detail: str) -> Error:
    text = f"{refusal.value}: {detail}" if detail else refusal.value
    return Error(REFUSALS[refusal], text[:TEXT_MAX])


def quoted(text: str) -> str:
    """A peer's text inside an error: short, and without what could disturb a terminal or a log line."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[:80])
    return f"'{shown}...'" if len(text) > 80 else f"'{shown}'"
