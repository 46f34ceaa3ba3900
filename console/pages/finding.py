"""What a page is about."""

from __future__ import annotations

from django.http import Http404, HttpRequest

from console.permissions import sight
from console.selectors import destinations
from console.selectors.destinations import Destination

from .actor import actor_of


def destination_of(request: HttpRequest, number: str | int) -> Destination:
    found = destinations.by_number(int(number), sight(actor_of(request)))
    if found is None:
        raise Http404("There is no such destination; it may have been destroyed meanwhile.")
    return found
