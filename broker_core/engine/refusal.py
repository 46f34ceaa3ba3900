"""Every way the broker says no. Values, not exceptions: each protocol has one total table from here to its own error form."""

from enum import Enum


class Refusal(Enum):
    """The value is the sentence that a peer reads; `detail` in the effect names the particulars."""

    INVALID_DESTINATION = "the destination's name is not valid"
    NO_SUCH_DESTINATION = "the destination does not exist and may not be created automatically"
    TOO_MANY_DESTINATIONS = "the broker has as many destinations as it may have: use one that exists, or ask its operator for room"
    TOO_MANY_TEMPORARIES = "the connection has as many temporary destinations as it may have: use one for many requests"
    TEMPORARY_DESTINATION_GONE = "the temporary destination has ended with the connection that made it"
    NOT_THE_OWNER = "a temporary destination is consumed by the connection that made it and by nobody else"
    NOT_DURABLE = "a subscription of a temporary topic ends with its connection and cannot be durable"
    ACCESS_DENIED = "the account may not do this there: a rule of its operator refuses it, or none allows it"
    INVALID_PATTERN = "the pattern of topics is not valid"
    DESTINATION_PAUSED = "the destination accepts no messages at present: an operator paused it"
    DESTINATION_EXISTS = "a destination with this name exists already"
    DESTINATION_IN_USE = "the destination still has consumers or messages"
    DESTINATION_RESERVED = "the destination belongs to the broker: it cannot be sent to, nor changed this way"
    SUBSCRIPTION_IN_USE = "the subscription has a consumer; another one must wait until that is closed, or both must ask for a shared subscription"
    SUBSCRIPTION_OF_ANOTHER = "the subscription belongs to another account"
    TOO_MANY_SUBSCRIPTIONS = "there are as many subscriptions as there may be: end some that nobody uses, or ask the broker's operator for room"
    NO_SUCH_SUBSCRIPTION = "the client has no subscription of this name"
    CLIENT_ID_REQUIRED = "a durable subscription that is not shared belongs to a client: the connection must state its client identifier"
    LINK_STOLEN = "another connection of this client consumes from the subscription now"
    LINK_IN_USE = "a subscription with this id is open on this connection"
    TOO_MANY_SELECTORS = "the account has as much text in selectors as may be: end subscriptions with selectors, or shorten them"
    TOO_MANY_BROWSERS = "as many browsers are open as may be: close one first"
    NO_SUCH_CONNECTION = "there is no such connection, or it is the broker's own"
    NO_SUCH_CONSUMER = "there is no such consumer"
    CONSUMER_CLOSED = "an operator closed the consumer"
    NO_SUCH_NODE = "the node cannot take over"
    NO_SUCH_LISTENER = "the listener is not as it was asked for"
    ANOTHER_TERM = "the node that was meant does not serve any more"
    NO_SUCH_DELAYED = "there is no such delayed message: it was delivered, cancelled or moved to another time"
    TRY_AGAIN = "too much of this is asked at a time: ask again"
    NO_SUCH_LINK = "no subscription with this id is open on this connection"
    NO_SUCH_DELIVERY = "the delivery is not outstanding here: already settled, returned to the queue, or never made"
    NOT_OUTSTANDING = (
        "the transaction acknowledges a delivery that is not outstanding: "
        "settled before, or returned by an ABORT, a NACK or the end of its subscription; nothing of it is done"
    )
    TRANSACTION_EXISTS = "a transaction of this name has begun on this connection and has not ended"
    NO_SUCH_TRANSACTION = "no transaction of this name has begun on this connection, or it has ended"
    TRANSACTION_TIMED_OUT = "the transaction took too long and was rolled back"
    TRANSACTION_TOO_LARGE = "the transaction holds as much as it may: commit earlier"
    RELIABILITY_EXCEEDED = "the message asks for a higher reliability than the destination's maximum"
    TOO_MANY_CONSUMERS = "the queue has as many consumers, active ones and backups, as it may: one of them must close first"
    FOREIGN_DESTINATION = "the queue belongs to another broker, to which its messages are forwarded: it can be sent to and browsed, not consumed from"
    TOO_MANY_PRODUCERS = "the destination has as many producers as it may: another connection that has sent to it must close first"
    DESTINATION_FULL = "the destination holds as much as it may: send again when consumers have taken some of it"
    XAER_NOTA = "no branch of this xid is known to this account: it never began, has ended, or ended with its connection before it was prepared"
    XAER_DUPID = "a branch of this xid has begun and has not ended"
    XAER_PROTO = "the branch is in no state for this"
    XAER_RMERR = "the request about branches cannot be done"
    XA_RBROLLBACK = "the branch was rolled back"
    XA_RBTIMEOUT = "the branch took too long and was rolled back"
    XA_RBOTHER = "the branch was rolled back, as there are as many prepared ones as there may be: end some, or ask the broker's operator for room"
    XA_HEURCOM = "an administrator has committed the branch by hand; forget it when that is noted"
    XA_HEURRB = "an administrator has rolled the branch back by hand; forget it when that is noted"
    MESSAGE_TOO_LARGE = "the message is larger than allowed"
    TOO_MANY_UNSETTLED = "too many deliveries are outstanding"
    INVALID_SETTING = "the setting is not valid"
    REQUEST_EXPIRED = "the request's deadline passed before the node could apply it"
    NOT_SUPPORTED = "this is not supported"


class Declined(Exception):
    """An operator's request cannot be done. Raised by what does requests, and caught where they are answered (administration.py)."""

    def __init__(self, refusal: Refusal, detail: str = "") -> None:
        self.refusal = refusal
        self.detail = detail

    @property
    def answer(self) -> dict[str, str]:
        """As operators read it."""
        return {"refusal": self.refusal.name, "message": self.refusal.value, "detail": self.detail}
