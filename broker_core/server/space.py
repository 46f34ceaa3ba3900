"""Disk space (R21): below a minimum no publish is confirmed and producers wait; settlements, drops and compaction go on."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any

from broker_core.store import SpaceExhausted

log = logging.getLogger("surety.space")

HOLD_SECONDS = 2.0
"""After a commit was refused for space publishing waits at least so long."""
SPACE_RETRY_SECONDS = 1.0
"""What was refused for space is tried again after so long (R21)."""


class Space:
    """`folder`: the database's data folder if it is on this machine, else None. `database_octets_max`: cap of the database's size; 0: none.
    Without either only refusals tell."""

    def __init__(self, folder: str | None, free_octets_min: int, database_octets_max: int = 0) -> None:
        self._folder = folder
        self._minimum = free_octets_min
        self._size_max = database_octets_max
        self._hold_until = 0.0
        self.low = False
        self.reason = ""
        """A sentence for health and console."""
        self.free_octets: int | None = None
        """None: unknown."""
        self.database_octets: int | None = None
        """Size of the database when it was last asked. None: unknown, or nobody asks because there is no cap."""

    def exhausted(self, reason: str) -> None:
        """The database refused a write for want of space."""
        self._hold_until = time.monotonic() + HOLD_SECONDS
        self._set(f"the database has no room: {reason}")

    async def patiently(self, write: Callable[[], Coroutine[Any, Any, None]]) -> float:
        """Do it as soon as there is disk space; how many seconds it took then."""
        while True:
            began = time.monotonic()
            try:
                await write()
            except SpaceExhausted as error:
                self.exhausted(str(error))
                await asyncio.sleep(SPACE_RETRY_SECONDS)
            else:
                return time.monotonic() - began

    def look(self) -> None:
        """Measure; called about once a second."""
        reason = ""
        if self._folder is not None:
            try:
                status = os.statvfs(self._folder)
            except OSError as error:
                self.free_octets = None
                log.warning("The free space of %s cannot be read: %s", self._folder, error)
            else:
                self.free_octets = status.f_bavail * status.f_frsize
                if self.free_octets < self._minimum:
                    reason = f"{self.free_octets >> 20} MiB are free on the database's disk, the minimum is {self._minimum >> 20} MiB"
        if not reason and self._size_max and (self.database_octets or 0) > self._size_max:
            size = f"the database holds {(self.database_octets or 0) >> 20} MiB"
            reason = f"{size}, and SURETY_DATABASE_OCTETS_MAX allows {self._size_max >> 20} MiB"
        if reason or time.monotonic() >= self._hold_until:
            self._set(reason)

    def _set(self, reason: str) -> None:
        if bool(reason) != self.low:
            log.error("Producers wait: %s.", reason) if reason else log.info("There is space again; producers go on.")
        self.low, self.reason = bool(reason), reason
