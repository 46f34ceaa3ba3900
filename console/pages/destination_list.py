"""The list of destinations, with what the node counts of each; and what is done with several of them at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from broker_core import control
from console.live.topics import rate_of
from console.permissions import MANAGE, NOTHING, PURGE, may, sight
from console.quantities import messages
from console.rates import Rate
from console.selectors import destinations, history
from console.selectors.destinations import Destination
from console.services import destinations as service
from console.services.audit import Actor
from console.services.requests import Outcome

from .actor import actor_of
from .asked import asked
from .charts import Values

SHOWS = (("", "All"), ("unread", "Nobody consumes"), ("unsettled", "Held by consumers"), ("full", "Full"), ("paused", "Paused"))
KINDS = (("", "Queues and topics"), ("queue", "Queues"), ("topic", "Topics"))
LIFETIMES = (("", "Lasting"), ("1", "Temporary"))
PICKED_MAX = destinations.PAGE_ROWS
"""Of one page: nobody should act upon what he does not see."""


@dataclass(slots=True, frozen=True)
class Row:
    destination: Destination
    rate: Rate | None
    spark: Values
    """Messages a second that came in, over the last 15 minutes."""
    may_manage: bool
    may_discard: bool

    @property
    def live(self) -> str:
        """Of the keys of its live cells."""
        return f"destinations/{self.destination.number}"


@dataclass(slots=True, frozen=True)
class Bulk:
    title: str
    words: str
    """What it will do."""
    right: str
    apply: Callable[[Actor, Destination, str, int], Outcome]
    """With the direction, and the depth that was seen."""
    typed: str = ""
    """What must be typed first."""


@dataclass(slots=True, frozen=True)
class Result:
    address: str
    outcome: Outcome | None
    problem: str = ""


BULKS = {
    "pause": Bulk("Pause", "Clients stay connected. What is with a consumer can still be settled.", MANAGE,
                  lambda actor, it, way, _: service.pause(actor, it.address, way)),
    "resume": Bulk("Resume", "Messages flow again in both directions.", MANAGE, lambda actor, it, *_: service.resume(actor, it.address)),
    "purge": Bulk("Purge", "Their messages are discarded; nothing goes to the dead message queue. What consumers hold is kept.", PURGE,
                  lambda actor, it, _, depth: service.purge(actor, it.address, depth), "purge"),
}  # fmt: skip


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    choices = {"temporary": [value for value, _ in LIFETIMES], "show": destinations.SHOWS, "kind": [value for value, _ in KINDS]}
    wanted = asked(request, destinations.SORTS, choices)
    actor = actor_of(request)
    narrowed = {"temporary": bool(wanted["temporary"]), "show": wanted["show"], "kind": wanted["kind"]}
    page = destinations.page(wanted["q"], wanted["sort"], wanted["after"], within=sight(actor), **narrowed)
    manage, discard = sight(actor, MANAGE), sight(actor, PURGE)
    sparks = history.sparks([it.number for it in page.destinations]) if page.destinations else {}
    rows = [Row(it, rate_of(it), sparks[it.number], manage.shows(it.address), discard.shows(it.address)) for it in page.destinations]
    context = {
        "asked": wanted,
        "following": page.after,
        "rows": rows,
        "may_act": any(row.may_manage or row.may_discard for row in rows),
        "may_create": manage != NOTHING,
        "shows": SHOWS,
        "kinds": KINDS,
        "lifetimes": LIFETIMES,
    }
    return render(request, "console/destinations.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def bulk(request: HttpRequest, verb: str) -> HttpResponse:
    """One of BULKS with the destinations whose numbers are given as `n`. What was posted is done one by one, each with its own result."""
    chosen, actor = BULKS[verb], actor_of(request)
    given = request.POST if request.method == "POST" else request.GET
    # A number, and behind a colon the depth that was shown when the person agreed.
    told = [text.partition(":")[::2] for text in given.getlist("n")[:PICKED_MAX]]
    picked = {int(number): depth for number, depth in told if _is_number(number)}
    listed = sorted(destinations.by_numbers(picked), key=lambda it: it.address)
    shown = [it for it in listed if sight(actor).shows(it.address)]
    refused = [it for it in shown if not may(actor, chosen.right, it.address) or (it.reserved and verb != "purge")]
    context = {
        "verb": verb,
        "bulk": chosen,
        "rows": [it for it in shown if it not in refused],
        "refused": refused,
        "directions": control.DIRECTIONS,
        "depth": _sum([it.depth for it in shown if it not in refused]),
    }
    discards = verb == "purge" and context["depth"] is not None
    context["agreed"] = messages(context["depth"]) if discards else f"{chosen.title} {len(context['rows'])}"
    if request.method != "POST":
        return render(request, "console/bulk.html", context)
    if chosen.typed and request.POST.get("typed", "") != chosen.typed:
        return render(request, "console/bulk.html", {**context, "problem": f"Type {chosen.typed} to confirm."}, status=400)
    results = [_done(actor, chosen, it, request.POST.get("direction", ""), picked[it.number]) for it in shown]
    return render(request, "console/bulk_done.html", {**context, "results": results})


def _done(actor: Actor, chosen: Bulk, it: Destination, direction: str, depth: str) -> Result:
    """Whoever may not is refused by the service, which notes it."""
    try:
        return Result(it.address, chosen.apply(actor, it, direction, int(depth) if _is_number(depth) else -1))
    except control.InvalidRequest as error:
        return Result(it.address, None, str(error))


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 9


def _sum(depths: list[int | None]) -> int | None:
    known = [depth for depth in depths if depth is not None]
    return sum(known) if len(known) == len(depths) else None
