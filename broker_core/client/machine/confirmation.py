"""What an operation waits for: the broker's word that it is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from broker_core.client.exceptions import ACK_TIMEOUT, JMSException

if TYPE_CHECKING:
    from broker_core.client.messages import Message

    from .consumer import ConsumerMachine

CompletionListener = Callable[["Message", JMSException | None], None]
"""Told of a message that was sent asynchronously: without an error the broker has it."""


class Confirmation:
    """Returned by every operation that waits; None in its place says that there is nothing to wait for."""

    __slots__ = ("completion", "consumer", "doubt", "error", "failed", "is_settled", "message", "octets", "owner", "then", "waiter")

    def __init__(
        self, owner: Any, doubt: str, then: Callable[[], None] | None = None, failed: Callable[[JMSException], None] | None = None
    ) -> None:
        self.owner = owner
        """The session that waits, or the connection."""
        self.doubt = doubt
        """What is not known if the answer never comes."""
        self.then = then
        """What the machine does when the answer has come."""
        self.failed = failed
        """What it does when it was refused, or none comes any more."""
        self.is_settled = False
        self.error: JMSException | None = None
        self.consumer: ConsumerMachine | None = None
        """Of a SUBSCRIBE."""
        self.octets = 0
        """Of a send: what it holds of the window."""
        self.completion: CompletionListener | None = None
        self.message: Message | None = None
        self.waiter: Callable[[], None] | None = None
        """Called when it is settled, whatever came: where many wait in one session, each for its own."""

    def late(self, timeout: float) -> JMSException:
        """The answer was waited for so many seconds."""
        return JMSException(f"the broker has not answered within {timeout:g} s; {self.doubt}", ACK_TIMEOUT)

    def check(self) -> None:
        """Raise what went wrong."""
        if self.error is not None:
            raise self.error.again()
