"""What the host does about the store beside its commits, a step at a time: drops, freezes and compacts segments, sweeps, deletes large bodies,
discarded delayed messages and forgotten identifiers (R4, R5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from broker_core.engine.commands import Command, SegmentCompacted, SegmentDropped
from broker_core.engine.effects import Effects
from broker_core.engine.reads import RETAINED
from broker_core.engine.upkeep import CompactSegment, DiscardScheduled, DropSegment, FreezeSegment, Maintenance, TrimDuplicates
from broker_core.store import Store

from .space import Space

DROP_RETRY_SECONDS = 1.0
"""A drop that met a lock is tried again after so long (R4)."""


class Janitor:
    """`submit` takes what the engine must know; `failed` what the node cannot go on without."""

    def __init__(self, store: Store, space: Space, submit: Callable[[list[Command]], None], failed: Callable[[BaseException], None]) -> None:
        self._store = store
        self._space = space
        self._submit = submit
        self._failed = failed
        self._steps: set[asyncio.Task[None]] = set()

    def take(self, effects: Effects) -> None:
        """Begin every step that the effects of a released commit ask for."""
        if effects.discarded:
            self.discard(effects.discarded)
        for step in effects.maintenance:
            self._begin(partial(self._maintain, step))

    def discard(self, bodies: list[int]) -> None:
        """Large bodies that no message names."""
        self._begin(partial(self._store.discard_bodies, bodies))

    def cancel(self) -> None:
        """A step may wait for somebody's lock; the next term begins it anew."""
        for step in self._steps:
            step.cancel()

    async def ended(self) -> None:
        await asyncio.gather(*self._steps, return_exceptions=True)

    def _begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        step = asyncio.create_task(self._do(work))
        self._steps.add(step)
        step.add_done_callback(self._done)

    async def _do(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """However often it takes: the disk may be full."""
        await self._space.patiently(work)

    def _done(self, step: asyncio.Task[None]) -> None:
        self._steps.discard(step)
        if not step.cancelled() and (error := step.exception()) is not None:
            self._failed(error)

    async def _maintain(self, step: Maintenance) -> None:
        if isinstance(step, DropSegment):
            while not await self._store.drop_segment(step.segment):
                await asyncio.sleep(DROP_RETRY_SECONDS)
            self._submit([SegmentDropped(step.segment)])
        elif isinstance(step, FreezeSegment):
            await self._store.freeze_segment(step.segment)
        elif isinstance(step, CompactSegment):
            self._submit([await self._compact(step)])
        elif isinstance(step, DiscardScheduled):
            await self._store.discard_scheduled(step.destination)
        elif isinstance(step, TrimDuplicates):
            await self._store.trim_duplicates(step)
        else:
            await self._store.sweep_retained(step)

    async def _compact(self, step: CompactSegment) -> SegmentCompacted:
        if not step.measured:
            await self._store.compact_segment(step)
            return SegmentCompacted(step.segment)
        before, kept = await self._store.segment_octets(step.segment), await self._store.segment_octets(RETAINED)
        await self._store.compact_segment(step)
        grown = await self._store.segment_octets(RETAINED) - kept  # or shrunk, by what was swept meanwhile
        return SegmentCompacted(step.segment, before, max(0, grown))
