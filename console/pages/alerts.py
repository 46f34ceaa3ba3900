"""Alerts: what fires, the rules, the history of what was told to whom."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.permissions import MANAGE_ALERTS, may
from console.selectors import alerts
from console.selectors.alert_values import METRICS
from console.services import alerts as service
from console.services.audit import look, require

from .actor import actor_of
from .asked import asked, whole
from .attribute_form import Attribute, AttributeForm

DIGITS_MAX = 18
COMPARATORS = (">", "<")
ATTRIBUTES = (
    Attribute("metric", "What is looked at.", choices=tuple(METRICS), required=True),
    Attribute("pattern", "Of destinations: which, as in queue/orders.* or queue/> for all queues. Empty for what is of the whole broker."),
    Attribute("comparator", "On which side of the threshold it is an alert.", choices=COMPARATORS, required=True),
    Attribute("threshold", "A number, in the unit of the metric.", float, required=True),
    Attribute("for_seconds", "It fires when it has been so for this long.", int, 0, service.FOR_SECONDS_MAX),
    Attribute("webhook", "Who is told, by POST. Empty: it keeps the one it has, or is in the history only."),
    Attribute("secret", "What is told is signed with it (HMAC-SHA-256). Empty: it keeps the one it has.", secret=True),
    Attribute("enabled", "Otherwise nobody looks.", bool),
)
FIELDS = tuple(each.name for each in ATTRIBUTES)
TONES = {service.FIRING: "bad", service.RESOLVED: "good", service.TEST: "info"}
DELIVERY_TONES = {service.DELIVERED: "good", service.WAITING: "info", service.GIVEN_UP: "bad"}


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    wanted, actor = asked(request, texts=()), actor_of(request)
    look(actor, "alert list")
    rules, following = alerts.page(wanted["after"])
    context = {"asked": wanted, "firing": alerts.firing(), "rules": rules, "following": following, "may_manage": may(actor, MANAGE_ALERTS)}
    return render(request, "console/alerts.html", context)


@require_safe
def history(request: HttpRequest) -> HttpResponse:
    wanted = asked(request, choices={"undelivered": ("", "1")}, texts=("alert",))
    look(actor_of(request), "alert history")
    after = wanted["after"]
    before = whole(after, DIGITS_MAX)
    found, following = alerts.events(before, alert=wanted["alert"], undelivered=bool(wanted["undelivered"]))
    rows = [(event, TONES.get(event.state, ""), DELIVERY_TONES.get(event.delivery, "")) for event in found]
    return render(request, "console/alert_history.html", {"asked": wanted, "rows": rows, "following": following})


@sensitive_post_parameters("secret", "webhook")
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    require(actor_of(request), MANAGE_ALERTS, "alert create", reads=request.method != "POST")
    return _form(request, None, request.POST.get("name", "").strip())


@sensitive_post_parameters("secret", "webhook")
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest) -> HttpResponse:
    """The one of parameter `name`."""
    require(actor_of(request), MANAGE_ALERTS, "alert update", reads=request.method != "POST")
    rule = _found(request)
    return _form(request, rule, rule.name)


def _form(request: HttpRequest, rule: alerts.Rule | None, name: str) -> HttpResponse:
    shown: dict[str, Any] = {"comparator": ">", "enabled": True, "for_seconds": 0}
    if rule is not None:
        shown = {field: getattr(rule, field) for field in FIELDS if field not in service.SECRETS}
    form, problem = AttributeForm(ATTRIBUTES, shown, request.POST if request.method == "POST" else None), ""
    if request.method == "POST" and form.is_valid():
        said = form.said if rule is None else {"pattern": "", **form.said}
        try:
            warnings = service.create(actor_of(request), name, said) if rule is None else service.update(actor_of(request), name, said)
        except service.InvalidAlert as error:
            problem = str(error)
        else:
            messages.success(request, f"{name} is looked at from now on.")
            for warning in warnings:
                messages.warning(request, f"{name}: {warning}.")
            return redirect("alerts")
    context = {"form": form, "name": name, "rule": rule, "problem": problem, "metrics": METRICS}
    return render(request, "console/alert.html", context, status=400 if problem or form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest) -> HttpResponse:
    require(actor_of(request), MANAGE_ALERTS, "alert delete", reads=request.method != "POST")
    name = _found(request).name
    if request.method == "POST":
        service.delete(actor_of(request), name)
        messages.success(request, f"{name} is deleted.")
        return redirect("alerts")
    sentence = "Nobody looks any more. Its history stays; what its webhook was not told yet it is not told."
    context = {"title": f"Delete alert {name}", "sentence": sentence, "words": "Delete it", "danger": True, "hidden": [("name", name)]}
    return render(request, "console/asked_again.html", {**context, "back": reverse("alerts")})


@require_POST
def test(request: HttpRequest) -> HttpResponse:
    name = request.POST.get("name", "")
    try:
        event = service.test(actor_of(request), name)
    except service.NoAlert:
        raise
    except service.InvalidAlert as error:
        messages.error(request, str(error))
    else:
        if event.delivery == service.DELIVERED:
            messages.success(request, f"The webhook of {name} has taken the test.")
        else:
            messages.error(request, f"The webhook of {name} has not taken the test: {event.problem}")
    return redirect("alerts")


def _found(request: HttpRequest) -> alerts.Rule:
    rule = alerts.by_name((request.POST if request.method == "POST" else request.GET).get("name", ""))
    if rule is None:
        raise Http404("There is no such alert.")
    return rule
