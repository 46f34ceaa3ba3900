"""Looking at a queue: less the waiting."""

from __future__ import annotations

from broker_core.client.destinations import Queue
from broker_core.client.exceptions import ACK_TIMEOUT, IllegalStateException, JMSException


class BrowserFace:
    def __init__(self, queue: Queue, selector: str) -> None:
        self._queue = queue
        self._selector = selector
        self._is_closed = False

    @property
    def queue(self) -> Queue:
        return self._queue

    @property
    def message_selector(self) -> str:
        return self._selector

    def _check_open(self) -> None:
        if self._is_closed:
            raise IllegalStateException("the browser is closed: create another one")


def late(timeout: float) -> JMSException:
    """The next message takes too long."""
    return JMSException(f"the queue's next message has not come within {timeout:g} s: raise queue_browser_retrieve_timeout", ACK_TIMEOUT)
