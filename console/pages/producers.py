"""Who produces to which destination, as far as connections tell."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.permissions import sight
from console.selectors import destinations
from console.services import connections as service

from .actor import actor_of
from .asked import asked, is_again, whole
from .connections import DIGITS_MAX, PAGE_ROWS, row_of


@require_safe
def producers(request: HttpRequest) -> HttpResponse:
    """Of all destinations, of one (`destination`, its number), or of one connection (`connection`)."""
    wanted, actor = asked(request, texts=("destination", "connection")), actor_of(request)
    address = ""
    if wanted["destination"]:
        it = destinations.by_number(whole(wanted["destination"], DIGITS_MAX), sight(actor))
        if it is None:
            raise Http404("There is no such destination; it may have been destroyed meanwhile.")
        address = it.address
    of = whole(wanted["connection"], DIGITS_MAX) or None
    found = service.producers(actor, whole(wanted["after"], DIGITS_MAX), PAGE_ROWS, destination=address, connection=of, again=is_again(request))
    context = {"asked": wanted, "rows": [row_of(row) for row in found["producers"]], "following": found["next"], "address": address, "of": of}
    return render(request, "console/producers.html", context)
