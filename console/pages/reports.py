"""What the data pipeline has found out: its runs, the proof of delivery, and what happened over time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.permissions import LOOK, may, sight
from console.selectors import destinations, pipeline, reports
from console.services.audit import look

from . import report_charts
from .actor import actor_of
from .asked import asked
from .replays import tabs

RUNS_SHOWN, AUDITS_SHOWN = 5, 10
DIGITS_MAX = 18
TONES = {"running": "info", "done": "good", "failed": "bad", "died": "warn"}


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Of all destinations that may be seen, or of one (`destination`, its number)."""
    actor, wanted = actor_of(request), asked(request, choices={"span": tuple(report_charts.SPANS)}, texts=("destination",))
    it = None
    if wanted["destination"]:
        it = destinations.by_number(_whole(wanted["destination"]), sight(actor))
        if it is None:
            raise Http404("There is no such destination; it may have been destroyed meanwhile.")
    context: dict[str, Any] = {"asked": wanted, "of": it, "spans": [(name, one.words) for name, one in report_charts.SPANS.items()]}
    if may(actor, LOOK):
        context |= {"pipeline": pipeline.pipeline(), "runs": [(run, TONES.get(run.state, "")) for run in pipeline.page(limit=RUNS_SHOWN)[0]]}
        context["audits"] = reports.audits(limit=AUDITS_SHOWN)[0]
        context["tabs"] = tabs("Reports")
    context |= report_charts.charts(sight(actor), report_charts.SPANS[wanted["span"]], it.number if it else None)
    return render(request, "console/reports.html", context)


@require_safe
def audit(request: HttpRequest, number: str) -> HttpResponse:
    look(actor_of(request), "delivery audit")
    it, wanted = reports.audit(int(number)), asked(request, texts=())
    if it is None:
        raise Http404("There is no such audit.")
    found, following = reports.violations(it.number, _whole(wanted["after"]))
    listed, kinds = reports.listed(it.number), sorted(it.kinds.items(), key=_weight)
    context = {
        "it": it, "asked": wanted, "following": following, "fates": sorted(it.by_fate.items(), key=lambda each: -each[1]),
        "violations": [(one, _life(one)) for one in found], "kinds": [(kind, told, listed.get(kind, 0)) for kind, told in kinds],
        "discards": [(one, datetime.fromtimestamp(one["at"] / 1000, UTC) if "at" in one else None) for one in it.discards],
    }  # fmt: skip
    return render(request, "console/delivery_audit.html", context)


def _weight(kind: tuple[str, dict[str, int]]) -> tuple[bool, int]:
    return kind[0] != "lost", -kind[1]["ranges"]


def _life(of: reports.Violation) -> str:
    """Where the first message is shown that it is about; empty: it is about none, or its destination is gone."""
    if not of.is_there or of.lane is None or of.first is None:
        return ""
    query = f"?subscription={of.subscription}" if of.subscription else ""
    return reverse("message_life", args=[of.destination, f"{of.lane}-{of.first}"]) + query


def _whole(text: str) -> int:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_MAX else 0
