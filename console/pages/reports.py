"""What the data pipeline has found out: its runs, the proof of delivery, and what happened over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from console.permissions import LOOK, may, sight
from console.selectors import destinations, pipeline, reports
from console.services.audit import look

from .actor import actor_of
from .asked import asked
from .charts import Series
from .replays import tabs

SPANS = {"day": ("24 hours", "minute", timedelta(hours=24)), "week": ("7 days", "hour", timedelta(days=7)), "year": ("a year", "day", timedelta(days=365))}
MINUTES_A_POINT = 10
"""Of 24 hours: a point for each minute would be more than a chart can show."""
RUNS_SHOWN, AUDITS_SHOWN, ROWS_MAX = 5, 10, 50_000
DIGITS_MAX = 18
TONES = {"running": "info", "done": "good", "failed": "bad", "died": "warn"}


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Of all destinations that may be seen, or of one (`destination`, its number)."""
    actor, wanted = actor_of(request), asked(request, choices={"span": tuple(SPANS)}, texts=("destination",))
    it = None
    if wanted["destination"]:
        it = destinations.by_number(_whole(wanted["destination"]), sight(actor))
        if it is None:
            raise Http404("There is no such destination; it may have been destroyed meanwhile.")
    context: dict[str, Any] = {"asked": wanted, "of": it, "spans": [(name, words) for name, (words, _, _) in SPANS.items()]}
    if may(actor, LOOK):
        context |= {"pipeline": pipeline.pipeline(), "runs": [(run, TONES.get(run.state, "")) for run in pipeline.page(limit=RUNS_SHOWN)[0]]}
        context["audits"] = reports.audits(limit=AUDITS_SHOWN)[0]
        context["tabs"] = tabs("Reports")
    context |= _charts(actor, wanted["span"], it.number if it else None)
    return render(request, "console/reports.html", context)


def _charts(actor: Any, span: str, destination: int | None) -> dict[str, Any]:
    _, grain, length = SPANS[span]
    now = timezone.now()
    seen = {"destination": destination, "within": sight(actor), "limit": ROWS_MAX}
    own = _by_time(reports.points(grain, now - length, now, **seen), grain)
    subscribed = _by_time(reports.points(grain, now - length, now, subscriptions=True, **seen), grain)
    times = sorted(own.keys() | subscribed.keys())
    came, went = [own.get(time, Counter()) for time in times], [subscribed.get(time, Counter()) for time in times]
    waits = [reports.percentiles(each, "wait") or {} for each in went]
    charts = [
        ("Messages", "", [Series("accepted", "in", [each["accepted"] for each in came]), Series("acknowledged", "out", [each["accepted"] for each in went])]),
        ("Wait for a consumer", "ms", [Series("half", "in", [each.get(50) for each in waits]), Series("99 of 100", "dead", [each.get(99) for each in waits])]),
        ("Redelivered", "", [Series("redelivered", "depth", [max(each["offered"] - each["delivered"], 0) for each in went])]),
        ("Dead", "", [Series("dead", "dead", [sum(each[name] for name in reports.DEAD) for each in went])]),
    ]  # fmt: skip
    return {"times": times, "charts": charts}


def _by_time(points: Sequence[reports.Point], grain: str) -> dict[datetime, Counter[str]]:
    found: dict[datetime, Counter[str]] = {}
    for point in points:
        found.setdefault(_start(point.start, grain), Counter()).update(point.counts)
    return found


@require_safe
def audit(request: HttpRequest, number: str) -> HttpResponse:
    look(actor_of(request), "delivery audit")
    it, wanted = reports.audit(int(number)), asked(request, texts=())
    if it is None:
        raise Http404("There is no such audit.")
    found, following = reports.violations(it.number, _whole(wanted["after"]))
    context = {"it": it, "asked": wanted, "violations": found, "following": following, "fates": sorted(it.by_fate.items(), key=lambda each: -each[1])}
    return render(request, "console/delivery_audit.html", context)


def _start(time: datetime, grain: str) -> datetime:
    return time.replace(minute=time.minute - time.minute % MINUTES_A_POINT) if grain == "minute" else time


def _whole(text: str) -> int:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX else 0
