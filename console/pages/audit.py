"""The audit trail: all of it, or what somebody did, what was done, to what, and when."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.selectors import audit
from console.services.audit import look

from .actor import actor_of
from .asked import asked, whole
from .message_search import instant_of

DIGITS_MAX = 18
TEXTS, INSTANTS = ("who", "what", "address"), ("since", "until")


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    look(actor_of(request), "audit")
    given = asked(request, choices={"refused": ("", "1")}, texts=(*TEXTS, *INSTANTS))
    instants = {name: instant_of(given[name]) for name in INSTANTS}
    problems = {name: "An instant is like 2026-11-22T08:30 (UTC)." for name in INSTANTS if given[name] and instants[name] is None}
    if problems:
        return render(request, "console/audit.html", {"asked": given, "problems": problems}, status=400)
    wanted = audit.Wanted(**{name: given[name] or None for name in TEXTS}, **instants, refused=bool(given["refused"]))
    entries, following = audit.page(whole(given["after"], DIGITS_MAX), wanted=wanted)
    return render(request, "console/audit.html", {"asked": given, "entries": entries, "following": following})
