"""One destination: what it holds now and held before, who uses it, and what bounds it."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from broker_core import control
from console.live import texts
from console.live.topics import rate_of
from console.permissions import MANAGE, PURGE, may, only, sight
from console.quantities import UNKNOWN, count, milliseconds, octets
from console.selectors import destinations, history, node, resets, subscriptions
from console.selectors.destinations import Destination
from console.services import connections
from console.services import subscriptions as subscription_service
from console.services.audit import Actor
from console.services.history import SPANS
from console.services.looking import Declined, NodeSilent

from .actor import actor_of
from .asked import asked, is_again
from .connections import row_of
from .overview import charts_of
from .settings_form import WORDS

PRODUCERS_MAX, CONSUMERS_MAX, SUBSCRIPTIONS_MAX = 20, 20, 50
STATS = (
    ("in", "In /s"), ("out", "Out /s"), ("depth", "Messages held"), ("unsettled", "Unacknowledged"), ("unsettled_oldest", "Oldest unacknowledged"),
    ("oldest", "Oldest message"), ("size", "Size"), ("consumers", "Consumers"), ("redelivered", "Redelivered"), ("expired", "Expired"), ("dead", "Dead"),
)  # fmt: skip
"""Names of live cells, and what they are called."""


@require_safe
def detail(request: HttpRequest, number: str) -> HttpResponse:
    actor = actor_of(request)
    it = destinations.by_number(int(number), sight(actor))
    if it is None:
        raise Http404("There is no such destination; it may have been destroyed meanwhile.")
    wanted = asked(request, choices={"span": [span.name for span in SPANS]}, texts=())
    span = next(span for span in SPANS if span.name == wanted["span"])
    status = node.node_status()
    told = history.of_destination(it.number, span)
    cells = texts.of_destination(it, rate_of(it))
    since = None if it.temporary else resets.of_destination(it)
    may_manage = may(actor, MANAGE, it.address)
    context = {
        "asked": wanted,
        "it": it,
        "totals": resets.told(it._asdict(), since),
        "since": since,
        "reset": reverse("totals_reset", args=[it.number]) if may_manage and not it.temporary else "",
        "live": f"destinations/{it.number}",
        "spans": [(each.name, each.name) for each in SPANS],
        "stats": [{"label": label, "value": cells[name], "live": f"destinations/{it.number}/{name}"} for name, label in STATS],
        "times": told.times,
        "charts": charts_of(told),
        "limits": limits(it),
        "died": [(cause.replace("_", " ").lower(), count(number)) for cause, number in zip(control.CAUSES, it.died or (), strict=False) if number],
        "settings": settings_of(it),
        "service": status,
        **(_clients(actor, it, is_again(request)) if status.alive else {"producers": None, "consumers": None}),
        **_subscriptions(actor, it, is_again(request), status.alive),
        "may_manage": may_manage,
        "may_discard": may(actor, PURGE, it.address),
    }
    return render(request, "console/destination.html", context)


def limits(it: Destination) -> list[dict[str, Any]]:
    """How far it is from each limit that it has."""
    settings = {**control.default_settings(), **it.settings}
    found = []
    for name, label, now, words in (("max_messages", "Messages", it.depth, count), ("max_octets", "Octets", it.octets, octets)):
        most = settings.get(name, -1)
        if most > 0:
            full = now is not None and now >= most
            found.append({"label": label, "now": now, "most": most, "words": f"{words(now)} of {words(most)}" if now is not None else UNKNOWN, "full": full})
    return found


def settings_of(it: Destination) -> list[tuple[str, str, bool]]:
    """What each is called, what it is, and whether it is not the default."""
    usual = control.default_settings()
    settings = {**usual, **it.settings}
    return [(WORDS.get(name, (name.replace("_", " "),))[0], _said(name, value), value != usual[name]) for name, value in settings.items()]


def _said(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value in (-1, "", "none"):
        return "none" if value != -1 else "unlimited"
    if isinstance(value, int) and name.endswith("_ms"):
        return milliseconds(value) if value >= 1000 or value == 0 else f"{value} ms"
    return count(value) if isinstance(value, int) else str(value)


def _clients(actor: Actor, it: Destination, again: bool) -> dict[str, Any]:
    """The first producers and consumers, and whether there are more; None: only the node knows, and it does not answer."""
    if it.temporary:
        return {"producers": [], "consumers": []}
    told: dict[str, Any] = {}
    for kind, most, ask in (("producers", PRODUCERS_MAX, connections.producers), ("consumers", CONSUMERS_MAX, connections.consumers)):
        try:
            found = ask(actor, 0, most, destination=it.address, again=again)
        except (NodeSilent, Declined):
            return {"producers": None, "consumers": None}
        told |= {kind: [row_of(row) for row in found[kind]], f"more_{kind}": found["next"]}
    return told


def _subscriptions(actor: Actor, it: Destination, again: bool, alive: bool) -> dict[str, Any]:
    """The first of them, each with what it holds, and whether there are more; None: a queue has none."""
    if not it.address.startswith("topic/"):
        return {"subscriptions": None}
    found, following = subscriptions.page(limit=SUBSCRIPTIONS_MAX, within=only(it.address))
    held = subscription_service.held(actor, found, again=again) if alive else [subscription_service.UNKNOWN] * len(found)
    return {"subscriptions": list(zip(found, held, strict=True)), "more_subscriptions": following}
