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
from console.selectors import alerts, attention, database, health, history, node, resets, totals, warnings
from console.services.history import SPANS

from .actor import actor_of
from .asked import asked
from .charts import Series

STATS = (
    ("in", "In /s", ""), ("out", "Out /s", ""), ("depth", "Messages held", ""), ("oldest", "Oldest message", ""), ("unsettled", "Unacknowledged", ""),
    ("unsettled_oldest", "Oldest unacknowledged", ""), ("in_doubt", "In doubt", "transactions"), ("dead", "Dead since start", ""), ("size", "Size", ""),
    ("scheduled", "Scheduled", "scheduled"), ("destinations", "Destinations", "destinations"), ("consumers", "Consumers", "consumers"),
    ("connections", "Connections", "connections"),
)  # fmt: skip
"""Names of cells, in the order of the page: what they are called, and the page where they lead."""
CURES = {
    "node": ("nodes", "Nodes"), "quiesced": ("nodes", "Nodes"), "listeners": ("nodes", "Nodes"), "space": ("nodes", "Nodes"), "lag": ("nodes", "Nodes"),
    "schedule": ("tasks", "Tasks"), "links": ("links", "Links"), "memory": ("destinations", "Destinations"),
}  # fmt: skip
"""Of what health and warnings find: the page where something can be done, and what leads there. None: it is done outside."""


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
    sums, since, found = totals.totals(), resets.of_all(), attention.attention()
    context = {
        "asked": wanted,
        "spans": [(each.name, each.name) for each in SPANS],
        "node": status,
        "service": status,
        "listeners": health.listeners(status),
        "findings": findings(health.problems(status), warnings.warnings(status), alerts.firing(attention.FIRING_SHOWN + 1), found),
        "stats": _stats(status, sums, found.in_doubt),
        "totals": resets.told(sums, since),
        "since": since,
        "reset": reverse("totals_reset_all") if may(actor, MANAGE_DESTINATION) else "",
        "times": told.times,
        "charts": charts_of(told),
        "database": [("Size", octets(database.size())), ("Server", database.version())],
    }
    return render(request, "console/overview.html", context)


def findings(problems: dict[str, str], cautions: dict[str, str], firing: list[alerts.Firing], found: attention.Attention) -> list[Finding]:
    """The worst first; each with where to go."""
    listed = [_finding("bad", name, sentence) for name, sentence in problems.items()]
    if firing:
        listed.append(Finding("bad", _alerts(firing), _page("alerts"), "Alerts"))
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
    listed += [_finding("warn", name, sentence) for name, sentence in cautions.items() if name not in attention.TOLD_OF]
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


def _finding(tone: str, name: str, sentence: str) -> Finding:
    page, action = CURES.get(name, ("", ""))
    return Finding(tone, f"{sentence.removesuffix('.')}.", _page(page), action)


def _alerts(firing: list[alerts.Firing]) -> str:
    """The newest by name; each may be one destination's."""
    named = [f"{each.alert} ({each.destination})" if each.destination else each.alert for each in firing[: attention.FIRING_SHOWN]]
    more = " and more" if len(firing) > len(named) else ""
    return f"{'Alert' if len(firing) == 1 else 'Alerts'} firing: {', '.join(named)}{more}."


def _stats(status: node.NodeStatus, sums: dict[str, Any] | None, in_doubt: int) -> list[dict[str, Any]]:
    cells = texts.of_overview(sums, status, apps.get_app_config("console").rates.of_sums(sums), in_doubt)
    return [{"label": label, "value": cells[name], "live": f"overview/{name}", "href": _page(page)} for name, label, page in STATS]


def _things(number: int, one: str, many: str) -> str:
    return f"{count(number)} {one if number == 1 else many}"


def _page(url_name: str) -> str:
    """Its address; empty: there is none of that name."""
    try:
        return reverse(url_name) if url_name else ""
    except NoReverseMatch:
        return ""
