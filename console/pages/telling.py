"""What became of what an operator asked for, in words; and the pages that say that it cannot be shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html

from broker_core import control
from console.quantities import messages as messages_of
from console.services.looking import Declined, NodeSilent, TableGone, TooSlow
from console.services.refusals import NotThere
from console.services.requests import Outcome

_COUNTS = (
    ("purged", "discarded"), ("discarded", "discarded"), ("scheduled", "discarded that were not due yet"), ("outstanding", "kept with consumers"),
    ("released", "given back"), ("left", "left with the consumer"),
)  # fmt: skip


def tell(request: HttpRequest, what: str, done: str, outcome: Outcome) -> None:
    """As toasts of the next page. `what`: an address or another name of what it was about; `done`: the participle."""
    if outcome.answer is None:
        messages.warning(
            request,
            f"{what}: no node has answered request {outcome.request} yet. It will be applied if one does within "
            f"{control.DEADLINE_MS // 1000} s of being filed, and not later.",
        )
    elif outcome.answer.done:
        messages.success(request, f"{what} {done}{_particulars(outcome.answer.result)}.")
        if outcome.answer.result.get("undo"):
            back = reverse("undo_change", args=[outcome.answer.result["undo"], "back"])
            messages.info(request, format_html('It can be undone for a while. <a data-dialog href="{}">Undo</a>', back))
        for warning in outcome.answer.result.get("warnings", ()):
            messages.warning(request, f"{what}: {warning}.")
    else:
        messages.error(request, f"{what}: {outcome.refused}")


def _particulars(result: dict[str, Any]) -> str:
    parts = [f"{messages_of(result[name])} {word}" for name, word in _COUNTS if isinstance(result.get(name), int) and result[name]]
    return f": {', '.join(parts)}" if parts else ""


class Unshown:
    """Middleware: a page whose services find that no node answers, that what it is about is not there, or that the node says no, says so in a sentence."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, NodeSilent):
            return _unshown(request, 503, "Unknown", "No node answers, and only a node knows. It is shown again as soon as one serves.")
        if isinstance(exception, TooSlow | TableGone):
            return _unshown(request, 503, "Not to be had now", "What was looked at moved, or was too much for one look. Look again.")
        if isinstance(exception, Declined):
            return _unshown(request, 409, "The node says no", f"{str(exception)[:1].upper()}{str(exception)[1:]}.")
        if isinstance(exception, NotThere):
            return _unshown(request, 404, "Not there", str(exception))
        return None


def _unshown(request: HttpRequest, status: int, title: str, sentence: str) -> HttpResponse:
    return render(request, "console/unshown.html", {"title": title, "sentence": sentence}, status=status)
