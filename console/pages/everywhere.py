"""Find: what has a name and fits, each kind as far as it may be seen, and no more of it than one looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.permissions import LOOK, may, sight
from console.selectors import accounts, branches, destinations, node, subscriptions
from console.services import connections, life
from console.services.audit import Actor
from console.services.looking import Declined, NodeSilent
from console.xids import parts

from .actor import actor_of
from .asked import asked

SHOWN_MAX = 8
CONNECTIONS_MAX = 1_000
"""That the node tells at a time."""


@dataclass(slots=True, frozen=True)
class Hit:
    href: str
    words: str
    more: str = ""


@dataclass(slots=True, frozen=True)
class Kind:
    title: str
    hits: list[Hit] = field(default_factory=list)
    all: str = ""
    """Where all of them are; empty: these are all."""
    note: str = ""
    """What was not looked at."""


@require_safe
def find(request: HttpRequest) -> HttpResponse:
    wanted, actor = asked(request), actor_of(request)
    text = wanted["q"]
    found = [kind for look in LOOKS for kind in (look(actor, text),) if kind is not None] if text else []
    hits = [kind for kind in found if kind.hits]
    if [kind.title for kind in hits] == [DESTINATIONS]:
        return redirect(f"{reverse('destinations')}?{urlencode({'q': text})}")
    return render(request, "console/find.html", {"asked": wanted, "found": hits, "notes": [kind.note for kind in found if kind.note]})


DESTINATIONS = "Destinations"


def _destinations(actor: Actor, text: str) -> Kind:
    page = destinations.page(text.removeprefix("/"), within=sight(actor), limit=SHOWN_MAX)
    hits = [Hit(reverse("destination", args=[it.number]), it.address) for it in page.destinations]
    return Kind(DESTINATIONS, hits, f"{reverse('destinations')}?{urlencode({'q': text})}" if page.after else "")


def _subscriptions(actor: Actor, text: str) -> Kind:
    found = subscriptions.search(text, SHOWN_MAX, sight(actor))
    hits = [Hit(f"{reverse('subscriptions')}?{urlencode({'after': it.number - 1})}", it.name, f"{it.address} {it.client_id}") for it in found]
    return Kind("Subscriptions", hits)


def _messages(actor: Actor, text: str) -> Kind | None:
    if not text.startswith("ID:"):
        return None
    place = life.place_of(actor, text)
    note = "Identifiers that clients gave are not looked up here: search for them among the messages of their destination."
    if place is None:
        return Kind("Messages", note=note)
    number, address, key = place
    return Kind("Messages", [Hit(reverse("message_life", args=[number, key]), text, f"came to {address} as {key}")])


def _connections(actor: Actor, text: str) -> Kind | None:
    if not may(actor, LOOK):
        return None
    if not node.node_status().alive:
        return Kind("Connections", note="Who is connected is unknown, for no node is alive.")
    try:
        told = connections.connections(actor, 0, CONNECTIONS_MAX, again=True)
    except (NodeSilent, Declined):
        return Kind("Connections", note="Who is connected is unknown, for no node answers.")
    words = text.lower()
    fits = [it for it in told["connections"] if words in str(it["client_id"] or "").lower() or words in str(it["account"]).lower()]
    hits = [
        Hit(reverse("connection", args=[it["connection"]]), it["client_id"] or f"{it['account']}, connection {it['connection']}", f"of {it['account']}")
        for it in fits[:SHOWN_MAX]
    ]
    note = f"Of connections the first {CONNECTIONS_MAX:,} were looked at." if told["next"] else ""
    return Kind("Connections", hits, reverse("connections") if len(fits) > SHOWN_MAX else "", note)


def _accounts(actor: Actor, text: str) -> Kind | None:
    if not may(actor, LOOK):
        return None
    found = accounts.search(text, SHOWN_MAX)
    return Kind("Accounts", [Hit(f"{reverse('accounts')}?{urlencode({'q': it.name})}", it.name, "disabled" if it.disabled else "") for it in found])


def _transactions(actor: Actor, text: str) -> Kind | None:
    if not may(actor, LOOK):
        return None
    found = branches.search(text, SHOWN_MAX)
    hits = [Hit(reverse("transaction", args=[it.number]), dict(parts(it.xid)).get("Global transaction", it.xid), it.state) for it in found]
    return Kind("Transactions", hits)


LOOKS: tuple[Callable[[Actor, str], Kind | None], ...] = (_destinations, _subscriptions, _connections, _accounts, _transactions, _messages)
