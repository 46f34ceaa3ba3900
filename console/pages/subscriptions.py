"""Durable subscriptions: whose they are, what they hold, which nobody has used for long; made, purged and ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from broker_core.control import InvalidRequest
from console.permissions import BROWSE_HEADERS, MANAGE, METRICS, NOTHING, PURGE, may, only, sight
from console.selectors import destinations, subscriptions
from console.selectors.subscriptions import Subscription
from console.services import operations
from console.services import subscriptions as service
from console.services.audit import Actor

from .actor import actor_of
from .asked import asked, is_again, whole
from .telling import tell

DAY = 86_400
IDLE = (("", "All"), ("1", "Unused for a day"), ("7", "for a week"), ("30", "for 30 days"))
DIGITS_MAX = 9
VERBS = ("purge", "destroy")
TEXTS = ("name", "account", "client_id", "selector")


@dataclass(slots=True, frozen=True)
class Row:
    it: Subscription
    idle_seconds: float | None
    held: Any
    """depth and the like; None of each: nobody tells."""
    may_browse: bool
    may_discard: bool
    of_one: bool
    """Of one topic, and of no pattern."""


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Of the topics that one may see, or of one (`destination`, its number); `idle`: unused for so many days."""
    wanted, actor = asked(request, choices={"idle": [days for days, _ in IDLE]}, texts=("destination",)), actor_of(request)
    number, address, within = whole(wanted["after"], DIGITS_MAX), "", sight(actor)
    if wanted["destination"]:
        it = destinations.by_number(whole(wanted["destination"], DIGITS_MAX), within)
        if it is None:
            raise Http404("There is no such destination; it may have been destroyed meanwhile.")
        address, within = it.address, only(it.address)
    found, following = subscriptions.page(number, idle_seconds=int(wanted["idle"] or 0) * DAY, within=within)
    context = {
        "asked": wanted, "rows": _rows(actor, found, is_again(request)), "following": following, "idle": IDLE, "address": address,
        "may_create": sight(actor, MANAGE) != NOTHING,
    }  # fmt: skip
    return render(request, "console/subscriptions.html", context)


def _rows(actor: Actor, found: list[Subscription], again: bool = False) -> list[Row]:
    now = timezone.now()
    known = [it for it in found if may(actor, METRICS, _over(it))]
    held = {it.number: told for it, told in zip(known, service.held(actor, known, again=again), strict=True)}
    return [
        Row(
            it, None if it.idle_since is None else (now - it.idle_since).total_seconds(), held.get(it.number, service.UNKNOWN),
            may(actor, BROWSE_HEADERS, _over(it)), may(actor, PURGE, _over(it)), bool(_over(it)),
        )
        for it in found
    ]  # fmt: skip


def _over(it: Subscription) -> str:
    """Whose right is asked for; of a pattern that of all destinations."""
    return "" if any(mark in it.address for mark in "*>") else it.address


@require_safe
def messages(request: HttpRequest, number: str) -> HttpResponse:
    """To the messages that it holds."""
    place = subscriptions.place_of(int(number), sight(actor_of(request)))
    if place is None:
        raise Http404("There is no such subscription of one topic any more.")
    return redirect(f"{reverse('messages_of', args=[place[0]])}?subscription={number}")


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """It begins at the end of its topic."""
    given = {name: request.POST.get(name, "").strip() for name in ("address", *TEXTS)}
    shared, no_local, problem = bool(request.POST.get("shared")), bool(request.POST.get("no_local")), ""
    if request.method == "POST":
        address = given["address"].removeprefix("/")
        arguments: dict[str, Any] = {name: given[name] for name in TEXTS if given[name]}
        arguments |= {name: True for name, asked_for in (("shared", shared), ("no_local", no_local)) if asked_for}
        try:
            if not (given["name"] and given["account"]):
                raise InvalidRequest("it needs a name and the account that is to consume from it")
            outcome = service.create(actor_of(request), address, arguments)
        except InvalidRequest as error:
            problem = str(error)
        else:
            tell(request, f"The subscription {given['name']} of {address}", "made", outcome)
            return redirect("subscriptions")
    context = {"given": given, "shared": shared, "no_local": no_local, "problem": problem}
    return render(request, "console/subscription_create.html", context, status=400 if problem else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, number: str, verb: str) -> HttpResponse:
    """Discard what it holds, or end it."""
    actor, problem = actor_of(request), ""
    it = subscriptions.by_number(int(number), sight(actor))
    if it is None:
        raise Http404("There is no such subscription any more.")
    if request.method == "POST":
        try:
            if request.POST.get("typed", "") != it.name:
                raise InvalidRequest(f"type {it.name} to say that you mean it")
            outcome = service.purge(actor, it) if verb == "purge" else service.destroy(actor, it, force=bool(request.POST.get("in_use")))
        except InvalidRequest as error:
            problem = str(error)
        else:
            if verb == "purge" and outcome.done:
                operations.awaited(outcome.request, 0.5)  # most are done by then, and shown so
                return redirect("operation", outcome.request)
            tell(request, f"The subscription {it.name}", "ended" if verb == "destroy" else "purged", outcome)
            return redirect("subscriptions")
    context = {"row": _rows(actor, [it])[0], "it": it, "verb": verb, "problem": problem}
    return render(request, "console/subscription_change.html", context, status=400 if problem else 200)
