"""What happened over time, as charts need it: summed up by PostgreSQL, with where the audits know of it and where they do not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from console.permissions import EVERYTHING, Sight

from .rows import rows, rows_within

SECONDS = 3.0
"""For one look at the sums: they are as many as there are destinations, subscriptions and consumers."""
WAITING = ("stored", "held")
"""Fates of messages that wait: see pipeline.transforms.audit."""
_SUMS = """
    SELECT date_bin(%(step)s, r.start, timestamptz 'epoch') AS start, c.name, sum(c.number::int8)::int8 AS number
      FROM surety.pipeline_rollup r LEFT JOIN surety.destination d USING (shard, destination), jsonb_each_text(r.counts) AS c (name, number)
     WHERE r.shard = 0 AND r.grain = %(grain)s AND r.start >= %(since)s AND r.start < %(until)s AND (r.subscription > 0) = %(subscriptions)s
       AND (c.name LIKE 'link/%%') = %(links)s AND {of} GROUP BY 1, 2"""
_COVERED = """
    SELECT from_number, to_number, from_at, to_at, gaps <> '[]' AS has_gaps FROM surety.pipeline_audit
     WHERE shard = 0 AND state <> '' AND from_at IS NOT NULL AND to_at >= %(since)s ORDER BY to_number"""

Sums = dict[datetime, dict[str, int]]


@dataclass(slots=True, frozen=True)
class Span:
    """Equal steps from `since` on; the last one may not be over."""

    grain: str
    step: timedelta
    since: datetime
    until: datetime

    @property
    def times(self) -> list[datetime]:
        return [self.since + self.step * number for number in range((self.until - self.since) // self.step + 1)]


def span(grain: str, step: timedelta, length: timedelta, until: datetime) -> Span:
    """The whole steps, counted from 1970 on, that a time of this length before `until` touches."""
    since = until - length
    return Span(grain, step, since - (since - datetime.fromtimestamp(0, UTC)) % step, until)


@dataclass(slots=True, frozen=True)
class Covered:
    """The times of which the audits know what happened."""

    times: Sequence[tuple[datetime, datetime]] = ()
    has_gaps: bool = False
    """In them commits are missing, and what those said is in no sum."""

    def knows(self, start: datetime, step: timedelta) -> bool:
        """At least of a part of it."""
        return any(begin < start + step and start <= end for begin, end in self.times)


def sums(over: Span, *, destination: int | None = None, subscriptions: bool = False, links: bool = False, within: Sight = EVERYTHING) -> Sums:
    """By step and name, see pipeline.transforms.rollups: of one destination, or of all that may be seen. `subscriptions`: of theirs, else what is the
    destinations' own; `links`: what consumers were offered instead, by hour. Raises TooSlow."""
    seen, parameters = within.condition("d.address")
    every = "r.destination = 0" if within.all else f"r.destination > 0 AND {seen}"
    of = "r.destination = %(destination)s" if destination is not None else every
    told = {"grain": over.grain, "step": over.step, "since": over.since, "until": over.until, "subscriptions": subscriptions, "links": links}
    found: Sums = {}
    for row in rows_within(SECONDS, _SUMS.format(of=of), {**told, "destination": destination, **parameters}):
        found.setdefault(row["start"], {})[row["name"]] = row["number"]
    return found


def covered(since: datetime, now: datetime) -> Covered:
    """Audits that go on from each other as one time; up to now, if nothing was committed after the last one."""
    times: list[tuple[datetime, datetime]] = []
    upto, has_gaps = None, False
    for row in rows(_COVERED, {"since": since}):
        if upto is not None and row["from_number"] <= upto + 1:
            times[-1] = (times[-1][0], max(times[-1][1], row["to_at"]))
        else:
            times.append((row["from_at"], row["to_at"]))
        upto, has_gaps = row["to_number"], has_gaps or row["has_gaps"]
    [checkpoint] = rows("SELECT number FROM surety.checkpoint WHERE shard = 0") or [{"number": None}]
    if times and upto is not None and checkpoint["number"] is not None and checkpoint["number"] <= upto:
        times[-1] = (times[-1][0], max(times[-1][1], now))
    return Covered(times, has_gaps)


def waiting(destination: int | None = None, within: Sight = EVERYTHING) -> int | None:
    """Messages that waited at the end of the last audit, once for each subscription; None: there was none."""
    found = rows("SELECT fates::text AS fates FROM surety.pipeline_audit WHERE shard = 0 AND state <> '' ORDER BY audit DESC LIMIT 1")
    if not found:
        return None
    told: list[Mapping[str, Any]] = json.loads(found[0]["fates"])
    ours = [one for one in told if destination in (None, one["destination"]) and (within.all or within.shows(one["address"] or ""))]
    return sum(one["messages"] for one in ours if one["fate"] in WAITING)


def backlog(over: Span, moved: Sums, known: Covered, at_end: int | None) -> list[int | None]:
    """What waited at the end of each step: back from what waited `at_end` of the last time that is known. None: it is not known, or what is told of the time
    after it cannot be all."""
    series: list[int | None] = []
    last = known.times[-1:]
    for start in reversed(over.times):
        is_known = at_end is not None and any(begin < start + over.step and start <= end for begin, end in last)
        series.append(at_end if is_known and at_end >= 0 else None)
        if is_known:
            told = moved.get(start, {})
            at_end = at_end - told.get("arrived", 0) + told.get("left", 0)
    return series[::-1]
