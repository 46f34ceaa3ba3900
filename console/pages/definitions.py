"""The definitions of the broker as one document: taken away, tried, applied. And one's own tokens for the REST API."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from console.permissions import MANAGE_OPERATOR
from console.selectors import tokens
from console.services import definitions as service
from console.services import tokens as token_service
from console.services.audit import require
from console.services.definition_text import InvalidDefinitions

from .actor import actor_of
from .asked import asked, whole

DIGITS_MAX = 9
TONES = {service.PLANNED: "info", service.DONE: "good", service.REFUSED: "bad", service.UNANSWERED: "warn", service.LEFT: "warn"}


@require_safe
def export(request: HttpRequest) -> HttpResponse:
    response = HttpResponse(service.export(actor_of(request)), content_type="application/yaml; charset=utf-8")
    response.headers["Content-Disposition"] = 'attachment; filename="definitions.yaml"'
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def definitions(request: HttpRequest) -> HttpResponse:
    """Try a document, and then apply it: what was tried is what is applied, for it is in the form. Django bounds the form (DATA_UPLOAD_MAX_MEMORY_SIZE)."""
    actor = actor_of(request)
    require(actor, MANAGE_OPERATOR, "definitions", reads=request.method != "POST")
    if request.method != "POST":
        return render(request, "console/definitions.html", {"text": ""})
    text, prune, applies = request.POST.get("text", ""), request.POST.get("prune") == "on", request.POST.get("apply") == "yes"
    context = {"text": text, "prune": prune}
    try:
        plan = service.apply(actor, text, dry_run=not applies, prune=prune)
    except InvalidDefinitions as error:
        return render(request, "console/definitions.html", {**context, "problems": error.errors}, status=400)
    undone = 0 if plan.dry_run else len(plan.steps) - plan.count(service.DONE)
    steps = [(step, TONES[step.state]) for step in plan.steps]
    return render(request, "console/definitions.html", {**context, "plan": plan, "steps": steps, "undone": undone})


@require_http_methods(["GET", "HEAD", "POST"])
def own_tokens(request: HttpRequest) -> HttpResponse:
    wanted, actor, context = asked(request, texts=()), actor_of(request), {}
    if request.method == "POST":
        try:
            days = whole(request.POST.get("days", ""), DIGITS_MAX)
            made = token_service.create(actor, request.POST.get("name", "").strip(), request.POST.get("scope", ""), days)
        except token_service.InvalidToken as error:
            context = {"problem": str(error)}
        else:
            context = {"made": made.token}
    after = wanted["after"]
    shown, following = tokens.of(actor.user, whole(after, DIGITS_MAX))
    context |= {"asked": wanted, "tokens": shown, "following": following, "days": token_service.DAYS, "days_max": token_service.DAYS_MAX}
    response = render(request, "console/tokens.html", context, status=400 if "problem" in context else 200)
    response.headers["Cache-Control"] = "no-store"  # a token is shown once
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def revoke_token(request: HttpRequest, number: str) -> HttpResponse:
    if request.method == "POST":
        token_service.revoke(actor_of(request), int(number))
        messages.success(request, "The token is good for nothing any more.")
        return redirect("tokens")
    sentence = "Whatever uses it is refused from now on."
    context = {"title": "Revoke the token", "sentence": sentence, "words": "Revoke it", "danger": True, "hidden": [], "back": reverse("tokens")}
    return render(request, "console/asked_again.html", context)
