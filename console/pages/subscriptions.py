"""Durable subscriptions: whose they are, whether anybody uses them, and which nobody has used for long."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from console.permissions import sight
from console.selectors import subscriptions

from .actor import actor_of
from .asked import asked

DAY = 86_400
IDLE = (("", "All"), ("1", "Unused for a day"), ("7", "for a week"), ("30", "for 30 days"))
DIGITS_MAX = 9


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Of the topics that one may see; `idle`: unused for so many days."""
    wanted = asked(request, choices={"idle": [days for days, _ in IDLE]}, texts=())
    after = wanted["after"]
    number = int(after) if after.isascii() and after.isdigit() and len(after) <= DIGITS_MAX else 0
    found, following = subscriptions.page(number, idle_seconds=int(wanted["idle"] or 0) * DAY, within=sight(actor_of(request)))
    now = timezone.now()
    rows = [(it, None if it.idle_since is None else (now - it.idle_since).total_seconds()) for it in found]
    return render(request, "console/subscriptions.html", {"asked": wanted, "rows": rows, "following": following, "idle": IDLE})


@require_safe
def messages(request: HttpRequest, number: str) -> HttpResponse:
    """To the messages that it holds."""
    place = subscriptions.place_of(int(number), sight(actor_of(request)))
    if place is None:
        raise Http404("There is no such subscription of one topic any more.")
    return redirect(f"{reverse('messages_of', args=[place[0]])}?subscription={number}")
