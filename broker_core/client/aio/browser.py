"""Looking at a queue or a durable subscription."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from broker_core.client.clock import time_of_day
from broker_core.client.faces import BrowserFace, QueueBrowserFace, SubscriptionBrowserFace
from broker_core.client.faces.browser import late
from broker_core.client.machine import BrowserMachine, Subscription
from broker_core.client.messages import Message

from .driver import Driver

if TYPE_CHECKING:
    from .session import Session


class Browser(BrowserFace):
    """Each `async for` is a new look, and consumes nothing."""

    def __init__(self, session: Session, driver: Driver, what: Subscription) -> None:
        super().__init__(what)
        self._session = session
        self._driver = driver
        self._looks: dict[BrowserMachine, None] = {}
        """Those that are open."""

    async def __aiter__(self) -> AsyncGenerator[Message, None]:
        """The highest priority first, within it in the order of arrival; what arrives meanwhile is not shown. While a look that has begun is not
        taken further, the connection reads at most its prefetch for it, and then nothing at all: close() ends it."""
        self._check_open()
        await self._driver.ready()
        look = BrowserMachine(self._session.machine, self._what)
        self._looks[look] = None
        try:
            await self._driver.wait(look.opened)
            while (message := await self._next(look)) is not None:
                yield message
        finally:
            self._end(look)

    async def _next(self, look: BrowserMachine) -> Message | None:
        """None: it is through."""
        loop, timeout = self._driver.loop, self._driver.machine.settings.queue_browser_retrieve_timeout
        deadline = loop.time() + timeout
        while True:
            self._check_open()
            message = look.next(time_of_day())
            if message is not None or look.is_through:
                self._driver.flush_soon()
                return message
            left = deadline - loop.time()
            if left <= 0:
                raise late(timeout)
            await self._session.sleep(left)

    def _end(self, look: BrowserMachine) -> None:
        """The broker's answer is not waited for: this may be the end of a task, too."""
        if look in self._looks:
            del self._looks[look]
            if not self._driver.machine.is_ended:
                look.close()
                self._driver.flush_soon()

    async def close(self) -> None:
        """With the looks that were not taken to their end."""
        self._is_closed = True
        for look in list(self._looks):
            self._end(look)
        self._session.notify()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


class QueueBrowser(QueueBrowserFace, Browser):
    """Made by Session.create_browser: what the queue holds."""


class SubscriptionBrowser(SubscriptionBrowserFace, Browser):
    """Made by Session.create_durable_browser: what the subscription has collected."""
