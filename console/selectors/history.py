"""What was counted in the last minutes to 24 hours, step by step. None: nobody noted it, which is not 0."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

from console.services.history import ALL, SPANS, Span

from .rows import rows

Values = list[float | None]
Time = TypeVar("Time", datetime, int)
"""As such, or in seconds since 1970."""
GAUGES, RATES = ("depth", "unsettled"), ("accepted", "settled", "dead")
LATE_STEPS_MAX = 4
"""A sample or some may be missed by a busy machine: what is between two samples is then spread over the steps. More of them are a gap."""


@dataclass(slots=True, frozen=True)
class History:
    times: list[datetime]
    depth: Values
    unsettled: Values
    accepted: Values
    """Messages a second, as are the others below."""
    settled: Values
    dead: Values


class _Sample(NamedTuple):
    """A tuple, as a list has some thousand of them."""

    depth: int
    unsettled: int
    accepted: int
    settled: int
    dead: int


class _Count(NamedTuple):
    """What a spark needs of it."""

    accepted: int


def of_all(span: Span) -> History:
    """One query."""
    step = span.step_seconds
    times = _times(span, step, datetime.now(UTC))
    return _history(times, step, _samples([ALL], span, times[0]).get(ALL, {}), None)


def of_destination(number: int, span: Span) -> History:
    """One query. Between two samples of a destination nothing has changed, if samples were noted at all."""
    step = span.destination_step_seconds
    times = _times(span, step, datetime.now(UTC))
    found = _samples([ALL, number], span, times[0])
    return _history(times, step, found.get(number, {}), set(found.get(ALL, {})))


def sparks(numbers: Collection[int]) -> dict[int, Values]:
    """What came in of each, in messages a second, over the last 15 minutes. One query, and a row for each: there are thousands of samples."""
    span = SPANS[0]
    step = span.destination_step_seconds
    times = [int(time.timestamp()) for time in _times(span, step, datetime.now(UTC))]
    query = """
        SELECT destination, array_agg(extract(epoch FROM at)::int8) AS times, array_agg(accepted) AS accepted FROM console_sample
         WHERE destination = ANY(%(numbers)s) AND span = %(span)s AND at >= to_timestamp(%(since)s) GROUP BY destination"""
    told = rows(query, {"numbers": [ALL, *numbers], "span": span.number, "since": times[0]})
    found = {row["destination"]: dict(zip(row["times"], map(_Count, row["accepted"]), strict=True)) for row in told}
    noted = set(found.get(ALL, {}))
    return {number: _series(times, step, found.get(number, {}), noted, (), ("accepted",))["accepted"] for number in numbers}


def _times(span: Span, step: int, now: datetime) -> list[datetime]:
    """Ends of the steps; the last one is over. One more than is shown is before them, for the first rate."""
    last = now.timestamp() // step * step - (step if now.timestamp() % step < SPANS[0].step_seconds else 0)
    return [datetime.fromtimestamp(last - (span.seconds // step - number) * step, UTC) for number in range(span.seconds // step + 1)]


def _samples(numbers: Sequence[int], span: Span, since: datetime) -> dict[int, dict[datetime, _Sample]]:
    found: dict[int, dict[datetime, _Sample]] = {}
    query = """
        SELECT destination, at, depth, unsettled, accepted, settled, dead FROM console_sample
         WHERE destination = ANY(%(numbers)s) AND span = %(span)s AND at >= %(since)s ORDER BY destination, at"""
    for row in rows(query, {"numbers": list(numbers), "span": span.number, "since": since}):
        number, at = row.pop("destination"), row.pop("at")
        found.setdefault(number, {})[at] = _Sample(**row)
    return found


def _history(times: list[datetime], step: int, found: dict[datetime, _Sample], noted: set[datetime] | None) -> History:
    return History(times[1:], **_series(times, step, found, noted, GAUGES, RATES))


def _series(
    times: Sequence[Time], step: int, found: Mapping[Time, Any], noted: set[Time] | None, gauges: Sequence[str], rates: Sequence[str]
) -> dict[str, Values]:
    """`found`: samples, with as much as is wanted. `noted`: when anything was noted, so that a step without a sample of this one means that nothing has
    changed; None: it means nothing is known. `gauges`, `rates`: which of GAUGES and RATES are wanted."""
    points = [found.get(time) for time in times]
    if noted is not None:
        last = None
        for place, time in enumerate(times):
            if points[place] is None and last is not None and time in noted:
                points[place] = last
            last = points[place] or (last if time in noted else None)
    shown: dict[str, Values] = {name: [getattr(point, name) if point else None for point in points[1:]] for name in gauges}
    for name in rates:
        shown[name] = [None] * (len(times) - 1)
    known = [place for place, point in enumerate(points) if point is not None]
    for before, after in pairwise(known):
        if after - before <= LATE_STEPS_MAX:
            _bridge(points, before, after, step, shown, gauges, rates)
    if noted is not None:
        _rest_before_the_first(times, points, noted, shown, rates)
    return shown


def _rest_before_the_first(
    times: Sequence[Time], points: Sequence[Any], noted: set[Time], shown: dict[str, Values], rates: Sequence[str]
) -> None:
    """What has not been sampled since the span began did not change until then."""
    first = next((place for place, point in enumerate(points) if point is not None), len(points))
    for place in range(1, min(first, len(points))):
        if times[place] in noted:
            for name in rates:
                shown[name][place - 1] = 0.0


def _bridge(
    points: Sequence[Any], before: int, after: int, step: int, shown: dict[str, Values], gauges: Sequence[str], rates: Sequence[str]
) -> None:
    """What happened between two samples, evenly over the steps between them. A counter that began anew says nothing."""
    first, last = points[before], points[after]
    for name in rates:
        difference = getattr(last, name) - getattr(first, name)
        for place in range(before, after):
            shown[name][place] = difference / ((after - before) * step) if difference >= 0 else None
    for name in gauges:
        for place in range(before, after - 1):
            shown[name][place] = getattr(first, name)
