"""Dead messages by reason, origin and error, each group with its way to the messages and back to where they died."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from broker_core.viewing.groups import Group
from broker_core.viewing.page import key_text
from console.instants import instant
from console.permissions import BROWSE_HEADERS, DELETE, MOVE, may, sight
from console.selectors import destinations
from console.selectors.destinations import Destination
from console.services import browsing

from .actor import actor_of
from .asked import asked, is_again
from .destination_tabs import tabs
from .finding import destination_of
from .message_search import WrongKey, key_of

DEAD_MESSAGE_QUEUE = "queue/mq.sys.dmq"
WORDS = {
    "UNDELIVERABLE": "Rejected by its consumer, or failed too often",
    "EXPIRED": "Its time to live passed before it was consumed",
    "OLDEST": "Removed as the oldest, to make room",
    "LOW_PRIORITY": "Removed as the least important, to make room",
    "": "Sent here; it did not die",
}


@dataclass(slots=True, frozen=True)
class Row:
    group: Group
    words: str
    first_at: datetime | None
    last_at: datetime | None
    query: str
    """Of a search that finds these."""


@require_safe
def everything(request: HttpRequest) -> HttpResponse:
    """Of the broker's own dead message queue; that of others is a tab of theirs."""
    it = destinations.by_address(DEAD_MESSAGE_QUEUE, sight(actor_of(request), BROWSE_HEADERS))
    if it is None:
        return render(request, "console/dead.html", {"it": None, "address": DEAD_MESSAGE_QUEUE})
    return _shown(request, it, at="dead")


@require_safe
def of_destination(request: HttpRequest, number: str) -> HttpResponse:
    return _shown(request, destination_of(request, number), at="dead_of")


def _shown(request: HttpRequest, it: Destination, at: str) -> HttpResponse:
    wanted, actor = asked(request, texts=()), actor_of(request)
    try:
        after = key_of(wanted["after"]) if wanted["after"] else None
    except WrongKey:
        after = None
    found = browsing.groups(actor, it.address, after, again=is_again(request))
    rows = [_row(group) for group in found.groups]
    context: dict[str, Any] = {
        "it": it, "live": f"destinations/{it.number}", "asked": wanted, "found": found, "rows": rows, "tabs": tabs(it, "dead"),
        "may": {"move": may(actor, MOVE, it.address), "delete": may(actor, DELETE, it.address)},
        "back": reverse(at, args=[it.number] if at == "dead_of" else []), "own": it.address == DEAD_MESSAGE_QUEUE,
        "kept": _kept(it), "following": key_text(found.next) if found.next else "",
    }  # fmt: skip
    return render(request, "console/dead.html", context)


def _row(group: Group) -> Row:
    told = (("reason", group.reason), ("origin", group.origin), ("selector", group.selector))
    query = urlencode({name: value for name, value in told if value})
    return Row(group, WORDS.get(group.reason, group.reason), instant(group.first_at), instant(group.last_at), query)


def _kept(it: Destination) -> list[tuple[str, str]]:
    """What bounds the queue, and so how long dead messages stay. A time to live that is set for it is of what is sent to it, not of what dies."""
    told = [("From when they died", f"{settings.BROKER.dead_retention_days:,} days (SURETY_DEAD_RETENTION_DAYS, as it is set here)")]
    for name, words in (("max_messages", "Messages at most"), ("max_octets", "Octets at most")):
        value = it.settings.get(name, -1)
        told.append((words, "no bound" if value in (-1, None) else f"{value:,}"))
    return [*told, ("When it is full", str(it.settings.get("limit_behavior", "as the node's configuration says")).lower().replace("_", " "))]
