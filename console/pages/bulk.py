"""What one does with messages: with those that were picked, or with all that a search finds. How many they are is known before the button is there: of
picked ones it is plain, and what a search finds is counted by a dry run, whose very conditions and count the operation then gets."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from broker_core import control
from console.permissions import may, sight
from console.quantities import messages as messages_of
from console.selectors import operations
from console.selectors.destinations import Destination
from console.selectors.operations import Operation
from console.services import operations as service

from .actor import actor_of
from .destination_tabs import tabs
from .finding import destination_of, to_messages
from .message_search import Search, WrongKey, key_of, search_of, standing
from .operations import row_of
from .telling import tell

PICKED_MAX = 60


@dataclass(slots=True, frozen=True)
class Verb:
    title: str
    sentence: str
    """What will happen."""
    final: bool = False
    """Nothing brings it back: the destination's name is to be typed."""
    aimed: bool = False
    ranked: bool = False


VERBS = {
    "retry": Verb("Retry", "Each goes back to where it died, as a new delivery; it leaves here."),
    "move": Verb("Move", "They leave here and are placed in another destination.", aimed=True),
    "copy": Verb("Copy", "They stay here, and a copy of each is placed in another destination.", aimed=True),
    "reprioritize": Verb("Change priority of", "They are placed anew, behind what waits with that priority.", ranked=True),
    "expire": Verb("Expire", "They end as if their time to live had passed: to the dead message queue, or where the settings say."),
    "delete": Verb(
        "Delete", "They are discarded; nothing goes to the dead message queue. What is stored can be brought back for a while, unless the settings say no.",
        final=True,
    ),
}  # fmt: skip


class NotAgreed(ValueError):
    """What must be typed or given was not; the message is a sentence."""


@require_http_methods(["GET", "HEAD", "POST"])
def act(request: HttpRequest, number: str) -> HttpResponse:
    """`verb`; `m`: keys of picked messages, else the conditions of a search; `counted`: the number of the dry run that counted what it finds."""
    it, search = destination_of(request, number), search_of(request)
    verb = request.POST.get("verb") or request.GET.get("verb", "")
    if verb not in VERBS:
        raise Http404("There is no such operation.")
    problem = ""
    try:
        picked = _picked(request)
        counted = _counted(request, it, verb)
    except WrongKey as error:
        raise Http404("A message's key is like 4-123.") from error
    if request.GET.get("picked") and not picked:
        messages.warning(request, "Tick the messages that you mean first.")
        return redirect(_back(it, search))
    if request.method == "POST":
        try:
            return _done(request, it, search, verb, picked, counted)
        except (control.InvalidRequest, NotAgreed) as error:
            problem = str(error)
    right = service.RIGHTS[verb]
    context = {
        "it": it, "verb": verb, "words": VERBS[verb], "asked": search.asked, "search": search, "picked": picked, "counted": counted, "problem": problem,
        "tabs": tabs(it, "messages"), "button": _button(verb, picked, counted), "may_do": may(actor_of(request), right, it.address), "right": right,
        "destination": request.POST.get("destination", ""), "counting": counted and row_of(counted), "again": request.get_full_path(),
        "back": _back(it, search),
    }  # fmt: skip
    return render(request, "console/act.html", context, status=400 if problem else 200)


def _picked(request: HttpRequest) -> list[tuple[int, int]]:
    """Raises WrongKey."""
    return [key_of(text) for text in (request.POST.getlist("m") or request.GET.getlist("m"))[:PICKED_MAX]]


def _counted(request: HttpRequest, it: Destination, verb: str) -> Operation | None:
    """The dry run, if it is this person's and about the same."""
    text = request.GET.get("counted", "")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        return None
    found = operations.by_number(int(text), sight(actor_of(request)))
    if found is None or not found.dry_run or (found.address, found.verb, found.requested_by) != (it.address, verb, actor_of(request).name):
        raise Http404("Nothing was counted so.")
    return found


def _button(verb: str, picked: list[Any], counted: Operation | None) -> str:
    """What is on the button; empty: there is none, for nobody knows how many it would be, or they are none."""
    number = len(picked) if picked else counted.done if counted is not None and counted.state == "done" else 0
    return f"{VERBS[verb].title} {messages_of(number)}" if number else ""


def _done(request: HttpRequest, it: Destination, search: Search, verb: str, picked: list[Any], counted: Operation | None) -> HttpResponse:
    """Begin it, or the counting. Raises InvalidRequest, NotAgreed, PermissionDenied."""
    if search.problems:
        raise NotAgreed(next(iter(search.problems.values())))
    if counted is not None:
        return _begun(request, it, _agreed(request, it, verb, {**counted.arguments, "limit": counted.done}, counted))
    arguments: dict[str, Any] = {"verb": verb}
    if search.conditions and not picked:
        arguments["filter"] = standing(search.conditions, int(time.time() * 1000))
    if search.subscription is not None:
        arguments["subscription"] = search.subscription
    if VERBS[verb].aimed:
        arguments["destination"] = request.POST.get("destination", "").strip().removeprefix("/")
    if VERBS[verb].ranked:
        text = request.POST.get("priority", "")
        if text not in set("0123456789"):
            raise NotAgreed("A priority is a number from 0 to 9.")
        arguments["priority"] = int(text)
    if picked:
        return _begun(request, it, _agreed(request, it, verb, {**arguments, "messages": [list(key) for key in picked]}, None))
    outcome = service.begin(actor_of(request), it.address, {**arguments, "dry_run": True})
    if not outcome.done:
        raise NotAgreed(outcome.refused or f"No node has answered yet: request {outcome.request} is lost unless one does.")
    service.awaited(outcome.request)
    query = search.asked.query
    return redirect(f"{request.path}?{query}{'&' if query else ''}verb={verb}&counted={outcome.request}")


def _agreed(request: HttpRequest, it: Destination, verb: str, arguments: dict[str, Any], counted: Operation | None) -> dict[str, Any]:
    """Raises NotAgreed."""
    if counted is not None and (counted.state != "done" or not counted.done):
        raise NotAgreed("They are not counted yet, or there are none.")
    if VERBS[verb].final and request.POST.get("typed", "") != it.address:
        raise NotAgreed(f"Type {it.address} to say that you mean it.")
    return {name: value for name, value in arguments.items() if name != "dry_run"}


def _begun(request: HttpRequest, it: Destination, arguments: dict[str, Any]) -> HttpResponse:
    """Raises NotAgreed."""
    actor = actor_of(request)
    outcome = service.begin(actor, it.address, arguments)
    if outcome.answer is None:
        tell(request, it.address, arguments["verb"], outcome)
        return to_messages(actor, it)
    if not outcome.done:
        raise NotAgreed(outcome.refused)
    service.awaited(outcome.request, 0.5)
    return redirect("operation", outcome.request)


def _back(it: Destination, search: Search) -> str:
    query = search.asked.query
    return reverse("messages_of", args=[it.number]) + (f"?{query}" if query else "")


def with_origin(reason: str, origin: str) -> str:
    """The query of a search for dead messages."""
    return urlencode({name: value for name, value in (("reason", reason), ("origin", origin)) if value})
