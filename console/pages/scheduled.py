"""Delayed messages: where there are some, those of a destination, and what one does with one."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from console.instants import YEAR_9999_MS, instant
from console.permissions import BROWSE_HEADERS, may, sight
from console.selectors import destinations
from console.services import delayed as service

from .actor import actor_of
from .asked import asked
from .destination_tabs import tabs
from .finding import destination_of
from .message_search import instant_of, milliseconds_of
from .telling import tell

ROWS = 50
_AFTER = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
DONE = {service.CANCEL: "cancelled", service.DELIVER: "delivered now", service.RESCHEDULE: "moved to another time"}


@require_safe
def choose(request: HttpRequest) -> HttpResponse:
    """Destinations with delayed messages, by name."""
    wanted = asked(request)
    found, following = destinations.scheduled(wanted["q"], wanted["after"], within=sight(actor_of(request), BROWSE_HEADERS))
    return render(request, "console/scheduled_choose.html", {"asked": wanted, "destinations": found, "following": following})


@require_safe
def listing(request: HttpRequest, number: str) -> HttpResponse:
    it, actor, wanted = destination_of(request, number), actor_of(request), asked(request, texts=())
    key = _AFTER.fullmatch(wanted["after"])
    found, following = service.page(actor, it.number, it.address, (int(key[1]), int(key[2])) if key else (0, 0), ROWS)
    now = datetime.now(UTC)
    rows = [{**row, "due": instant(row["due_at"]), "in": _seconds_until(row["due_at"], now), "expires": instant(row["expiration"])} for row in found]
    rights = {verb: may(actor, right, it.address) for verb, right in service.RIGHTS.items()}
    context = {
        "it": it, "live": f"destinations/{it.number}", "asked": wanted, "rows": rows, "following": following, "tabs": tabs(it, "scheduled"),
        "rights": rights,
    }  # fmt: skip
    return render(request, "console/scheduled.html", context)


def _seconds_until(due_at: int, now: datetime) -> float:
    return max(due_at / 1000 - now.timestamp(), 0)


@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, number: str, schedule: str, verb: str) -> HttpResponse:
    """Cancel it, deliver it now, or move it to another time."""
    it, problem = destination_of(request, number), ""
    if request.method == "POST":
        at = None
        if verb == service.RESCHEDULE:
            at = _instant(request.POST)
            problem = "" if at is not None else "Say when: an instant in UTC, or in how long, like 5 min, 2 h or 3 d."
        if not problem:
            outcome = service.change(actor_of(request), it.number, it.address, int(schedule), verb, at)
            tell(request, f"Message {schedule} of {it.address}", DONE[verb], outcome)
            return redirect("scheduled_of", it.number)
    context = {"it": it, "schedule": schedule, "verb": verb, "problem": problem, "in": request.POST.get("in", ""), "at": request.POST.get("at", "")}
    return render(request, "console/scheduled_change.html", context, status=400 if problem else 200)


def _instant(given: Any) -> int | None:
    """In ms; None: none was said, or none that can be read."""
    if given.get("in", "").strip():
        delay = milliseconds_of(given["in"])
        return None if delay is None else min(int(datetime.now(UTC).timestamp() * 1000) + delay, YEAR_9999_MS)
    at = instant_of(given.get("at", ""))
    return None if at is None else min(max(int((at - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1)), 1), YEAR_9999_MS)
