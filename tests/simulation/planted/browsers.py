"""Browsers."""

from __future__ import annotations

from typing import Any

from broker_core.engine import browsing, walk
from broker_core.engine.progress import Progress

from .plant import Plant


def browser_consumes(plant: Plant) -> None:
    """What was shown is settled."""
    right = browsing._take_page

    def take_page(browser: Any, page: Any) -> list[Any]:
        progress = browser.walk.lanes[0][0].progress
        messages = right(browser, page)
        for message in messages:
            progress.settle(message.position, message.position)
        return messages

    plant.put(browsing, "_take_page", take_page)


def browser_shows_what_is_over(plant: Plant) -> None:
    """The rows of a page are shown whatever was settled since, or before."""
    right = browsing._take_page

    def take_page(browser: Any, page: Any) -> list[Any]:
        before = Progress.is_settled
        Progress.is_settled = lambda _self, _position: False  # type: ignore[method-assign]
        try:
            return right(browser, page)
        finally:
            Progress.is_settled = before  # type: ignore[method-assign]

    plant.put(browsing, "_take_page", take_page)


def browser_skips_a_row(plant: Plant) -> None:
    """Each page begins one row too late."""
    right = walk.Walk.interval

    def interval(self: Any, rows: int) -> tuple[int, int]:
        first, last = right(self, rows)
        return min(first + 1, last), last

    plant.put(walk.Walk, "interval", interval)


BUGS = (
    browser_consumes,
    browser_shows_what_is_over,
    browser_skips_a_row,
)
