"""Looking at a queue or a durable subscription."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .clock import time_of_day
from .driver import Driver
from .faces import BrowserFace, QueueBrowserFace, SubscriptionBrowserFace
from .faces.browser import late
from .machine import BrowserMachine, Subscription
from .messages import Message

if TYPE_CHECKING:
    from .session import Session


LOCK_SECONDS = 0.2
"""How long the end of a look waits for the lock, which others give up sooner: the thread's own call may have it."""


class Browser(BrowserFace):
    """Each iteration is a new look, and consumes nothing."""

    def __init__(self, session: Session, driver: Driver, what: Subscription) -> None:
        super().__init__(what)
        self._session = session
        self._driver = driver

    def __iter__(self) -> Iterator[Message]:
        """The highest priority first, within it in the order of arrival; what arrives meanwhile is not shown. While a look that has begun is not
        taken further, the connection reads at most its prefetch for it, and then nothing at all."""
        self._check_open()
        with closing(_Look(self._session, self._driver, self._what)) as look:
            while (message := look.next()) is not None:
                yield message

    def close(self) -> None:
        self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class QueueBrowser(QueueBrowserFace, Browser):
    """Made by Session.create_browser: what the queue holds."""


class SubscriptionBrowser(SubscriptionBrowserFace, Browser):
    """Made by Session.create_durable_browser: what the subscription has collected."""


class _Look:
    def __init__(self, session: Session, driver: Driver, what: Subscription) -> None:
        self._session = session
        self._driver = driver
        with driver.lock:
            driver.ready()
            self._machine = BrowserMachine(session.machine, what)
            try:
                session.await_confirmed(self._machine.opened)
            except BaseException:  # so that the broker shows nothing to nobody
                self._machine.close()
                raise

    def next(self) -> Message | None:
        """None: it is through."""
        driver, machine = self._driver, self._machine
        timeout = driver.machine.settings.queue_browser_retrieve_timeout
        deadline = time.monotonic() + timeout
        with driver.lock:
            while True:
                message = machine.next(time_of_day())
                if message is not None or machine.is_through:
                    driver.flush_soon()
                    return message
                left = deadline - time.monotonic()
                if left <= 0:
                    raise late(timeout)
                self._session.sleep(left)

    def close(self) -> None:
        """Also by the garbage collector, in the end, of one that nobody has any more: in any thread, perhaps within a call that has the lock."""
        driver = self._driver
        if not driver.lock.acquire(timeout=LOCK_SECONDS):
            driver.abandoned.append(self._machine.close)
            return
        try:
            if not driver.machine.is_ended:
                confirmation = self._machine.close()
                if confirmation is not None:
                    self._session.await_quietly(confirmation)
        finally:
            driver.lock.release()
