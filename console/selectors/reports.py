"""What the data pipeline has found out: audits with their violations, and what happened over time. Nothing here runs anything."""

import json
import re
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
_KEY = re.compile(r"(?P<at>[0-9]{1,11})-(?P<of>[0-9]{1,9})-(?P<in>[0-9]{1,9})")
"""Of a point: when, and of which destination and subscription."""
_FLOW_TOLD_SINCE = """
    SELECT f.start FROM surety.pipeline_rollup f
     WHERE f.shard = 0 AND f.grain = %(grain)s AND f.destination = 0 AND f.subscription = 0 AND f.counts ?| ARRAY['octets_in', 'blocked_ms']
     ORDER BY f.start LIMIT 1"""
"""Earlier versions rolled up neither what came and left nor how long producers waited: before that it is unknown."""
_AUDITS = """
    SELECT audit AS number, run, at, from_number, to_number, from_at, to_at, since, destination, complete, proven, unproven, violations, milliseconds,
           kinds::text AS kinds, fates::text AS fates, discards::text AS discards, gaps::text AS gaps
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
    kinds: dict[str, dict[str, int]]
    """Of each kind of violation all there are, as `ranges` and `messages`: rows of their own are the first of each kind only."""
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
    destination: int | None
    """None: it is of the ledger as a whole."""
    address: str | None
    is_there: bool
    """The destination is."""
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
    is_flow_known: bool
    """The audits told of octets and of flow control by then."""

    @property
    def redelivered(self) -> int:
        """Deliveries that were not the first of their message."""
        return max(self.counts.get("offered", 0) - self.counts.get("delivered", 0), 0)

    def percentiles(self, time: str) -> dict[int, int] | None:
        """In ms, of one of TIMES; None: nothing was measured."""
        return percentiles(self.counts, time)

    @property
    def octets_in(self) -> int | None:
        """Of stored messages that came; None: unknown, or of a subscription."""
        return self._flow("octets_in")

    @property
    def octets_out(self) -> int | None:
        return self._flow("octets_out")

    @property
    def flow_control_ms(self) -> int | None:
        """How long producers waited for room, in ms; None: unknown, or of a subscription."""
        return self._flow("blocked_ms")

    def _flow(self, name: str) -> int | None:
        return flow(self.counts, name) if self.is_flow_known and not self.subscription else None


def audits(before: int = 0, limit: int = PAGE_ROWS) -> tuple[list[Audit], int]:
    """At most `limit` older than audit `before` (0: the newest); and the key of the next page, 0 if this is the last."""
    found = rows(f"{_AUDITS} AND (%(before)s = 0 OR audit < %(before)s) ORDER BY audit DESC LIMIT %(limit)s", {"before": before, "limit": limit + 1})
    shown = [_audit(row) for row in found[:limit]]
    return shown, shown[-1].number if len(found) > limit else 0


def audit(number: int) -> Audit | None:
    found = rows(f"{_AUDITS} AND audit = %(number)s", {"number": number})
    return _audit(found[0]) if found else None


def _audit(row: Mapping[str, Any]) -> Audit:
    return Audit(**{**row, **{name: json.loads(row[name]) for name in ("kinds", "fates", "discards", "gaps")}})


def violations(audit: int, after: int = 0, limit: int = PAGE_ROWS) -> tuple[list[Violation], int]:
    """At most `limit` beyond violation `after`, in order; and the key of the next page, 0 if this is the last."""
    found = rows(
        "SELECT violation AS number, kind, reason, destination, address, subscription, lane, first, last, messages, accepted, offered, settled, outcome, "
        "evidence::text AS evidence, EXISTS (SELECT FROM surety.destination d WHERE d.shard = 0 AND d.destination = v.destination "
        "AND d.destroyed_at IS NULL) AS is_there "
        "FROM surety.pipeline_violation v WHERE audit = %(audit)s AND violation > %(after)s ORDER BY violation LIMIT %(limit)s",
        {"audit": audit, "after": after, "limit": limit + 1},
    )
    shown = [Violation(**{**row, "evidence": json.loads(row["evidence"])}) for row in found[:limit]]
    return shown, shown[-1].number if len(found) > limit else 0


def listed(audit: int) -> dict[str, int]:
    """Of each kind how many violations are rows of their own."""
    found = rows("SELECT kind, count(*) AS number FROM surety.pipeline_violation WHERE audit = %(audit)s GROUP BY kind", {"audit": audit})
    return {row["kind"]: row["number"] for row in found}


def points(
    grain: str, since: datetime, until: datetime, *, destination: int | None = None, subscriptions: bool = False, after: str = "", limit: int = PAGE_ROWS,
    within: Sight = EVERYTHING,
) -> tuple[list[Point], str]:  # fmt: skip
    """At most `limit` in order of time, beyond the key `after`, of all destinations or one; and the key of the next page, empty if this is the last.
    `subscriptions`: theirs, else what is the destinations' own. Raises ValueError: `after` is no key."""
    seen, parameters = within.condition("coalesce(d.address, '')")
    one = "AND r.destination = %(destination)s" if destination is not None else "AND r.destination > 0"
    beyond = ""
    if after:
        if (key := _KEY.fullmatch(after)) is None:
            raise ValueError(after)
        beyond = "AND (r.start, r.destination, r.subscription) > (to_timestamp(%(at)s), %(of)s, %(in)s)"
        parameters = {**parameters, **{name: int(text) for name, text in key.groupdict().items()}}
    found = rows(
        f"""SELECT r.start, d.address, r.destination, r.subscription, r.counts::text AS counts,
                   coalesce(r.start >= ({_FLOW_TOLD_SINCE}), false) AS is_flow_known
              FROM surety.pipeline_rollup r LEFT JOIN surety.destination d USING (shard, destination)
             WHERE r.shard = 0 AND r.grain = %(grain)s AND r.start >= %(since)s AND r.start < %(until)s AND (r.subscription > 0) = %(subscriptions)s
               AND {seen} {one} {beyond} ORDER BY r.start, r.destination, r.subscription LIMIT %(limit)s""",
        {"grain": grain, "since": since, "until": until, "destination": destination, "subscriptions": subscriptions, "limit": limit + 1, **parameters},
    )
    shown = [Point(**{**row, "counts": json.loads(row["counts"])}) for row in found[:limit]]
    last = shown[-1] if len(found) > limit else None
    return shown, f"{int(last.start.timestamp())}-{last.destination}-{last.subscription}" if last else ""


def flow(counts: Mapping[str, int], name: str) -> int | None:
    """octets_in, octets_out or blocked_ms; None: what has come there is not told, as the commits are of an earlier version."""
    return None if "octets" in counts and "octets_in" not in counts else counts.get(name, 0)


def flow_told_since(grain: str) -> datetime | None:
    """From when on the audits tell of octets that came and left, and of flow control; None: they have not yet."""
    found = rows(_FLOW_TOLD_SINCE, {"grain": grain})
    return found[0]["start"] if found else None


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
