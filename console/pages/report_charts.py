"""What happened over time, drawn: of all destinations that somebody may see, or of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from console.permissions import Sight
from console.selectors import over_time, reports
from console.selectors.over_time import Covered, Sums

from .charts import Series, Values


@dataclass(slots=True, frozen=True)
class Shown:
    words: str
    grain: str
    step: timedelta
    """Of a point."""
    length: timedelta


SPANS = {
    # A point for each minute would be more than a chart can show.
    "day": Shown("24 hours", "minute", timedelta(minutes=10), timedelta(hours=24)),
    "week": Shown("7 days", "hour", timedelta(hours=1), timedelta(days=7)),
    "year": Shown("a year", "day", timedelta(days=1), timedelta(days=365)),
}
DEATHS = (
    ("rejected", "rejected", "dead"), ("undeliverable", "given up", "in"), ("expired", "expired", "depth"), ("oldest", "oldest, for room", "out"),
    ("low_priority", "least important, for room", "rest"),
)  # fmt: skip
"""Outcomes of which messages die, what they are called, and their tone."""
CONSUMER_TONES = ("in", "out", "depth", "dead")
"""So many consumers are drawn, the busiest; the others together."""

Chart = tuple[str, str, Sequence[datetime], list[Series]]
"""What, its unit, when, and the lines."""


BY_HOUR = Shown("24 hours", "hour", timedelta(hours=1), timedelta(hours=24))
"""What SPANS has by the minute, for who sees a part of the broker: the sums of that are not ready, and by the minute there are sixty times as many."""


def charts(within: Sight, shown: Shown, destination: int | None) -> dict[str, Any]:
    """Raises TooSlow."""
    now = timezone.now()
    if destination is None and not within.all and shown.grain == "minute":
        shown = BY_HOUR
    over = over_time.span(shown.grain, shown.step, shown.length, now)
    known = over_time.covered(over.since, now)
    own = over_time.sums(over, destination=destination, within=within)
    subscribed = over_time.sums(over, destination=destination, subscriptions=True, within=within)
    told, of = _Told(over, known, own), _Told(over, known, subscribed)
    waiting = over_time.backlog(over, subscribed, known, over_time.waiting(destination, within))
    since = reports.flow_told_since(shown.grain)
    words, unit, whole = ("destinations, on average", "", 1) if destination is None else ("of the time", "%", 100)
    blocked = [Series(words, "dead", told.each_second("blocked_ms", since, whole / 1000))]
    found: list[Chart] = [
        ("Messages", "", over.times, [Series("accepted", "in", told.counts("accepted")), Series("acknowledged", "out", of.counts("accepted"))]),
        ("Octets", "/s", over.times, [Series(way, way, told.each_second(f"octets_{way}", since)) for way in ("in", "out")]),
        ("Under flow control", unit, over.times, blocked),
        ("Backlog", "", over.times, [Series("waiting", "depth", waiting)]),
        ("Wait for a consumer", "ms", over.times, of.percentiles("wait")),
        ("With a consumer, to acknowledged", "ms", over.times, of.percentiles("held")),
        ("Accepted to acknowledged", "ms", over.times, of.percentiles("life")),
        ("Redelivered", "", over.times, [Series("redelivered", "depth", of.each(lambda one: max(one.get("offered", 0) - one.get("delivered", 0), 0)))]),
        ("Dead", "", over.times, of.deaths()),
    ]
    if destination is not None and shown.grain != "day":
        found.append(_consumers(destination, shown, known, now))
    return {"charts": found, "has_gaps": known.has_gaps}


@dataclass(slots=True, frozen=True)
class _Told:
    """The sums as lines over all times. What did not happen is 0 where the audits know of it, and unknown elsewhere."""

    over: over_time.Span
    known: Covered
    sums: Sums

    def each(self, value: Callable[[dict[str, int]], float | None]) -> list[float | None]:
        step = self.over.step
        return [value(self.sums.get(time, {})) if time in self.sums or self.known.knows(time, step) else None for time in self.over.times]

    def counts(self, name: str) -> Values:
        return self.each(lambda one: one.get(name, 0))

    def each_second(self, name: str, since: datetime | None, unit: float = 1) -> Values:
        """How much of it, times `unit`, a second had on average. The audits tell of it `since` then; None: not yet."""
        step, found = self.over.step, list[float | None]()
        for time, count in zip(self.over.times, self.each(lambda one: reports.flow(one, name)), strict=True):
            seconds = max(min(step, self.over.until - time).total_seconds(), 1)
            is_known = count is not None and since is not None and time + step > since
            found.append(max(count, 0) * unit / seconds if is_known else None)
        return found

    def percentiles(self, time: str) -> list[Series]:
        found = [reports.percentiles(self.sums.get(each, {}), time) or {} for each in self.over.times]
        return [Series("half", "in", [each.get(50) for each in found]), Series("99 of 100", "dead", [each.get(99) for each in found])]

    def deaths(self) -> list[Series]:
        """Those reasons that there were."""
        met = {name for one in self.sums.values() for name in one}
        return [Series(words, tone, self.counts(name)) for name, words, tone in DEATHS if name in met] or [Series("dead", "dead", self.counts("rejected"))]


def _consumers(destination: int, shown: Shown, known: Covered, now: datetime) -> Chart:
    """How evenly they were served. What each was offered is counted by the hour."""
    over = over_time.span("hour", timedelta(hours=1), shown.length, now)
    told = _Told(over, known, over_time.sums(over, destination=destination, subscriptions=True, links=True))
    total: dict[str, int] = {}
    for one in told.sums.values():
        for name, number in one.items():
            total[name] = total.get(name, 0) + number
    busiest = sorted(total, key=lambda name: (-total[name], name))
    first, others = busiest[: len(CONSUMER_TONES)], busiest[len(CONSUMER_TONES) :]
    lines = [Series(_consumer(name), tone, told.counts(name)) for name, tone in zip(first, CONSUMER_TONES, strict=False)]
    if others:
        lines.append(Series(f"{len(others)} others", "rest", told.each(lambda one: sum(one.get(name, 0) for name in others))))
    return ("Deliveries of each consumer, by the hour", "", over.times, lines)


def _consumer(name: str) -> str:
    """A link is known by its number in its term."""
    _, epoch, number = name.split("/")
    return f"link {number} of term {epoch}"
