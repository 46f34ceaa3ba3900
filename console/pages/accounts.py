"""Client accounts: who may connect to the node."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from broker_core.control import ASKED
from console.permissions import MANAGE_ACCOUNT
from console.selectors import accounts
from console.services import accounts as service
from console.services.audit import Actor, look

from .actor import actor_of
from .asked import asked

DIGITS_MAX = 9


def _whole(request: HttpRequest, name: str) -> int:
    """Raises InvalidAccount."""
    text = request.POST.get(name, "0") or "0"
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
        raise service.InvalidAccount(f"{name.replace('_', ' ').capitalize()} must be a whole number.")
    return int(text)


def _set_password(actor: Actor, name: str, asked: HttpRequest) -> None:
    service.set_password(actor, name, asked.POST.get("password", ""), overlap_seconds=_whole(asked, "overlap_seconds"))


def _set_limits(actor: Actor, name: str, asked: HttpRequest) -> None:
    service.set_limits(actor, name, connections_max=_whole(asked, "connections_max"), sessions_max=_whole(asked, "sessions_max"))


def _set_groups(actor: Actor, name: str, asked: HttpRequest) -> None:
    groups = [group.strip() for group in asked.POST.get("groups", "").split(",")]
    service.set_groups(actor, name, [group for group in groups if group])


CHANGES: dict[str, tuple[Callable[[Actor, str, HttpRequest], list[str] | None], str]] = {
    "password": (_set_password, "has a new password"),
    "groups": (_set_groups, "is in these groups"),
    "limits": (_set_limits, "has its limits"),
    "levels": (
        lambda actor, name, asked: service.set_levels(actor, name, asked.POST.get("persistent", ""), asked.POST.get("nonpersistent", "")),
        "has its levels of reliability",
    ),
    "disable": (lambda actor, name, asked: service.set_disabled(actor, name, True), "is disabled"),
    "enable": (lambda actor, name, asked: service.set_disabled(actor, name, False), "is enabled"),
    "delete": (lambda actor, name, asked: service.delete(actor, name), "is deleted"),
}


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    look(actor_of(request), "account list")
    wanted = asked(request)
    shown, following = (accounts.search(wanted["q"], accounts.PAGE_ROWS), "") if wanted["q"] else accounts.page(wanted["after"])
    context = {"asked": wanted, "accounts": shown, "following": following, "may_manage": request.user.has_perm(MANAGE_ACCOUNT)}
    return render(request, "console/accounts.html", context)


@sensitive_post_parameters("password")
@require_POST
def create(request: HttpRequest) -> HttpResponse:
    name = request.POST.get("name", "")
    loopback_only = request.POST.get("loopback_only") == "on"
    try:
        service.create(actor_of(request), name, request.POST.get("password", ""), loopback_only=loopback_only)
    except service.InvalidAccount as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{name} may connect.")
    return redirect("accounts")


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, verb: str) -> HttpResponse:
    """Confirm and do one of CHANGES to the account in parameter `name`; a name may hold any character, so it is no part of the path."""
    if request.method != "POST":
        look(actor_of(request), "account query")
        name = request.GET.get("name", "")
        context = {"name": name, "verb": verb, "account": accounts.by_name(name), "asked": ASKED}
        return render(request, "console/account.html", context)
    name = request.POST.get("name", "")
    apply, done = CHANGES[verb]
    try:
        warnings = apply(actor_of(request), name, request)
    except service.InvalidAccount as error:
        context = {"name": name, "verb": verb, "problem": str(error), "account": accounts.by_name(name), "asked": ASKED}
        return render(request, "console/account.html", context, status=400)
    messages.success(request, f"{name} {done}.")
    for warning in warnings or ():
        messages.warning(request, f"{name}: {warning}.")
    return redirect("accounts")
