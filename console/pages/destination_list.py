"""The list of destinations, with what the node counts of each."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.live.topics import rate_of
from console.permissions import MANAGE, NOTHING, PURGE, sight
from console.rates import Rate
from console.selectors import destinations

from .actor import actor_of
from .asked import asked


@dataclass(slots=True, frozen=True)
class Row:
    destination: destinations.Destination
    rate: Rate | None
    may_manage: bool
    may_discard: bool

    @property
    def live(self) -> str:
        """Of the keys of its live cells."""
        return f"destinations/{self.destination.number}"


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    wanted = asked(request, destinations.SORTS, {"temporary": ("", "1")})
    actor = actor_of(request)
    page = destinations.page(wanted["q"], wanted["sort"], wanted["after"], temporary=bool(wanted["temporary"]), within=sight(actor))
    manage, discard = sight(actor, MANAGE), sight(actor, PURGE)
    rows = [Row(it, rate_of(it), manage.shows(it.address), discard.shows(it.address)) for it in page.destinations]
    context = {
        "asked": wanted,
        "following": page.after,
        "rows": rows,
        "may_act": any(row.may_manage or row.may_discard for row in rows),
        "may_create": manage != NOTHING,
    }
    return render(request, "console/destinations.html", context)
