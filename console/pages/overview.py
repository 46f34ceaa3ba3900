"""The overview: how the service is, and what it holds."""

from typing import Any

from django.apps import apps
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.live import texts
from console.permissions import LOOK, may
from console.selectors import health, node, totals

from .actor import actor_of


STATS = (
    ("in", "In /s", ""), ("out", "Out /s", ""), ("depth", "Depth", ""), ("oldest", "Oldest", ""), ("unsettled", "Unsettled", ""), ("dead", "Dead so far", ""),
    ("size", "Size", ""), ("scheduled", "Scheduled", ""), ("destinations", "Destinations", "destinations"), ("consumers", "Consumers", ""),
    ("connections", "Connections", ""),
)  # fmt: skip
"""Names of cells, in the order of the page: what they are called, and where they lead."""


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Of the whole broker; who may see some destinations only is shown these."""
    if not may(actor_of(request), LOOK):
        return redirect("destinations")
    status = node.node_status()
    context = {"node": status, "service": status, "listeners": health.listeners(status), "problems": health.problems(status), "stats": _stats(status)}
    return render(request, "console/overview.html", context)


def _stats(status: node.NodeStatus) -> list[dict[str, Any]]:
    sums = totals.totals()
    cells = texts.of_overview(sums, status, apps.get_app_config("console").rates.of_sums(sums))
    return [{"label": label, "value": cells[name], "live": f"overview/{name}", "href": reverse(href) if href else ""} for name, label, href in STATS]
