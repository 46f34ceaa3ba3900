"""The nodes: the one that serves, those that stand by; what an administrator does with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from broker_core import control
from console.permissions import MANAGE_NODE, may
from console.selectors import health, node
from console.services import nodes as service
from console.services.audit import Actor, look, require
from console.services.requests import Outcome

from .actor import actor_of
from .asked import whole
from .telling import tell

DRAIN_SECONDS = 60
DIGITS_MAX = 9
NAME_CHARACTERS_MAX = 255
TONES = {node.SERVING: "good", node.STANDBY: "info", node.SILENT: "bad"}


@dataclass(slots=True, frozen=True)
class Verb:
    title: str
    sentence: str
    words: str
    done: str
    apply: Callable[[Actor, str, int], Outcome]
    """By the name of a node or a listener, and a number: seconds, or percent."""
    typed: bool = False
    usual: int = 0
    """Of the number."""


VERBS = {
    "quiesce": Verb(
        "Quiesce the node", "Nobody new may connect; who is connected goes on. It lasts until you end it, or until the node's term ends.", "Quiesce",
        "is quiesced", lambda actor, name, number: service.quiesce(actor),
    ),
    "unquiesce": Verb(
        "Let connections in again", "Clients may connect again. A drain that is going on ends.", "Let them in", "lets connections in",
        lambda actor, name, number: service.unquiesce(actor),
    ),
    "drain": Verb(
        "Drain the node", "Nobody new may connect and nothing more is delivered; each connection is closed as soon as it holds nothing and has nothing open.",
        "Drain", "drains", lambda actor, name, number: service.drain(actor, number), usual=DRAIN_SECONDS,
    ),
    "compact": Verb(
        "Compact segments", "What is settled gives its disk space back when all of its segment is settled, or when little of it is left. Now every segment "
        "that is closed, whichever destinations share it, is looked at, one a second, and what is unsettled in it is moved out.", "Compact",
        "compacts what it can",
        lambda actor, name, number: service.compact(actor, number), usual=service.COMPACT_PERCENT,
    ),
    "takeover": Verb(
        "Have it take over", "The node that serves closes its connections in order and stands by; this one serves. Clients connect again by themselves.",
        "Take over", "takes over", lambda actor, name, number: service.take_over(actor, name), typed=True,
    ),
    "pause": Verb(
        "Close the listener", "Its port is closed, on whichever node serves, until it is opened again. Who has come by it stays.", "Close it", "is closed",
        lambda actor, name, number: service.pause_listener(actor, name),
    ),
    "resume": Verb(
        "Open the listener", "Clients may come by it again.", "Open it", "is open again", lambda actor, name, number: service.resume_listener(actor, name)
    ),
}  # fmt: skip


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    look(actor, "node list")
    status = node.node_status()
    rows = [(each, TONES.get(each.state, "warn"), health.named(each.listeners)) for each in node.nodes()]
    context = {"rows": rows, "status": status, "problems": health.problems(status), "may_manage": may(actor, MANAGE_NODE)}
    return render(request, "console/nodes.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def do(request: HttpRequest, verb: str) -> HttpResponse:
    """One of VERBS, with the node or listener of parameter `name` where it is about one."""
    actor, it = actor_of(request), VERBS[verb]
    asked = request.POST if request.method == "POST" else request.GET
    name = asked.get("name", "").replace("\x00", "")[:NAME_CHARACTERS_MAX]
    require(actor, MANAGE_NODE, verb, name, reads=request.method != "POST")
    given = request.POST.get("seconds" if verb == "drain" else "percent")
    number = it.usual if given is None else whole(given, DIGITS_MAX, -1)  # which is refused
    context = {
        "title": f"{it.title}: {name}" if name else it.title, "sentence": it.sentence, "words": it.words, "danger": it.typed, "hidden": [("name", name)],
        "back": reverse("nodes"), "typed": name if it.typed else "", "seconds": number if verb == "drain" else None,
        "percent": number if verb == "compact" else None,
    }  # fmt: skip
    if request.method != "POST":
        return render(request, "console/asked_again.html", context)
    if it.typed and request.POST.get("typed", "") != name:
        return render(request, "console/asked_again.html", {**context, "problem": f"Type {name} to confirm."}, status=400)
    try:
        if verb == "compact" and "count" in request.POST:
            return render(request, "console/asked_again.html", {**context, "counted": service.compactable(actor, number)})
        outcome = it.apply(actor, name, number)
    except control.InvalidRequest as error:
        return render(request, "console/asked_again.html", {**context, "problem": str(error)}, status=400)
    tell(request, name or "The node", it.done, outcome)
    return redirect("nodes")
