"""Replays from the archive: what was sent again, how far that is, beginning one, stopping it."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from broker_core.pipeline.replays import ASKED, FAILED, IDENTIFIERS_MAX, RATE, RUNNING, InvalidReplay, Wanted
from console.permissions import BROWSE_BODIES, SEND, may, sight
from console.selectors import destinations, pipeline
from console.selectors.pipeline import Replay
from console.services import replays as service
from console.services.audit import look

from .actor import actor_of
from .asked import asked, whole
from .message_search import instant_of

DIGITS_MAX, RATE_DIGITS_MAX = 18, 9
TONES = {"asked": "", "running": "info", "done": "good", "failed": "bad", "cancelled": "warn"}
TEXTS = ("destination", "into", "from", "to", "selector", "identifiers", "rate")
INSTANTS = ("from", "to")
TABS = (("Reports", "/reports"), ("Replays", "/reports/replays"))


@dataclass(slots=True, frozen=True)
class Row:
    it: Replay
    tone: str
    may_cancel: bool
    may_ask_again: bool
    """It failed, and goes on where it was."""


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """The newest first."""
    actor, wanted = actor_of(request), asked(request, texts=())
    look(actor, "replay list")
    found, following = pipeline.replays(whole(wanted["after"], DIGITS_MAX))
    context = {"asked": wanted, "rows": [_row(request, it) for it in found], "following": following, "problem": pipeline.problem(), "tabs": tabs("Replays")}
    return render(request, "console/replays.html", context)


def tabs(current: str) -> list[tuple[str, str, bool]]:
    return [(words, href, words == current) for words, href in TABS]


@require_safe
def one(request: HttpRequest, number: str) -> HttpResponse:
    row = _row(request, _found(request, number))
    it, sees = row.it, sight(actor_of(request))
    context = {"row": row, "source": destinations.by_address(it.address, sees), "target": destinations.by_address(it.into, sees), "tabs": tabs("")}
    return render(request, "console/replay.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """What is asked for as it was before, and is not over, goes on."""
    told = request.POST if request.method == "POST" else request.GET
    given = {name: told.get(name, "").strip() for name in TEXTS}
    given["rate"] = given["rate"] or str(RATE)
    wrong: tuple[str, str] | None = None
    if request.method == "POST":
        try:
            number = service.ask(actor_of(request), _wanted(given))
        except InvalidReplay as error:
            wrong = error.field, str(error)
        else:
            messages.success(request, f"Replay {number} begins as soon as the data pipeline has time for it.")
            return redirect("replay", number)
    problem = wrong[1] if wrong else pipeline.problem()
    given |= {name: _in_field(given[name]) for name in INSTANTS}
    context = {"given": given, "problem": problem, "field": wrong[0] if wrong else "", "identifiers_max": IDENTIFIERS_MAX}
    return render(request, "console/replay_create.html", context, status=400 if wrong else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def cancel(request: HttpRequest, number: str) -> HttpResponse:
    it = _found(request, number)
    if request.method != "POST":
        return render(request, "console/replay_cancel.html", {"it": it})
    if service.cancel(actor_of(request), it):
        messages.success(request, f"Replay {it.number} sends nothing more.")
    else:
        messages.warning(request, f"Replay {it.number} is over.")
    return redirect("replay", it.number)


def _wanted(given: dict[str, str]) -> Wanted:
    """Raises InvalidReplay for what could not be said to a service."""
    instants = {}
    for name in INSTANTS:
        instants[name] = instant_of(given[name]) if given[name] else None
        if given[name] and instants[name] is None:
            raise InvalidReplay(name, f"{given[name][:40]!r} is no date and time")
    rate = whole(given["rate"], RATE_DIGITS_MAX)
    address, into = (given[name].removeprefix("/") for name in ("destination", "into"))
    return Wanted(address, into, instants["from"], instants["to"], given["selector"], tuple(given["identifiers"].split()), rate)


def _in_field(text: str) -> str:
    """An instant as a browser's field for date and time shows it: of anything else it shows nothing, and what is sent then is without a bound."""
    at = instant_of(text) if text else None
    return "" if at is None else at.replace(tzinfo=None).isoformat(timespec="milliseconds").removesuffix(".000")


def _row(request: HttpRequest, it: Replay) -> Row:
    actor = actor_of(request)
    sends = may(actor, SEND, it.into)
    return Row(it, TONES[it.state], sends and it.state in (ASKED, RUNNING, FAILED), sends and it.state == FAILED and may(actor, BROWSE_BODIES, it.address))


def _found(request: HttpRequest, number: str) -> Replay:
    actor = actor_of(request)
    look(actor, "replay query")
    it = pipeline.replay(int(number))
    if it is None:
        raise Http404("There is no such replay.")
    return it
