"""Selective consumers of queues, and their scans."""

from __future__ import annotations

from typing import Any

from broker_core.engine import paging, scanning, selection
from broker_core.engine.cursor import Cursor

from .plant import Plant


def scans_skip_what_came_back(plant: Plant) -> None:
    """A scan begins with what was never delivered, wherever else something waits."""
    right = selection.Scan.__init__

    def begin(self: Any, *of: Any) -> None:
        right(self, *of)
        self.unseen.clear()

    plant.put(selection.Scan, "__init__", begin)


def page_brings_what_a_scan_took(plant: Plant) -> None:
    """A page delivers once more what a selective consumer holds."""
    right = paging._take_page

    def take_page(shard: Any, cursor: Any, *what: Any, **how: Any) -> None:
        gone, cursor.gone = cursor.gone, {}
        right(shard, cursor, *what, **how)
        cursor.gone = {position: None for position in gone if position >= cursor.loaded}

    plant.put(paging, "_take_page", take_page)


def candidates_are_not_asked_again(plant: Plant) -> None:
    """What a scan found is delivered although somebody else took it meanwhile."""
    right = Cursor.holds

    def holds(self: Any, message: Any) -> bool:
        return right(self, message) or not self.progress.is_settled(message.position)

    plant.put(Cursor, "holds", holds)


def scans_pass_what_finds_no_room(plant: Plant) -> None:
    """A candidate too many is forgotten."""
    right = scanning._add

    def add(shard: Any, scan: Any, message: Any) -> bool:
        right(shard, scan, message)
        return True

    plant.put(scanning, "_add", add)


BUGS = (
    scans_skip_what_came_back,
    page_brings_what_a_scan_took,
    candidates_are_not_asked_again,
    scans_pass_what_finds_no_room,
)
