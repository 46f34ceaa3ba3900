"""A browser: copies of what a queue or a durable subscription holds, and where they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.client.exceptions import JMSException
from broker_core.client.messages import Message

from .confirmation import Confirmation
from .consumer import ConsumerMachine, Subscription

if TYPE_CHECKING:
    from .session import SessionMachine

END = b"\nbrowser:end"


class BrowserMachine:
    """One look."""

    def __init__(self, session: SessionMachine, what: Subscription) -> None:
        session.check_browsable(what)
        self._session = session
        self._consumer: ConsumerMachine
        self._consumer, self.opened = session.create_consumer(what)
        """Settled when the broker has begun."""
        self.is_through = False

    def next(self, instant: int) -> Message | None:
        """The next message; None: it is through, or none has come yet. Raises if none can come."""
        consumer = self._consumer
        if not consumer.buffer:
            self._session.check()
            if consumer.is_cut_off:
                raise JMSException("the connection was lost during the look: browse it again")
            return None
        if END in consumer.buffer[0].section:
            self.is_through = True
            return None
        taken = consumer.next(instant)
        return None if taken is None else taken[0]

    def close(self) -> Confirmation | None:
        self.is_through = True
        return self._session.close_consumer(self._consumer)
