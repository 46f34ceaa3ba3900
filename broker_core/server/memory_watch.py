"""Tells the node's log how full the memory for messages is, when it is fuller than it was since there was enough."""

from __future__ import annotations

import logging

from broker_core.engine.memory import MemoryLevel

log = logging.getLogger("surety.memory")

SENTENCES = {
    MemoryLevel.YELLOW: "messages that are not persistent go to disk as they come, and best effort is dropped",
    MemoryLevel.ORANGE: "pages are small, and what idle consumers had ahead is forgotten",
    MemoryLevel.RED: "nothing more is kept at hand",
}


class MemoryWatch:
    def __init__(self) -> None:
        self._told = MemoryLevel.GREEN
        """The highest since it was green: who is at the border of two levels must not fill the log."""

    def look(self, level: int, octets: int, octets_max: int) -> None:
        """Called about once a second."""
        level = MemoryLevel(level)
        if level is MemoryLevel.GREEN:
            if self._told is not MemoryLevel.GREEN:
                log.info("The memory for messages is green again.")
            self._told = level
        elif level > self._told:
            log.warning("The memory for messages is %s, %d of %d MiB: %s.", level.name.lower(), octets >> 20, octets_max >> 20, SENTENCES[level])
            self._told = level
