"""Every way the broker says no, as STOMP says it: an ERROR frame."""

from __future__ import annotations

from broker_core.engine.refusal import Refusal

from .escaping import header_line

REFUSALS: dict[Refusal, str] = {
    Refusal.INVALID_DESTINATION: "invalid destination",
    Refusal.NO_SUCH_DESTINATION: "no such destination",
    Refusal.TOO_MANY_DESTINATIONS: "too many destinations",
    Refusal.TOO_MANY_TEMPORARIES: "too many temporary destinations",
    Refusal.TEMPORARY_DESTINATION_GONE: "temporary destination gone",
    Refusal.NOT_THE_OWNER: "not the owner",
    Refusal.NOT_DURABLE: "not durable",
    Refusal.ACCESS_DENIED: "access denied",
    Refusal.INVALID_PATTERN: "invalid pattern",
    Refusal.DESTINATION_PAUSED: "destination paused",
    Refusal.DESTINATION_EXISTS: "destination exists",
    Refusal.DESTINATION_IN_USE: "destination in use",
    Refusal.DESTINATION_RESERVED: "destination reserved",
    Refusal.SUBSCRIPTION_IN_USE: "subscription in use",
    Refusal.SUBSCRIPTION_OF_ANOTHER: "subscription of another account",
    Refusal.TOO_MANY_SUBSCRIPTIONS: "too many subscriptions",
    Refusal.TOO_MANY_SELECTORS: "too many selectors",
    Refusal.NO_SUCH_SUBSCRIPTION: "no subscription of this name",
    Refusal.CLIENT_ID_REQUIRED: "client-id required",
    Refusal.LINK_STOLEN: "subscription taken over",
    Refusal.LINK_IN_USE: "subscription id in use",
    Refusal.TOO_MANY_BROWSERS: "too many browsers",
    Refusal.NO_SUCH_CONNECTION: "no such connection",
    Refusal.NO_SUCH_CONSUMER: "no such consumer",
    Refusal.CONSUMER_CLOSED: "consumer closed",
    Refusal.NO_SUCH_NODE: "no such node",
    Refusal.NO_SUCH_LISTENER: "no such listener",
    Refusal.ANOTHER_TERM: "another node serves",
    Refusal.NO_SUCH_DELAYED: "no such delayed message",
    Refusal.TRY_AGAIN: "try again",
    Refusal.NO_SUCH_LINK: "no such subscription",
    Refusal.NO_SUCH_DELIVERY: "no such delivery",
    Refusal.NOT_OUTSTANDING: "delivery not outstanding",
    Refusal.TRANSACTION_EXISTS: "transaction exists",
    Refusal.NO_SUCH_TRANSACTION: "no such transaction",
    Refusal.TRANSACTION_TIMED_OUT: "transaction timed out",
    Refusal.TRANSACTION_TOO_LARGE: "transaction too large",
    Refusal.RELIABILITY_EXCEEDED: "reliability too high",
    Refusal.TOO_MANY_CONSUMERS: "too many consumers",
    Refusal.FOREIGN_DESTINATION: "foreign destination",
    Refusal.TOO_MANY_PRODUCERS: "too many producers",
    Refusal.DESTINATION_FULL: "destination full",
    **{refusal: refusal.name for refusal in Refusal if refusal.name.startswith(("XA_", "XAER_"))},
    Refusal.MESSAGE_TOO_LARGE: "message too large",
    Refusal.TOO_MANY_UNSETTLED: "too many unacknowledged messages",
    Refusal.INVALID_SETTING: "invalid setting",
    Refusal.REQUEST_EXPIRED: "request expired",
    Refusal.NOT_SUPPORTED: "not supported",
}
"""The `message` header of the ERROR for each refusal; its body is the refusal's sentence and the particulars."""


def sentences(refusal: Refusal, detail: str) -> str:
    """The body of the ERROR for a refusal."""
    return f"{refusal.value}: {detail}" if detail else refusal.value


def error_frame(message: str, body: str, receipt: bytes | None, extra: str, version: str | None) -> bytes:
    """`receipt` is as on the wire, `extra` are header lines; the body repeats the message if it has nothing to add.
    Before a `version` is agreed nothing is said that one of them would unescape."""
    if version is None:
        message = message.replace("\\", "/")
    octets = (body or message).encode()
    asked = b"" if receipt is None else b"receipt-id:%b\n" % receipt
    headers = f"{header_line('message', message, version or '1.0')}\n{extra}content-type:text/plain\ncontent-length:{len(octets)}\n"
    return b"ERROR\n%b%b\n%b\0" % (headers.encode(), asked, octets)
