"""What can go wrong, by the names of JMS. The text says what happened and what to do about it; `error_code` is for programs."""

from __future__ import annotations


class JMSException(Exception):
    """The root of all; raised itself where JMS has no better name."""

    def __init__(self, reason: str, error_code: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.error_code = error_code
        """What the broker called it, or CONNECTION_LOST, NO_BROKER, ACK_TIMEOUT; empty: nothing but the class."""

    def again(self) -> JMSException:
        """The same for another thread: an exception object carries the trace of the one place where it was raised."""
        other = type(self)(self.reason, self.error_code)
        other.__cause__ = self
        return other


class IllegalStateException(JMSException):
    """Not now, or not on this object: it is closed, or its mode has no such operation."""


class InvalidClientIDException(JMSException):
    """The client identifier is another connection's, or none that can be."""


class InvalidDestinationException(JMSException):
    """The destination's name is not valid, or the destination does not exist."""


class InvalidSelectorException(JMSException):
    """The selector breaks the grammar of JMS 3.8.1."""


class JMSSecurityException(JMSException):
    """User name or password were not accepted, or the account may not do this."""


class ResourceAllocationException(JMSException):
    """The broker, or the connection, is at a limit."""


class TransactionRolledBackException(JMSException):
    """The transaction was rolled back instead of committed."""


class TransactionInProgressException(JMSException):
    """Not while the session is in a distributed transaction, or takes part in such ones alone."""


class MessageFormatException(JMSException):
    """A value, or a property's name, is such that a message cannot carry it, or a body is not what its header says."""


class MessageNotWriteableException(JMSException):
    """The message was received: clear its body or its properties first."""


CONNECTION_LOST = "CONNECTION_LOST"
NO_BROKER = "NO_BROKER"
ACK_TIMEOUT = "ACK_TIMEOUT"
