"""Looking at a queue or a durable subscription: less the waiting."""

from __future__ import annotations

from broker_core.client.destinations import Queue, Topic
from broker_core.client.exceptions import ACK_TIMEOUT, IllegalStateException, JMSException
from broker_core.client.machine import Subscription


class BrowserFace:
    def __init__(self, what: Subscription) -> None:
        self._what = what
        self._is_closed = False

    @property
    def message_selector(self) -> str:
        return self._what.selector

    def _check_open(self) -> None:
        if self._is_closed:
            raise IllegalStateException("the browser is closed: create another one")


class QueueBrowserFace(BrowserFace):
    @property
    def queue(self) -> Queue:
        queue = self._what.destination
        assert isinstance(queue, Queue)
        return queue


class SubscriptionBrowserFace(BrowserFace):
    @property
    def topic(self) -> Topic:
        topic = self._what.destination
        assert isinstance(topic, Topic)
        return topic

    @property
    def name(self) -> str:
        """Of the subscription."""
        return self._what.name


def late(timeout: float) -> JMSException:
    """The next message takes too long."""
    return JMSException(f"the next message has not come within {timeout:g} s: raise queue_browser_retrieve_timeout", ACK_TIMEOUT)
