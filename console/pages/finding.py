"""What a page is about, and where one goes when it is done."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from console.permissions import BROWSE_HEADERS, may, sight
from console.selectors import destinations
from console.selectors.destinations import Destination
from console.services.audit import Actor

from .actor import actor_of


def destination_of(request: HttpRequest, number: str | int) -> Destination:
    found = destinations.by_number(int(number), sight(actor_of(request)))
    if found is None:
        raise Http404("There is no such destination; it may have been destroyed meanwhile.")
    return found


def to_messages(actor: Actor, it: Destination) -> HttpResponse:
    """If he may look at them: being refused there, he would do again what is done."""
    return redirect("messages_of" if may(actor, BROWSE_HEADERS, it.address) else "destination", it.number)
