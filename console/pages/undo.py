"""Purges and deletions that can be undone: a list, undoing one, and giving one up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from console.permissions import may, sight
from console.selectors import undo
from console.selectors.undo import Undo
from console.services import undo as service
from console.services.operations import RIGHTS

from .actor import actor_of
from .asked import asked, whole
from .telling import tell

DIGITS_MAX = 18
DONE = {"back": "undone", "give-up": "given up: it cannot be undone any more"}


@dataclass(slots=True, frozen=True)
class Row:
    it: Undo
    left: float | None
    """Seconds; None: as long as the operation goes on."""
    how: str
    may_undo: bool


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Those that can be undone, or what became of all of the last month."""
    wanted, actor = asked(request, choices={"all": ("", "1")}), actor_of(request)
    after = wanted["after"]
    before = whole(after, DIGITS_MAX)
    found, following = undo.page(before, open_only=not wanted["all"], search=wanted["q"], within=sight(actor))
    now = timezone.now()
    rows = [Row(it, _left(it, now), it.ended_how, not it.ended_how and may(actor, RIGHTS[it.verb], it.address)) for it in found]
    return render(request, "console/undo.html", {"asked": wanted, "rows": rows, "following": following})


def _left(it: Undo, now: datetime) -> float | None:
    return None if it.lapses_at is None else max((it.lapses_at - now).total_seconds(), 0)


@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, number: str, verb: str) -> HttpResponse:
    """`back`: it waits again, where it was; `give-up`: the disk is free of it."""
    it = undo.by_number(int(number), sight(actor_of(request)))
    if it is None:
        raise Http404("There is nothing to undo any more.")
    if request.method == "POST":
        does = service.undo if verb == "back" else service.give_up
        tell(request, f"The {it.verb} of {it.address}", DONE[verb], does(actor_of(request), it))
        return redirect("undo")
    return render(request, "console/undo_change.html", {"it": it, "verb": verb})
