"""One call that sends a message many times: copies of it at once or after its delay, every so often, or at the instants of a cron expression. All of them are
sent by that call, as messages of their own that are delayed like any other: so they are listed, cancelled and rescheduled one by one, and none is made later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from celery.schedules import crontab  # kept up with the schedules of the tasks, and here already: no other library of cron is

from console.instants import milliseconds

COPIES_MAX = 1_000
DUE_MS_MAX = 10 * 365 * 86_400_000
"""Ten years: as far as a delay goes."""
TOO_LATE = "the last of them would be due in more than ten years"
CRON_CHARACTERS_MAX = 255
MONTHS, DAYS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec", "sun|mon|tue|wed|thu|fri|sat"
FIELDS = {"minute": "", "hour": "", "day_of_month": "", "month_of_year": f"|{MONTHS}", "day_of_week": f"|{DAYS}"}
"""Of a cron expression, in its order, with the names that each knows beside numbers."""


class InvalidRepetition(ValueError):
    """It cannot be sent so often, or then; the message is a sentence that says why."""


@dataclass(slots=True, frozen=True)
class Repetition:
    count: int = 1
    """Copies at each instant."""
    period_ms: int | None = None
    repeat: int | None = None
    """How many times more."""
    cron: str = ""
    """minute hour day-of-month month day-of-week, in UTC; a day must fit both its fields."""

    @property
    def told(self) -> dict[str, Any]:
        """For the audit; empty: it is sent once."""
        told = {"count": self.count, "period_ms": self.period_ms, "repeat": self.repeat, "cron": self.cron}
        return {name: value for name, value in told.items() if value and (name, value) != ("count", 1)}


ONCE = Repetition()


def lags(asked: Repetition, delay_ms: int, now: int) -> list[int]:
    """By how many ms after this call each time of sending comes: as if it were called again then, with the same delay. Raises InvalidRepetition."""
    times = (asked.repeat or 0) + 1
    _check(asked, times)
    if delay_ms > DUE_MS_MAX:
        raise InvalidRepetition(TOO_LATE)
    if asked.cron:
        begin = now + delay_ms
        found = [milliseconds(at) - begin for at in islice(_instants(asked.cron, begin), times)]
    else:
        found = [number * (asked.period_ms or 0) for number in range(times)]
    if delay_ms + found[-1] > DUE_MS_MAX:
        raise InvalidRepetition(TOO_LATE)
    return found


def _check(asked: Repetition, times: int) -> None:
    if asked.count < 1 or times < 1:
        raise InvalidRepetition("count is 1 or more, repeat 0 or more")
    if asked.count * times > COPIES_MAX:
        raise InvalidRepetition(f"{asked.count:,} copies {times:,} times are more than the {COPIES_MAX:,} messages that one call sends")
    if asked.cron and asked.period_ms is not None:
        raise InvalidRepetition("give a period or a cron expression, not both")
    if asked.period_ms is not None and (asked.repeat is None or asked.period_ms < 1):
        raise InvalidRepetition("a period is 1 ms or more, and goes with repeat: how many times more")
    if asked.repeat and asked.period_ms is None and not asked.cron:
        raise InvalidRepetition("repeat goes with a period or a cron expression: for copies at once there is count")


def _instants(cron: str, after: int) -> Iterator[datetime]:
    """Those that come after the instant in ms, without end; the first that is too far is given as well, as the last. Raises InvalidRepetition."""
    schedule = _read(cron)
    at, end = datetime.fromtimestamp(after / 1000, UTC), after + DUE_MS_MAX
    while milliseconds(at) <= end:
        last, delta, _ = schedule.remaining_delta(at, tz=UTC)
        at = last + delta
        yield at


def _read(cron: str) -> crontab:
    fields = cron.lower().split()
    if len(fields) != len(FIELDS) or len(cron) > CRON_CHARACTERS_MAX:
        raise InvalidRepetition("cron has five fields, minute hour day-of-month month day-of-week, such as 0 9 * * mon-fri")
    for text, (name, names) in zip(fields, FIELDS.items(), strict=True):
        value = f"(?:[0-9]{{1,2}}{names})"
        part = rf"(?:{value}|(?:\*|{value}-{value})(?:/0?[1-9][0-9]?)?)"
        if not re.fullmatch(f"{part}(?:,{part})*", text):  # the library reads what it can and passes over the rest
            raise InvalidRepetition(f"cron: {text} is no {name.replace('_', ' ')}: write *, 5, 1-5, */15 or several with commas")
    try:
        return crontab(**dict(zip(FIELDS, fields, strict=True)))
    except ValueError as error:
        raise InvalidRepetition(f"cron: {str(error)[:200].rstrip('.')}") from error
