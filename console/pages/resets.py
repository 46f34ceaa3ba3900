"""Resets of totals: a page that says what they do, and a button."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from console.permissions import MANAGE, MANAGE_DESTINATION, sight
from console.selectors import destinations
from console.services import resets as service
from console.services.audit import require

from .actor import actor_of

SENTENCE = "What is shown since the reset begins at zero. The totals themselves go on growing, and so does what Prometheus reads: no rate breaks."


@require_http_methods(["GET", "HEAD", "POST"])
def reset(request: HttpRequest, number: str) -> HttpResponse:
    """Of one destination."""
    actor = actor_of(request)
    it = destinations.by_number(int(number), sight(actor))
    if it is None or it.temporary:
        raise Http404("There is no such destination, or it is temporary: its totals are not reset.")
    if request.method == "POST":
        service.reset(actor, it)
        messages.success(request, f"The totals of {it.address} are reset.")
        return redirect("destination", it.number)
    require(actor, MANAGE, service.WHAT, it.address, reads=True)
    return _asked(request, f"Reset totals of {it.address}", reverse("destination", args=[it.number]))


@require_http_methods(["GET", "HEAD", "POST"])
def reset_all(request: HttpRequest) -> HttpResponse:
    """Of every destination, and the sums."""
    actor = actor_of(request)
    if request.method == "POST":
        service.reset_all(actor)
        messages.success(request, "The totals of every destination are reset.")
        return redirect("overview")
    require(actor, MANAGE_DESTINATION, service.WHAT, reads=True)
    return _asked(request, "Reset the totals of every destination", reverse("overview"))


def _asked(request: HttpRequest, title: str, back: str) -> HttpResponse:
    return render(request, "console/asked_again.html", {"title": title, "sentence": SENTENCE, "words": "Reset", "back": back})
