"""How tasks wait: each on a future of its own, so that cancelling one leaves the others alone."""

from __future__ import annotations

import asyncio


def resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Signal:
    """Wakes all that wait for it; what they wait for they look at themselves."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[asyncio.Future[None], None] = {}

    def notify(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            for future in waiting:
                resolve(future)

    async def wait(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  # it ends the wait, and is no error
        """Until it is notified, or for so many seconds."""
        future = self._loop.create_future()
        self._waiting[future] = None
        timer = None if timeout is None else self._loop.call_later(timeout, resolve, future)
        try:
            await future
        finally:
            self._waiting.pop(future, None)
            if timer is not None:
                timer.cancel()
