"""Who is connected, who consumes, and what each holds; giving it back, closing a consumer or a connection."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from broker_core import control
from console.permissions import MANAGE, MANAGE_ACCOUNT, may, sight
from console.selectors import destinations
from console.services import connections as service
from console.services.audit import Actor
from console.services.looking import Declined

from .actor import actor_of
from .asked import asked, is_again, whole
from .telling import tell

PAGE_ROWS = 100
DIGITS_MAX = 16
"""Numbers of connections and consumers are below 2**53."""
DELIVERIES_MAX = 1000
GONE = "There is no such connection; it may have ended meanwhile."


@dataclass(slots=True, frozen=True)
class Row:
    """One of the node's rows, with its instants as such."""

    it: dict[str, Any]
    since: datetime | None
    oldest: float | None
    """Seconds for which it has held the first message that it holds; None: it holds none."""
    held: float | None
    """Of a delivery: for so many seconds."""
    accepted: datetime | None
    """Of a delivery: when the broker had its message."""

    @property
    def over(self) -> str:
        """Of a consumer: whose rights count for what it holds."""
        return service.destination_of(self.it)


@require_safe
def connections(request: HttpRequest) -> HttpResponse:
    wanted = asked(request, texts=())
    found = service.connections(actor_of(request), _whole(wanted["after"]), PAGE_ROWS, again=is_again(request))
    context = {"asked": wanted, "rows": [row_of(row) for row in found["connections"]], "following": found["next"]}
    return render(request, "console/connections.html", context)


@require_safe
def connection(request: HttpRequest, number: str) -> HttpResponse:
    actor, row, again = actor_of(request), _connection(request, number), is_again(request)
    holds = service.consumers(actor, 0, PAGE_ROWS, connection=int(number), again=again)
    context = {
        "row": row, "consumers": [row_of(each) for each in holds["consumers"]], "more": holds["next"], "may_close": may(actor, MANAGE_ACCOUNT),
        "transactions": _transactions(actor, int(number), again) if row.it["transactions"] else [],
    }  # fmt: skip
    return render(request, "console/connection.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def close(request: HttpRequest, number: str) -> HttpResponse:
    if request.method != "POST":
        return render(request, "console/connection_close.html", {"row": _connection(request, number)})
    try:
        outcome = service.disconnect(actor_of(request), int(number), request.POST.get("reason", "").strip())
    except control.InvalidRequest as error:
        context = {"row": _connection(request, number), "problem": str(error)}
        return render(request, "console/connection_close.html", context, status=400)
    tell(request, f"Connection {number}", "closed", outcome)
    return redirect("connections")


@require_safe
def consumers(request: HttpRequest) -> HttpResponse:
    """Of all destinations, of one (`destination`, its number), or of one connection (`connection`)."""
    wanted, actor = asked(request, texts=("destination", "connection")), actor_of(request)
    address = ""
    if wanted["destination"]:
        it = destinations.by_number(_whole(wanted["destination"]), sight(actor))
        if it is None:
            raise Http404("There is no such destination; it may have been destroyed meanwhile.")
        address = it.address
    of = _whole(wanted["connection"]) or None
    found = service.consumers(actor, _whole(wanted["after"]), PAGE_ROWS, destination=address, connection=of, again=is_again(request))
    context = {"asked": wanted, "rows": [row_of(row) for row in found["consumers"]], "following": found["next"], "address": address, "of": of}
    return render(request, "console/consumers.html", context)


@require_safe
def holds(request: HttpRequest, number: str) -> HttpResponse:
    """The messages that a consumer has and has not acknowledged."""
    wanted, actor = asked(request, texts=()), actor_of(request)
    found = service.unsettled(actor, int(number), _whole(wanted["after"]), PAGE_ROWS, again=is_again(request))
    context = {"asked": wanted, "number": number, "rows": [row_of(row) for row in found["deliveries"]], "following": found["next"]}
    context["may_release"] = may(actor, MANAGE, found["deliveries"][0]["destination"]) if found["deliveries"] else False
    return render(request, "console/holds.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def release(request: HttpRequest, number: str) -> HttpResponse:
    """The deliveries that are named, or all: at most a thousand at a time."""
    named = [_whole(each) for each in (request.POST or request.GET).getlist("delivery")[:DELIVERIES_MAX]]
    if request.method != "POST":
        held = service.unsettled(actor_of(request), int(number), 0, 1)["deliveries"]
        return render(request, "console/release.html", {"number": number, "named": named, "holds": bool(held)})
    outcome = service.release(actor_of(request), int(number), named or None)
    tell(request, f"Consumer {number}", "gives back", outcome)
    return redirect(reverse("holds", args=[number]))


@require_http_methods(["GET", "HEAD", "POST"])
def close_consumer(request: HttpRequest, number: str) -> HttpResponse:
    """And not its connection."""
    actor = actor_of(request)
    if request.method == "POST":
        try:
            outcome = service.detach(actor, int(number), request.POST.get("reason", "").strip())
        except control.InvalidRequest as error:
            return _asks_why(request, number, 400, str(error))
        tell(request, f"Consumer {number}", "closed", outcome)
        return redirect("consumers")
    return _asks_why(request, number)


def _asks_why(request: HttpRequest, number: str, status: int = 200, problem: str = "") -> HttpResponse:
    found = service.consumer(actor_of(request), int(number))
    if found is None:
        raise service.NoConsumer("There is no such consumer, or it has gone.")
    return render(request, "console/consumer_close.html", {"row": row_of(found), "problem": problem}, status=status)


def _transactions(actor: Actor, number: int, again: bool) -> list[tuple[dict[str, Any], datetime | None]]:
    """Each with when it is rolled back unless it has ended."""
    try:
        return [(each, _instant(each["ends_at"])) for each in service.transactions(actor, connection=number, again=again)["transactions"]]
    except Declined as error:
        raise Http404(GONE) from error


def _connection(request: HttpRequest, number: str) -> Row:
    found = service.connections(actor_of(request), 0, 1, only=int(number), again=is_again(request))["connections"]
    if not found:
        raise Http404(GONE)
    return row_of(found[0])


def row_of(row: dict[str, Any]) -> Row:
    since = row.get("since")
    return Row(row, _instant(since), _seconds(row.get("oldest_since")), _seconds(since), _instant(row.get("accepted_at")))


def _seconds(since: int | None) -> float | None:
    return None if since is None else max(timezone.now().timestamp() - since / 1000, 0.0)


def _instant(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def _whole(text: str) -> int:
    """What is no number counts as nothing said."""
    return whole(text, DIGITS_MAX)
