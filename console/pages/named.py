"""Lists, forms and deletions of what operators name and set up: see named_kinds."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from console.permissions import MANAGE_DESTINATION, may
from console.services.audit import look, require
from console.services.requests import Outcome

from .actor import actor_of
from .asked import asked
from .attribute_form import AttributeForm
from .named_kinds import KINDS, SENTENCES, Kind, Told
from .telling import tell

SHOWN_MAX = 4
"""Things that one says, in a list; the rest is in its form."""


@require_safe
def listing(request: HttpRequest, plural: str) -> HttpResponse:
    kind, wanted, actor = KINDS[plural], asked(request, texts=()), actor_of(request)
    look(actor, f"{kind.one} list")
    found, following = kind.read.page(wanted["after"])
    rows = [(kind.key(it), kind.variant_of(it), _brief(kind, it)) for it in found]
    context = {"kind": kind, "asked": wanted, "rows": rows, "following": following, "may_change": may(actor, MANAGE_DESTINATION)}
    return render(request, "console/named.html", context)


def _brief(kind: Kind, it: Any) -> tuple[list[tuple[str, Any]], int]:
    said = [(name, value) for name, value in kind.shown(it).items() if value not in ("", None, {})]
    return said[:SHOWN_MAX], max(len(said) - SHOWN_MAX, 0)


@sensitive_post_parameters("passcode")
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest, plural: str) -> HttpResponse:
    kind, actor = KINDS[plural], actor_of(request)
    require(actor, MANAGE_DESTINATION, f"{kind.one} create", reads=request.method != "POST")
    variant = request.GET.get("variant", kind.variants[0])
    if variant not in kind.variants:
        raise Http404("There is no such kind.")
    form = AttributeForm(kind.attributes(variant), None, request.POST if request.method == "POST" else None)
    name, problem = request.POST.get("its_name", "").strip(), ""
    if request.method == "POST" and form.is_valid():
        try:
            problem = _tell(request, name, "made", kind.create(actor, name, variant, form.said))
        except SENTENCES as error:
            problem = str(error)
        if not problem:
            return redirect(plural)
    context = {"kind": kind, "form": form, "variant": variant, "name": name, "problem": problem, "new": True}
    return render(request, "console/named_one.html", context, status=400 if problem or form.errors else 200)


@sensitive_post_parameters("passcode")
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, plural: str) -> HttpResponse:
    """The one of parameter `name`."""
    kind, actor = KINDS[plural], actor_of(request)
    name, it = _found(request, kind)
    form = AttributeForm(kind.attributes(kind.variant_of(it)), kind.shown(it), request.POST if request.method == "POST" else None)
    problem = ""
    if request.method == "POST" and form.is_valid():
        try:
            problem = _tell(request, name, "changed", kind.update(actor, it, form.said))
        except SENTENCES as error:
            problem = str(error)
        if not problem:
            return redirect(plural)
    context = {"kind": kind, "form": form, "variant": kind.variant_of(it), "name": name, "problem": problem, "may_change": may(actor, MANAGE_DESTINATION)}
    return render(request, "console/named_one.html", context, status=400 if problem or form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, plural: str) -> HttpResponse:
    kind = KINDS[plural]
    name, _ = _found(request, kind)
    if request.method != "POST":
        return render(request, "console/named_delete.html", {"kind": kind, "name": name})
    if problem := _tell(request, name, "deleted", kind.delete(actor_of(request), name)):
        messages.error(request, f"{name}: {problem}")
    return redirect(plural)


def _found(request: HttpRequest, kind: Kind) -> tuple[str, Any]:
    look(actor_of(request), f"{kind.one} query")
    name = (request.POST.get("its_name") if request.method == "POST" else request.GET.get("name")) or ""
    it = kind.read.one(name)
    if it is None:
        raise Http404("There is no such thing; it may have been deleted meanwhile.")
    return name, it


def _tell(request: HttpRequest, name: str, done: str, told: Told) -> str:
    """As toasts; or what the node refused, as a sentence."""
    if isinstance(told, Outcome):
        if told.refused:
            return told.refused
        tell(request, name, done, told)
        return ""
    messages.success(request, f"{name} {done}.")
    for warning in told or ():
        messages.warning(request, f"{name}: {warning}.")
    return ""
