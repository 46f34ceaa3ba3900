"""Every asynchronous test of this room runs on a loop with virtual time, and fails if a callback or a forgotten task raised anything."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from tests.simulation.loop import VirtualLoop, virtual_time

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs a coroutine to its end, in an hour of virtual time at most."""
    loop = VirtualLoop()

    def run(work: Coroutine[Any, Any, None]) -> None:
        loop.run_until_complete(asyncio.wait_for(work, 3600))
        left = [task for task in asyncio.all_tasks(loop) if not task.done()]
        assert not left, f"tasks are left: {left}"
        gc.collect()
        assert not loop.failures, f"only the log would have heard of {loop.failures}"

    with virtual_time(loop):
        yield run
        for task in asyncio.all_tasks(loop):  # of a test that failed
            task.cancel()
        loop.run_until_complete(asyncio.sleep(1))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
