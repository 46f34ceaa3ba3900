"""Reads once a second what pages watch, and at once when the node has told something new, while somebody watches; wakes those who tell them. One a process."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping

from django.db import DatabaseError

from .board import Board, Subject, Told

log = logging.getLogger("surety.live")

EVERY_SECONDS, PULSE_SECONDS = 1.0, 0.2
Read = Callable[[Collection[Subject]], Awaitable[Mapping[Subject, Told]]]
Pulse = Callable[[], Awaitable[object]]
"""Something else whenever there may be something new to read; cheap."""


class Feed:
    """`read` is called with everything that is watched. While it fails nobody is told anything, so that pages say that they are stale."""

    def __init__(self, read: Read, pulse: Pulse | None = None, every_seconds: float = EVERY_SECONDS) -> None:
        self.name = secrets.token_hex(6)
        """Versions of another feed, such as that of an earlier process, mean nothing here."""
        self.board = Board()
        self._read, self._pulse, self._every = read, pulse, every_seconds
        self._beat: object = None
        self._watched: dict[object, frozenset[Subject]] = {}
        self._last: Mapping[object, frozenset[Subject]] = {}
        """What was watched when the last reading began."""
        self._turned = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def watchers(self) -> int:
        return len(self._watched)

    def watch(self, watcher: object, subjects: frozenset[Subject]) -> None:
        """From the next reading on, instead of what it watched before."""
        self._watched[watcher] = subjects
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="live feed")

    def forget(self, watcher: object) -> None:
        self._watched.pop(watcher, None)

    async def turned(self, watcher: object) -> None:
        """Returns after the next reading of all that it watches, which may be that after the next: to who came when one was under way, and to who has
        not said what it watches, everything would seem to be gone."""
        while True:
            await self._turned.wait()
            if watcher in self._watched and self._last.get(watcher) is self._watched[watcher]:
                return

    async def _run(self) -> None:
        while self._watched:
            await self._turn()
            await self._rest()

    async def _rest(self) -> None:
        """Until something may be new, and not for longer than a turn."""
        if self._pulse is None:
            await asyncio.sleep(self._every)
            return
        until = asyncio.get_running_loop().time() + self._every
        while (left := until - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(min(left, PULSE_SECONDS))
            try:
                beat = await self._pulse()
            except DatabaseError:
                continue  # as the reading will say
            if beat != self._beat:
                self._beat = beat
                return

    async def _turn(self) -> None:
        began = dict(self._watched)
        try:
            self.board.put(await self._read(frozenset().union(*began.values())))
        except DatabaseError as error:
            log.warning("What pages show is not read: %s", str(error).strip().partition("\n")[0])
            return
        self._last = began
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()
