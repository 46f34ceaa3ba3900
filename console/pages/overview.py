"""The overview: the node, and the destinations with what it counts. The page asks for its live part again every two seconds."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.apps import apps
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.permissions import MANAGE, NOTHING, PURGE, sight
from console.rates import Rate, Reading
from console.selectors import destinations, health, node

from .actor import actor_of


@dataclass(slots=True, frozen=True)
class Row:
    destination: destinations.Destination
    rate: Rate | None
    may_manage: bool
    may_discard: bool


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    return render(request, "console/overview.html", _context(request))


@require_safe
def live(request: HttpRequest) -> HttpResponse:
    return render(request, "console/_live.html", _context(request))


def _context(request: HttpRequest) -> dict[str, Any]:
    asked = {name: request.GET.get(name, "") for name in ("q", "sort", "after", "temporary")}
    if asked["sort"] not in destinations.SORTS:
        asked["sort"] = destinations.SORTS[0]
    actor = actor_of(request)
    page = destinations.page(asked["q"], asked["sort"], asked["after"], temporary=bool(asked["temporary"]), within=sight(actor))
    manage, discard = sight(actor, MANAGE), sight(actor, PURGE)
    rows = [Row(it, _rate(it), manage.shows(it.address), discard.shows(it.address)) for it in page.destinations]
    status = node.node_status()
    return {
        "asked": asked,
        "here": urlencode({name: value for name, value in asked.items() if value}),
        "following": urlencode({**asked, "after": page.after}) if page.after else "",
        "rows": rows,
        "may_act": any(row.may_manage or row.may_discard for row in rows),
        "node": status,
        "listeners": health.listeners(status),
        "problems": health.problems(status),
        "may_create": manage != NOTHING,
    }


def _rate(destination: destinations.Destination) -> Rate | None:
    if not destination.known:
        return None
    reading = Reading(destination.at, destination.accepted_total, destination.settled_total)
    return apps.get_app_config("console").rates.observe(destination.number, reading)
