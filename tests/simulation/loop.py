"""An event loop whose time is virtual: when nothing is ready it jumps to the next timer. The same program gives the same order of events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from broker_core.server import clock, host, space

ABANDONED = "Task was destroyed but it is pending!"
"""A killed node leaves tasks behind; when they are collected is not in the seed's hand."""


class Deadlock(Exception):
    """Nothing is ready and no timer is set."""


class _Selector:
    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlock
        self._loop.now += timeout
        return []

    def close(self) -> None:
        pass


class VirtualLoop(asyncio.BaseEventLoop):
    """Seconds since its start; no sockets, no threads, no signals."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1.0
        self._selector = _Selector(self)
        self.failures: list[BaseException] = []
        """What callbacks and forgotten tasks raised."""
        self.set_exception_handler(self._failed)

    def time(self) -> float:
        return self.now

    def _process_events(self, _events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is None and context["message"] == ABANDONED:
            return
        self.failures.append(error if error is not None else RuntimeError(context["message"]))


class _Time:
    """Stands for the module `time` in the server's rooms."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def monotonic(self) -> float:
        return self._loop.now

    perf_counter = monotonic


@contextmanager
def virtual_time(loop: VirtualLoop) -> Iterator[None]:
    """The server's clocks show the loop's time."""
    modules = (clock, host, space)
    before = [module.time for module in modules]
    for module in modules:
        module.time = _Time(loop)
    try:
        yield
    finally:
        for module, real in zip(modules, before, strict=True):
            module.time = real
