"""Operations on many messages: how far each is; cancelling one."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from console.permissions import may, sight
from console.selectors import destinations, operations
from console.selectors.operations import Operation
from console.services import operations as service

from .actor import actor_of
from .asked import asked, whole
from .item_results import item_results
from .telling import tell

DIGITS_MAX = 18
TONES = {"waiting": "", "running": "info", "done": "good", "cancelled": "warn", "failed": "bad"}


@dataclass(slots=True, frozen=True)
class Row:
    it: Operation
    tone: str
    may_cancel: bool

    @property
    def live(self) -> str:
        """Of the keys of its live cells."""
        return f"operations/{self.it.number}"

    @property
    def shape(self) -> str:
        """What is another when the rest of its page is."""
        return f"{self.live}/state"


def row_of(it: Operation, may_cancel: bool = False) -> Row:
    return Row(it, TONES[it.state], it.ended_at is None and may_cancel)


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    wanted, actor = asked(request, choices={"open": ("", "1")}, texts=()), actor_of(request)
    after = wanted["after"]
    before = whole(after, DIGITS_MAX)
    found, following = operations.page(before, open_only=bool(wanted["open"]), within=sight(actor))
    rows = [row_of(it, may(actor, service.RIGHTS[it.verb], it.address)) for it in found]
    return render(request, "console/operations.html", {"asked": wanted, "rows": rows, "following": following})


@require_safe
def one(request: HttpRequest, number: str) -> HttpResponse:
    actor, it = actor_of(request), _found(request, number)
    where = destinations.by_address(it.address, sight(actor))
    row = row_of(it, may(actor, service.RIGHTS[it.verb], it.address))
    context = {"row": row, "conditions": it.conditions, "items": item_results(actor, it), "where": where}
    return render(request, "console/operation.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def cancel(request: HttpRequest, number: str) -> HttpResponse:
    it = _found(request, number)
    if request.method != "POST":
        return render(request, "console/operation_cancel.html", {"it": it})
    tell(request, f"Operation {it.number}", "cancelled", service.cancel(actor_of(request), it))
    return redirect("operation", number=number)


def _found(request: HttpRequest, number: str) -> Operation:
    it = operations.by_number(int(number), sight(actor_of(request)))
    if it is None:
        raise Http404("There is no such operation; old ones are forgotten.")
    return it
