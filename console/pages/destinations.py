"""What one does with a destination: a page that names what will happen, and a button. Works the same with and without JavaScript."""

from collections.abc import Callable
from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.html import escape
from django.views.decorators.http import require_http_methods, require_POST

from broker_core import control
from console.permissions import sight
from console.selectors import destinations
from console.selectors.destinations import Destination
from console.services import destinations as service
from console.services.audit import Actor
from console.services.requests import Outcome

from .actor import actor_of
from .settings_form import SettingsForm
from .telling import tell

QUEUE, TOPIC = KINDS = ("queue", "topic")
"""What operators make."""
ABOUT = {
    QUEUE: "Each message goes to one of its consumers. Clients address it as /queue/name.",
    TOPIC: "Each message goes to everybody who has subscribed; who subscribes for good gets what comes meanwhile, too. Clients address it as /topic/name.",
}


class UnknownDepth(control.InvalidRequest):
    """Nobody can agree to discard a number of messages that nobody knows."""


@dataclass(slots=True, frozen=True)
class Operation:
    title: str
    done: str
    """Said when the node has done it."""
    apply: Callable[[Actor, Destination, HttpRequest], Outcome]


def _seen_depth(request: HttpRequest) -> int:
    """The depth that the confirmation page named."""
    text = request.POST.get("depth", "")
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise UnknownDepth("The number of messages is unknown, because no node tells it. Come back when one does.")
    return int(text)


OPERATIONS = {
    "pause": Operation("Pause", "paused", lambda actor, it, asked: service.pause(actor, it.address, asked.POST.get("direction", ""))),
    "resume": Operation("Resume", "resumed", lambda actor, it, asked: service.resume(actor, it.address)),
    "purge": Operation("Purge", "purged", lambda actor, it, asked: service.purge(actor, it.address, _seen_depth(asked))),
    "destroy": Operation("Destroy", "destroyed", lambda actor, it, asked: service.destroy(actor, it.address, _seen_depth(asked))),
}


@require_http_methods(["GET", "HEAD", "POST"])
def operate(request: HttpRequest, number: str, verb: str) -> HttpResponse:
    """Confirm and do one of OPERATIONS."""
    destination = _find(request, int(number))
    operation = OPERATIONS[verb]
    context = {"destination": destination, "operation": operation, "verb": verb, "directions": control.DIRECTIONS}
    if request.method == "POST":
        try:
            outcome = operation.apply(actor_of(request), destination, request)
        except control.InvalidRequest as error:
            return render(request, "console/confirm.html", {**context, "problem": str(error)}, status=400)
        tell(request, destination.address, operation.done, outcome)
        return redirect("destinations") if verb == "destroy" else redirect("destination", destination.number)
    return render(request, "console/confirm.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def create(request: HttpRequest) -> HttpResponse:
    """`kind`: of KINDS."""
    kind = _kind(request)
    form = SettingsForm(control.default_settings(), request.POST if request.method == "POST" else None, of_topic=kind == TOPIC)
    name = request.POST.get("name", "").strip()
    problem = ""
    if request.method == "POST" and form.is_valid():
        address = f"{kind}/{name}"
        try:
            outcome = service.create(actor_of(request), address, form.changed)
        except control.InvalidRequest as error:
            problem = str(error)
        else:
            tell(request, address, "created", outcome)
            return redirect("destinations")
    context = {"form": form, "name": name, "problem": problem, "kind": kind, "kinds": KINDS, "about": ABOUT[kind]}
    return render(request, "console/create.html", context, status=400 if problem or form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
def update(request: HttpRequest, number: str) -> HttpResponse:
    destination = _find(request, int(number))
    if destination.temporary:
        raise Http404("A temporary destination has no settings.")
    settings = {**control.default_settings(), **destination.settings}
    form = SettingsForm(settings, request.POST if request.method == "POST" else None, of_topic=destination.address.startswith(f"{TOPIC}/"))
    problem = ""
    if request.method == "POST" and form.is_valid():
        try:
            outcome = service.update(actor_of(request), destination.address, form.changed)
        except control.InvalidRequest as error:
            problem = str(error)
        else:
            tell(request, destination.address, "changed", outcome)
            return redirect("destination", destination.number)
    context = {"destination": destination, "form": form, "problem": problem}
    return render(request, "console/update.html", context, status=400 if problem or form.errors else 200)


@require_POST
def check(request: HttpRequest) -> HttpResponse:
    """What is wrong with the field that somebody types in now, as a sentence, by the rules that hold when it is sent; empty: nothing."""
    name = request.headers.get("HX-Trigger-Name", "")
    if name == "name":
        return HttpResponse(escape(_wrong_name(request)), content_type="text/html; charset=utf-8")
    form = SettingsForm(control.default_settings(), request.POST)
    wrong = " ".join(form.errors.get(name, ()))
    if not wrong and name in form.cleaned_data:
        problem = control.settings_problem(f"{_kind(request)}/it", {name: form.cleaned_data[name]})
        wrong = problem[:1].upper() + problem[1:]
    return HttpResponse(escape(wrong), content_type="text/html; charset=utf-8")


def _kind(request: HttpRequest) -> str:
    given = request.POST.get("kind") or request.GET.get("kind")
    return given if given in KINDS else QUEUE


def _wrong_name(request: HttpRequest) -> str:
    address = f"{_kind(request)}/{request.POST.get('name', '').strip()}"
    if problem := control.request_problem("create", address, {}):
        return problem[:1].upper() + problem[1:]
    return "There is one of this name." if destinations.by_address(address, sight(actor_of(request))) else ""


def _find(request: HttpRequest, number: int) -> Destination:
    destination = destinations.by_number(number, sight(actor_of(request)))
    if destination is None:
        raise Http404("There is no such destination; it may have been destroyed meanwhile.")
    return destination
