"""The overview: what needs attention first, then how the service is and what it holds, now and over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_safe

from console.live import texts
from console.permissions import LOOK, MANAGE_DESTINATION, may
from console.quantities import count, messages, milliseconds, octets
from console.selectors import attention, database, health, history, node, resets, totals
from console.services.history import SPANS

from .actor import actor_of
from .asked import asked
from .charts import Series

STATS = (
    ("in", "In /s", ""), ("out", "Out /s", ""), ("depth", "Messages held", ""), ("oldest", "Oldest message", ""), ("unsettled", "Unacknowledged", ""),
    ("dead", "Dead since start", ""), ("size", "Size", ""), ("scheduled", "Scheduled", "scheduled"), ("destinations", "Destinations", "destinations"),
    ("consumers", "Consumers", "consumers"), ("connections", "Connections", "connections"),
)  # fmt: skip
"""Names of cells, in the order of the page: what they are called, and the page where they lead."""
CURES = {"node": "nodes", "listeners": "nodes", "space": "nodes"}
"""Of what health finds: the page where something can be done."""


@dataclass(slots=True, frozen=True)
class Finding:
    tone: str
    text: str
    href: str
    action: str


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Of the whole broker; who may see some destinations only is shown these."""
    actor = actor_of(request)
    if not may(actor, LOOK):
        return redirect("destinations")
    status = node.node_status()
    wanted = asked(request, choices={"span": [span.name for span in SPANS]}, texts=())
    span = next(span for span in SPANS if span.name == wanted["span"])
    told = history.of_all(span)
    sums, since = totals.totals(), resets.of_all()
    context = {
        "asked": wanted,
        "spans": [(each.name, each.name) for each in SPANS],
        "node": status,
        "service": status,
        "listeners": health.listeners(status),
        "findings": findings(health.problems(status), attention.attention()),
        "stats": _stats(status, sums),
        "totals": resets.told(sums, since),
        "since": since,
        "reset": reverse("totals_reset_all") if may(actor, MANAGE_DESTINATION) else "",
        "times": told.times,
        "charts": charts_of(told),
        "database": [("Size", octets(database.size())), ("Server", database.version())],
    }
    return render(request, "console/overview.html", context)


def findings(problems: dict[str, str], found: attention.Attention) -> list[Finding]:
    """The worst first; each with where to go."""
    listed = [Finding("bad", sentence, _page(CURES.get(name, "")), "Nodes") for name, sentence in problems.items()]
    if found.in_doubt:
        oldest = f", the oldest for {milliseconds(found.in_doubt_ms)}" if found.in_doubt_ms is not None else ""
        text = f"{_things(found.in_doubt, 'transaction is', 'transactions are')} in doubt{oldest}."
        listed.append(Finding("bad", text, _page("transactions"), "Resolve"))
    if found.full:
        text = f"{_things(found.full, 'destination is', 'destinations are')} full: producers wait or are refused, or messages are removed."
        listed.append(Finding("bad", text, f"{reverse('destinations')}?show=full", "Show"))
    if found.dead:
        text = f"{messages(found.dead).capitalize()} on the dead message queue."
        listed.append(Finding("warn", text, _page("dead") or f"{reverse('destinations')}?q={attention.DEAD_QUEUE}", "Look and retry"))
    if found.failed_tasks:
        listed.append(Finding("warn", f"Tasks that failed when they last ran: {', '.join(found.failed_tasks)}.", _page("tasks"), "Tasks"))
    if found.failed_operations:
        text = f"{_things(found.failed_operations, 'operation', 'operations')} failed in the last 24 hours."
        listed.append(Finding("warn", text, _page("operations"), "Operations"))
    if found.unread:
        text = f"{_things(found.unread, 'queue has', 'queues have')} messages that nobody consumes."
        listed.append(Finding("warn", text, f"{reverse('destinations')}?show=unread&sort=oldest", "Show"))
    if found.paused:
        text = f"{_things(found.paused, 'destination is', 'destinations are')} paused."
        listed.append(Finding("info", text, f"{reverse('destinations')}?show=paused", "Show"))
    return listed


def charts_of(told: history.History) -> list[tuple[str, str, list[Series]]]:
    """Name, unit and lines of each."""
    rates = [Series("in", "in", told.accepted), Series("out", "out", told.settled)]
    return [
        ("Messages a second", "/s", rates),
        ("Messages held", "", [Series("held", "depth", told.depth), Series("unacknowledged", "out", told.unsettled)]),
        ("Dead a second", "/s", [Series("dead", "dead", told.dead)]),
    ]



def _stats(status: node.NodeStatus, sums: dict[str, Any] | None) -> list[dict[str, Any]]:
    cells = texts.of_overview(sums, status, apps.get_app_config("console").rates.of_sums(sums))
    return [{"label": label, "value": cells[name], "live": f"overview/{name}", "href": _page(page)} for name, label, page in STATS]


def _things(number: int, one: str, many: str) -> str:
    return f"{count(number)} {one if number == 1 else many}"


def _page(url_name: str) -> str:
    """Its address; empty: there is none of that name."""
    try:
        return reverse(url_name) if url_name else ""
    except NoReverseMatch:
        return ""
