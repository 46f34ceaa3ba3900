"""The overview: how the service is, and what it holds."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.permissions import LOOK, may
from console.quantities import count, milliseconds, octets
from console.selectors import health, node, totals

from .actor import actor_of


@require_safe
def overview(request: HttpRequest) -> HttpResponse:
    """Of the whole broker; who may see some destinations only is shown these."""
    if not may(actor_of(request), LOOK):
        return redirect("destinations")
    status = node.node_status()
    context = {"node": status, "service": status, "listeners": health.listeners(status), "problems": health.problems(status), "stats": _stats(status)}
    return render(request, "console/overview.html", context)


def _stats(status: node.NodeStatus) -> list[dict[str, Any]]:
    sums = totals.totals() or {}
    return [
        {"label": "Destinations", "value": count(sums.get("destinations")), "href": reverse("destinations")},
        {"label": "Depth", "value": count(sums.get("depth"))},
        {"label": "Size", "value": octets(sums.get("octets"))},
        {"label": "Unsettled", "value": count(sums.get("unsettled"))},
        {"label": "Oldest", "value": "none" if sums.get("depth") == 0 else milliseconds(sums.get("oldest_ms"))},
        {"label": "Consumers", "value": count(sums.get("consumers"))},
        {"label": "Connections", "value": count(status.connections)},
    ]
