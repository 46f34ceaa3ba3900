"""The settings in force: what each is, what it would be, and what it means. They are changed where the service is started."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.permissions import MANAGE_OPERATOR
from console.selectors import configuration
from console.services.audit import require

from .actor import actor_of
from .asked import asked

SHOWS = (("", "All"), ("changed", "Other than the default"))


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    require(actor_of(request), MANAGE_OPERATOR, "settings", reads=True)
    wanted = asked(request, choices={"show": [value for value, _ in SHOWS]})
    words = wanted["q"].lower()
    sections: dict[str, list[configuration.Setting]] = {}
    for each in configuration.in_force():
        if (each.changed or not wanted["show"]) and (words in each.variable.lower() or words in each.reason.lower()):
            sections.setdefault(each.section, []).append(each)
    return render(request, "console/settings.html", {"asked": wanted, "sections": list(sections.items()), "shows": SHOWS})
