"""When the host has the engine report, and what becomes of the report: the checkpoint to the store, the statistics to operators."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from broker_core.engine.effects import Effects
from broker_core.store import Store

from .space import Space

SHARE = 20
"""A report that took long is followed by a longer pause: never more than one part in so many of the time goes into them."""


class Reporter:
    """At most one report at a time, and as seldom as configured."""

    def __init__(self, store: Store, space: Space, seconds: float, publish: Callable[[Effects], Coroutine[Any, Any, None]]) -> None:
        """`seconds`: from one report to the next; halfway operators are told what has changed. `publish` writes statistics for operators."""
        self._store = store
        self._space = space
        self._seconds = seconds
        self._publish = publish
        self._next = self._next_told = -math.inf
        self._under_way = False

    def hurry(self) -> None:
        """The next one is due now."""
        self._next = -math.inf

    def seconds_left(self) -> float | None:
        """Until the next one is due, or operators are to be told; None: not as long as this one is under way."""
        return None if self._under_way else min(self._next, self._next_told) - asyncio.get_running_loop().time()

    def is_due(self) -> bool:
        """True: the flush that is made now should report; the next one becomes due later."""
        now = asyncio.get_running_loop().time()
        if self._under_way or now < self._next:
            return False
        self._next, self._next_told = now + self._seconds, now + self._seconds / 2
        return True

    def tells(self) -> bool:
        """True: no report is due, and the flush that is made now should tell operators what has changed; a second is long for who looks at a page."""
        now = asyncio.get_running_loop().time()
        if self._under_way or now < self._next_told:
            return False
        self._next_told = now + self._seconds / 2
        return True

    def begin(self, effects: Effects) -> None:
        """From the flush, not from when it is written: a commit that waits for space must not let a second report overtake the first."""
        self._under_way = self._under_way or effects.reports

    async def write(self, effects: Effects) -> None:
        """Its commit is durable. As soon as there is disk space."""
        took = 0.0
        if effects.checkpoint is not None:
            took += await self._space.patiently(partial(self._store.checkpoint, effects.checkpoint))
        if effects.statistics or effects.unlisted:
            took += await self._space.patiently(partial(self._publish, effects))
        rested = asyncio.get_running_loop().time() + (SHARE - 1) * took
        self._next, self._next_told = max(self._next, rested), max(self._next_told, rested)
        self._under_way = False
