"""Messages of a queue or of a subscription: whose they are, a page of them, one of them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from broker_core.viewing import LEVEL_NAMES, REASONS_KNOWN, rendering
from broker_core.viewing.page import Page, Seen, key_text
from console.instants import instant
from console.permissions import BROWSE_BODIES, BROWSE_HEADERS, DELETE, METRICS, MOVE, SEND, may, sight
from console.selectors import destinations, subscriptions, undo
from console.selectors.destinations import Destination
from console.services import browsing
from console.services.audit import require
from console.services.operations import RIGHTS
from console.services.sending import REASON

from .actor import actor_of
from .asked import asked
from .bodies import pretty_xml
from .destination_tabs import tabs
from .finding import destination_of
from .properties_text import typed
from .message_search import INSTANTS, NEWEST, OLDEST, Search, WrongKey, key_of, search_of

ROWS = 50
TONES = {"available": "good", "delivered": "info", "delayed": "warn", "reserved": "warn", "aside": "", "expired": "bad"}
STATES = {"available": "ready", "delivered": "with a consumer", "delayed": "delayed", "reserved": "reserved", "aside": "behind its group", "expired": "expired"}
"""What the states of messages are called here."""
COMMENT, ORIGIN = "JMS_SUN_DMQ_UNDELIVERED_COMMENT", "original-destination"


@dataclass(slots=True, frozen=True)
class Row:
    seen: Seen
    state: str
    tone: str
    accepted_at: datetime | None
    expires_at: datetime | None
    age_ms: int
    reliability: str
    due_at: datetime | None
    since: datetime | None
    reason: str
    comment: str
    origin: str

    @property
    def key(self) -> str:
        return self.seen.key


def row_of(seen: Seen, now: int) -> Row:
    added, header = rendering.added_of(seen.message), seen.message.header
    return Row(
        seen, STATES[seen.state], TONES[seen.state], instant(seen.message.accepted_at), instant(header.expiration or None),
        max(now - seen.message.accepted_at, 0), LEVEL_NAMES[header.reliability], instant(seen.due_at), instant(seen.since), str(added.get(REASON, "")),
        str(added.get(COMMENT, "")), str(added.get(ORIGIN, "")),
    )  # fmt: skip


@require_safe
def choose(request: HttpRequest) -> HttpResponse:
    """Where there are messages: destinations, the deepest first."""
    wanted = asked(request)
    page = destinations.page(wanted["q"], "depth", wanted["after"], within=sight(actor_of(request), BROWSE_HEADERS))
    return render(request, "console/messages_choose.html", {"asked": wanted, "destinations": page.destinations, "following": page.after})


@require_safe
def listing(request: HttpRequest, number: str) -> HttpResponse:
    it, actor, search = destination_of(request, number), actor_of(request), search_of(request)
    if it.address.startswith("topic/") and search.subscription is None:
        require(actor, BROWSE_HEADERS, "browse", it.address, reads=True)
        found, _ = subscriptions.of_destination(it.number)
        return render(request, "console/messages_of_topic.html", {"it": it, "subscriptions": found, "tabs": tabs(it, "messages")})
    context = {
        "it": it, "asked": search.asked, "search": search, "problems": search.problems, "tabs": tabs(it, "messages"), "reasons": REASONS_KNOWN,
        "following": "", "may": _rights(actor, it), "shown_first": "", "export": _export(it, search),
    }  # fmt: skip
    if search.problems:
        return render(request, "console/messages.html", context, status=400)
    page = browsing.page(actor, it.address, search.wanted, ROWS, after=search.after, newest_first=search.newest_first, subscription=search.subscription)
    rows = [row_of(seen, page.now) for seen in page.seen]
    discarded = undo.latest_of(it.address) if search.after is None else None
    context |= {
        "page": page, "rows": rows, "following": key_text(page.next) if page.next else "", "looked": page.looked_at,
        "undo": discarded, "may_undo": discarded is not None and may(actor, RIGHTS[discarded.verb], it.address),
        "all": _all(search, page), "has_dead": any(row.reason for row in rows),
        "other_order": OLDEST if search.newest_first else NEWEST, "shown_first": rows[0].key if rows else "",
    }  # fmt: skip
    return render(request, "console/messages.html", context)


def _all(search: Search, page: Page) -> int | None:
    """How many all are that the page is about; None: nobody has counted them."""
    if not search.stated:
        return page.depth
    return len(page.seen) if page.complete and search.after is None else None


def _export(it: Destination, search: Search) -> str:
    """The address of a file with all that the search finds, however many they are."""
    asked_for: dict[str, Any] = dict(search.conditions)
    asked_for |= {name: search.asked[name] for name in INSTANTS if search.asked[name]}
    if "json_value" in asked_for:
        asked_for["json_value"] = json.dumps(asked_for["json_value"])
    if search.subscription is not None:
        asked_for["subscription"] = search.subscription
    return f"/api/v1/destinations/{it.number}/messages/export?{urlencode(asked_for)}"


def _rights(actor: Any, it: Destination) -> dict[str, bool]:
    named = {"send": SEND, "move": MOVE, "delete": DELETE, "bodies": BROWSE_BODIES, "look": METRICS}
    return {name: may(actor, right, it.address) for name, right in named.items()}


@require_safe
def check_selector(request: HttpRequest) -> HttpResponse:
    """What is wrong with a selector, as it is typed: a piece of the page."""
    search = search_of(request)
    return render(request, "console/parts/selector_told.html", {"given": search.asked["selector"], "problem": search.problems.get("selector", "")})


@require_safe
def one(request: HttpRequest, number: str, key: str) -> HttpResponse:
    it, actor, search = destination_of(request, number), actor_of(request), search_of(request)
    try:
        named = key_of(key)
    except WrongKey as error:
        raise Http404("A message's key is like 4-123.") from error
    view = browsing.message(actor, it.address, named, search.subscription)
    body = view.body
    context = {
        "it": it, "key": key, "asked": search.asked, "view": view, "row": row_of(view.seen, int(time.time() * 1000)), "body": body,
        "tabs": tabs(it, "messages"), "may": _rights(actor, it), "xml": pretty_xml(body.text) if body is not None and body.text and body.value is None else "",
        "octets": _first_octets(body), "facts": _facts(view), "life": _life(view),
        "properties": typed(view.properties, view.headers.get("property-types", "")), "ledger": _ledger(it, view, search.subscription),
    }  # fmt: skip
    return render(request, "console/message.html", context)


def _first_octets(body: rendering.ShownBody | None) -> bytes:
    if body is None:
        return b""
    return (body.text or "").encode()[: rendering.HEX_OCTETS] if body.hex is None else bytes.fromhex(body.hex)


def _facts(view: browsing.View) -> list[tuple[str, Any]]:
    seen, message = view.seen, view.seen.message
    header = message.header
    facts: list[tuple[str, Any]] = [
        ("Identifier", seen.identity), ("Key", seen.key), ("Accepted", shown(message.accepted_at)), ("Priority", header.priority),
        ("Reliability", LEVEL_NAMES[header.reliability]), ("Size", f"{message.size:,} octets"), ("Protocol", "AMQP" if header.encoding else "STOMP"),
        ("Expires", shown(header.expiration) if header.expiration else "never"), ("Failed deliveries", seen.attempts),
        ("May have been delivered", "yes" if message.redelivered else "no"),
    ]  # fmt: skip
    if seen.link is not None:
        holder = seen.holder or {}
        facts.append(("With consumer", f"{seen.link} of {holder.get('account', 'an unknown account')}, since {shown(seen.since)}"))
    if seen.due_at is not None:
        facts.append(("Not before", shown(seen.due_at)))
    if seen.reserved_by is not None:
        kind, number, xid = seen.reserved_by
        facts.append(("Reserved by", f"{kind} {number}{f' ({xid})' if xid else ''}"))
    return facts


def _life(view: browsing.View) -> list[tuple[str, str]]:
    """Instants and words, as far as the message and its queue tell."""
    seen, message, added = view.seen, view.seen.message, view.added
    life = [(added.get("original-timestamp"), f"accepted in {added.get(ORIGIN)}")] if ORIGIN in added else []
    if REASON in added:
        failures = added.get("JMS_SUN_DMQ_DELIVERY_COUNT")
        told = f", after {failures} failed {'delivery' if failures == 1 else 'deliveries'}" if failures else ""
        life.append((added.get("JMS_SUN_DMQ_UNDELIVERED_TIMESTAMP"), f"died: {str(added[REASON]).lower()}{told}"))
    life.append((message.accepted_at, "placed here" if life else "accepted"))
    if seen.link is not None:
        life.append((seen.since, f"delivered to consumer {seen.link}, who has not settled it"))
    if seen.due_at is not None:
        life.append((seen.due_at, "to be delivered again"))
    return [(shown(at) if isinstance(at, int) else "unknown", words) for at, words in life]


def _ledger(it: Destination, view: browsing.View, subscription: int | None) -> str:
    """Where its life is told by the ledger."""
    query = {"at": view.seen.message.accepted_at, **({} if subscription is None else {"subscription": subscription})}
    return f"{reverse('message_life', args=[it.number, view.seen.key])}?{urlencode(query)}"


def shown(milliseconds: int | None) -> str:
    at = instant(milliseconds)
    return "unknown" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"
