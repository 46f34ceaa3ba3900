"""Rules of access of client accounts; what roles and operators may do with destinations."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from broker_core.control import OPERATIONS, Rule
from console.permissions import GIVEN_ROLES, MANAGE_ACCOUNT, MANAGE_OPERATOR, VERBS, may
from console.selectors import accounts, operators
from console.services import access as service
from console.services import grants as grant_service
from console.services.audit import look, require

from .actor import actor_of
from .asked import asked, whole

DIGITS_MAX = 9
NAME_CHARACTERS_MAX = 300


@require_safe
def rules(request: HttpRequest) -> HttpResponse:
    wanted, actor = asked(request, texts=()), actor_of(request)
    look(actor, "access list")
    shown, following = accounts.access_page(_whole(wanted["after"]))
    context = {"asked": wanted, "rules": shown, "following": following, "operations": OPERATIONS, "may_manage": may(actor, MANAGE_ACCOUNT)}
    return render(request, "console/access.html", context)


@require_POST
def create_rule(request: HttpRequest) -> HttpResponse:
    said = {name: request.POST.get(name, "").strip()[:NAME_CHARACTERS_MAX] for name in ("resource", "operation", "principal")}
    rule = Rule(said["resource"], said["operation"], request.POST.get("allow") == "yes", said["principal"], request.POST.get("group") == "on")
    try:
        made = service.create(actor_of(request), rule)
    except service.InvalidRule as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"Rule {made.number} holds from now on.")
        for warning in made.warnings:
            messages.warning(request, f"{warning[0].upper()}{warning[1:]}.")
    return redirect("access")


@require_http_methods(["GET", "HEAD", "POST"])
def delete_rule(request: HttpRequest, number: str) -> HttpResponse:
    actor = actor_of(request)
    if request.method == "POST":
        for warning in service.delete(actor, int(number)):
            messages.warning(request, f"{warning[0].upper()}{warning[1:]}.")
        messages.success(request, f"Rule {number} is deleted.")
        return redirect("access")
    look(actor, "access query")
    rule = accounts.access_rule(int(number))
    if rule is None:
        raise Http404("There is no such rule.")
    who = f"the group {rule.principal}" if rule.group else "everybody" if rule.principal == "*" else rule.principal
    sentence = f"{who} {'may' if rule.allow else 'may not'} {rule.operation} {rule.resource}: without this rule, the next one that fits decides, at once."
    context = {"title": f"Delete rule {number}", "sentence": f"{sentence[0].upper()}{sentence[1:]}", "words": "Delete it", "danger": True, "hidden": []}
    return render(request, "console/asked_again.html", {**context, "back": reverse("access")})


@require_safe
def grants(request: HttpRequest) -> HttpResponse:
    wanted = asked(request)
    shown, following = operators.grants_for(actor_of(request), _whole(wanted["after"]), search=wanted["q"])
    context = {"asked": wanted, "grants": shown, "following": following, "verbs": VERBS, "roles": GIVEN_ROLES}
    return render(request, "console/grants.html", context)


@require_POST
def create_grant(request: HttpRequest) -> HttpResponse:
    said = {name: request.POST.get(name, "").strip()[:NAME_CHARACTERS_MAX] for name in ("role", "operator", "pattern")}
    try:
        grant_service.create(actor_of(request), said["pattern"], request.POST.getlist("verbs"), role=said["role"], operator=said["operator"])
    except grant_service.InvalidGrant as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{said['role'] or said['operator']} may that with {said['pattern']} from now on.")
    return redirect("grants")


@require_http_methods(["GET", "HEAD", "POST"])
def change_grant(request: HttpRequest, number: str) -> HttpResponse:
    grant = operators.grant_for(actor_of(request), int(number))
    if grant is None:
        raise Http404("There is no such grant.")
    context = {"grant": grant, "verbs": VERBS}
    if request.method != "POST":
        return render(request, "console/grant.html", context)
    try:
        grant_service.update(actor_of(request), int(number), request.POST.getlist("verbs"))
    except grant_service.InvalidGrant as error:
        return render(request, "console/grant.html", {**context, "problem": str(error)}, status=400)
    messages.success(request, f"{grant.role or grant.operator} may that with {grant.pattern} from now on.")
    return redirect("grants")


@require_http_methods(["GET", "HEAD", "POST"])
def delete_grant(request: HttpRequest, number: str) -> HttpResponse:
    actor = actor_of(request)
    require(actor, MANAGE_OPERATOR, "grant delete", number, reads=request.method != "POST")
    grant = operators.grant_for(actor, int(number))
    if grant is None:
        raise Http404("There is no such grant.")
    who = grant.role or grant.operator
    if request.method == "POST":
        grant_service.delete(actor, int(number))
        messages.success(request, f"{who} has that with {grant.pattern} no more.")
        return redirect("grants")
    sentence = f"{who} may {', '.join(grant.verbs)} with {grant.pattern} only where another grant says so."
    context = {"title": "Take it back", "sentence": sentence, "words": "Take it back", "danger": True, "hidden": [], "back": reverse("grants")}
    return render(request, "console/asked_again.html", context)


def _whole(text: str) -> int:
    return whole(text, DIGITS_MAX)
