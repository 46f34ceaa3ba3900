"""What the data pipeline has found out: audits with their violations, and what happened over time. Nothing here runs anything."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from console.permissions import EVERYTHING, Sight

from .rows import rows

PAGE_ROWS = 100
GRAINS = ("minute", "hour", "day")
STEPS = 4
"""Buckets of a histogram between a time and twice that time (pipeline.transforms.rollups)."""
TIMES = ("wait", "held", "life")
"""Accepted to first offered; last offered to acknowledged; accepted to acknowledged."""
PERCENTILES = (50, 95, 99)
DEAD = ("rejected", "undeliverable", "oldest", "low_priority")
"""Outcomes after which a message is dead, beside expired."""
_AUDITS = """
    SELECT audit AS number, run, at, from_number, to_number, from_at, to_at, since, destination, complete, proven, unproven, violations, milliseconds,
           fates::text AS fates, discards::text AS discards, gaps::text AS gaps
      FROM surety.pipeline_audit WHERE shard = 0"""


@dataclass(slots=True, frozen=True)
class Audit:
    """Of one run. It is about the commits `from_number` to `to_number`."""

    number: int
    run: int
    at: datetime
    from_number: int
    to_number: int
    from_at: datetime | None
    to_at: datetime | None
    since: datetime | None
    """Only messages accepted since then; None: all that was new."""
    destination: int | None
    complete: bool
    """Nothing had happened before what the audits began with."""
    proven: int
    """Messages of which the fate is proven, once for every subscription."""
    unproven: int
    """Those of which a missing commit may have said what is missing."""
    violations: int
    """Ranges of messages."""
    milliseconds: int
    fates: list[dict[str, Any]]
    discards: list[dict[str, Any]]
    gaps: list[list[Any]]

    @property
    def by_fate(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for one in self.fates:
            if one["fate"] is not None:
                total[one["fate"]] = total.get(one["fate"], 0) + one["messages"]
        return total


@dataclass(slots=True, frozen=True)
class Violation:
    """A range of neighbours in one lane and subscription; of a break in the ledger `first` to `last` are commits."""

    number: int
    kind: str
    reason: str
    address: str | None
    subscription: int | None
    lane: int | None
    first: int | None
    last: int | None
    messages: int | None
    accepted: int | None
    offered: int | None
    settled: int | None
    outcome: str | None
    evidence: list[dict[str, Any]]
    """The events of the ledger that it follows from."""


@dataclass(slots=True, frozen=True)
class Point:
    """What happened in one minute, hour or day to a destination (subscription 0), or in one of its subscriptions. What is not there did not happen."""

    start: datetime
    address: str | None
    destination: int
    subscription: int
    counts: dict[str, int]

    @property
    def redelivered(self) -> int:
        """Deliveries that were not the first of their message."""
        return max(self.counts.get("offered", 0) - self.counts.get("delivered", 0), 0)

    @property
    def dead(self) -> dict[str, int]:
        """By outcome."""
        return {name: self.counts[name] for name in (*DEAD, "expired") if name in self.counts}

    def percentiles(self, time: str) -> dict[int, int] | None:
        """In ms, of one of TIMES; None: nothing was measured."""
        return percentiles(self.counts, time)

    @property
    def flow_control_ms(self) -> None:
        """How long producers waited for room: no ledger tells, so it is unknown."""
        return None


def audits(before: int = 0, limit: int = PAGE_ROWS) -> tuple[list[Audit], int]:
    """At most `limit` older than audit `before` (0: the newest); and the key of the next page, 0 if this is the last."""
    found = rows(f"{_AUDITS} AND (%(before)s = 0 OR audit < %(before)s) ORDER BY audit DESC LIMIT %(limit)s", {"before": before, "limit": limit + 1})
    shown = [_audit(row) for row in found[:limit]]
    return shown, shown[-1].number if len(found) > limit else 0


def audit(number: int) -> Audit | None:
    found = rows(f"{_AUDITS} AND audit = %(number)s", {"number": number})
    return _audit(found[0]) if found else None


def _audit(row: Mapping[str, Any]) -> Audit:
    return Audit(**{**row, **{name: json.loads(row[name]) for name in ("fates", "discards", "gaps")}})


def violations(audit: int, after: int = 0, limit: int = PAGE_ROWS) -> tuple[list[Violation], int]:
    """At most `limit` beyond violation `after`, in order; and the key of the next page, 0 if this is the last."""
    found = rows(
        "SELECT violation AS number, kind, reason, address, subscription, lane, first, last, messages, accepted, offered, settled, outcome, "
        "evidence::text AS evidence FROM surety.pipeline_violation WHERE audit = %(audit)s AND violation > %(after)s ORDER BY violation LIMIT %(limit)s",
        {"audit": audit, "after": after, "limit": limit + 1},
    )
    shown = [Violation(**{**row, "evidence": json.loads(row["evidence"])}) for row in found[:limit]]
    return shown, shown[-1].number if len(found) > limit else 0


def points(
    grain: str, since: datetime, until: datetime, *, destination: int | None = None, subscriptions: bool = False, limit: int = 10_000,
    within: Sight = EVERYTHING,
) -> list[Point]:  # fmt: skip
    """In order of time, of all destinations or one. `subscriptions`: theirs, else what is the destinations' own."""
    seen, parameters = within.condition("coalesce(d.address, '')")
    one = "AND r.destination = %(destination)s" if destination is not None else ""
    found = rows(
        f"""SELECT r.start, d.address, r.destination, r.subscription, r.counts::text AS counts
              FROM surety.pipeline_rollup r LEFT JOIN surety.destination d USING (shard, destination)
             WHERE r.shard = 0 AND r.grain = %(grain)s AND r.start >= %(since)s AND r.start < %(until)s AND (r.subscription > 0) = %(subscriptions)s
               AND {seen} {one} ORDER BY r.start, r.destination, r.subscription LIMIT %(limit)s""",
        {"grain": grain, "since": since, "until": until, "destination": destination, "subscriptions": subscriptions, "limit": limit, **parameters},
    )
    return [Point(**{**row, "counts": json.loads(row["counts"])}) for row in found]


def backlog(of: Sequence[Point], before: int = 0) -> list[tuple[datetime, int]]:
    """What waited at the end of each point's time, of points of subscriptions; `before`: at their beginning."""
    series: dict[datetime, int] = {}
    for point in of:
        before += point.counts.get("arrived", 0) - point.counts.get("left", 0)
        series[point.start] = before
    return list(series.items())


def percentiles(counts: Mapping[str, int], time: str, wanted: Sequence[int] = PERCENTILES) -> dict[int, int] | None:
    """Read from a histogram, right to a tenth. None: it is empty."""
    buckets = sorted((int(name.partition("/")[2]), count) for name, count in counts.items() if name.startswith(f"{time}/"))
    total = sum(count for _, count in buckets)
    if not total:
        return None
    found: dict[int, int] = {}
    so_far = 0
    for bucket, count in buckets:
        so_far += count
        for percent in wanted:
            if percent not in found and so_far * 100 >= total * percent:
                found[percent] = round(2 ** (bucket / STEPS)) - 1
    return found
