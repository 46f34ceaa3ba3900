"""Operators of the console, for superusers; and one's own password, for everybody who is logged in."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.permissions import GRANTABLE, MANAGE_OPERATOR, ROLES
from console.selectors import operators
from console.services import login
from console.services import operators as service
from console.services.audit import Actor, require

from .actor import actor_of
from .asked import asked


def _set_rights(actor: Actor, name: str, asked: HttpRequest) -> None:
    service.set_rights(actor, name, asked.POST.getlist("rights"), superuser=asked.POST.get("superuser") == "on")


OPERATOR_CHANGES: dict[str, tuple[Callable[[Actor, str, HttpRequest], None], str]] = {
    "password": (lambda actor, name, asked: service.set_password(actor, name, asked.POST.get("password", "")), "has a new password"),
    "role": (lambda actor, name, asked: service.set_role(actor, name, asked.POST.get("role", "")), "has the role that you chose"),
    "rights": (_set_rights, "has the rights that you chose"),
    "disable": (lambda actor, name, asked: service.set_disabled(actor, name, True), "is disabled"),
    "enable": (lambda actor, name, asked: service.set_disabled(actor, name, False), "is enabled"),
}


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    require(actor_of(request), MANAGE_OPERATOR, "operator list")
    wanted = asked(request)
    shown, following = operators.page(wanted["after"], search=wanted["q"])
    context = {"asked": wanted, "operators": shown, "following": following, "grantable": GRANTABLE}
    return render(request, "console/operators.html", context)


@sensitive_post_parameters("password")
@require_POST
def create(request: HttpRequest) -> HttpResponse:
    name, rights = request.POST.get("name", ""), request.POST.getlist("rights")
    superuser = request.POST.get("superuser") == "on"
    try:
        service.create(actor_of(request), name, request.POST.get("password", ""), rights, superuser=superuser)
    except service.InvalidOperator as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{name} may log in.")
    return redirect("operators")


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, verb: str) -> HttpResponse:
    """Confirm and do one of OPERATOR_CHANGES to the operator in parameter `name`."""
    require(actor_of(request), MANAGE_OPERATOR, f"operator {verb}", (request.POST or request.GET).get("name", "")[: service.NAME_CHARACTERS_MAX])
    name = (request.POST if request.method == "POST" else request.GET).get("name", "")
    operator = operators.by_name(name)
    if operator is None:
        raise Http404("There is no such operator.")
    context = {"operator": operator, "verb": verb, "grantable": GRANTABLE, "roles": ROLES}
    if request.method != "POST":
        return render(request, "console/operator.html", context)
    apply, done = OPERATOR_CHANGES[verb]
    try:
        apply(actor_of(request), name, request)
    except service.InvalidOperator as error:
        return render(request, "console/operator.html", {**context, "problem": str(error)}, status=400)
    if verb == "password" and name == request.user.get_username():
        request.user.refresh_from_db()
        update_session_auth_hash(request, request.user)  # one's own session stays
    messages.success(request, f"{name} {done}.")
    return redirect("operators")


@sensitive_post_parameters("old", "new", "again")
@require_http_methods(["GET", "HEAD", "POST"])
def own_password(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return render(request, "console/password.html")
    if request.POST.get("new", "") != request.POST.get("again", ""):
        return render(request, "console/password.html", {"problem": "The new password is not the same both times."}, status=400)
    try:
        user = service.change_own_password(actor_of(request), request.POST.get("old", ""), request.POST.get("new", ""))
    except service.InvalidOperator as error:
        return render(request, "console/password.html", {"problem": str(error)}, status=400)
    except login.Throttled as throttled:
        wait = f"Too many wrong passwords. Try again in {throttled.retry_seconds} seconds."
        response = render(request, "console/password.html", {"problem": wait}, status=429)
        response.headers["Retry-After"] = str(throttled.retry_seconds)
        return response
    update_session_auth_hash(request, user)  # this session stays, his others end
    messages.success(request, "Your password is changed.")
    return redirect("overview")
