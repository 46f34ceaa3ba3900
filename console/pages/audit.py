"""The audit trail."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.selectors import audit
from console.services.audit import look

from .actor import actor_of
from .asked import whole

DIGITS_MAX = 18


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    look(actor_of(request), "audit")
    before = request.GET.get("before", "")
    entries, following = audit.page(whole(before, DIGITS_MAX))
    return render(request, "console/audit.html", {"entries": entries, "following": following})
