"""Sending a message, sending one again perhaps edited, and bringing in what was exported."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from broker_core.viewing import LEVEL_NAMES
from broker_core.viewing.rendering import SHOWN_OCTETS, UNKNOWN, ShownBody
from console.api.message_lines import read_file
from console.instants import instant
from console.permissions import BROWSE_BODIES, DELETE, SEND, may
from console.selectors.destinations import Destination
from console.services import browsing, operations
from console.services import sending as service
from console.services.audit import require
from console.services.repeating import COPIES_MAX, Repetition

from .actor import actor_of
from .destination_tabs import tabs
from .finding import destination_of, to_messages
from .message_search import WrongKey, key_of, milliseconds_of, search_of
from .messages import ORIGIN
from .properties_text import InvalidProperties, read_properties, typed, written_properties

AGAIN = ("count", "period", "repeat", "cron")
NAMED = ("correlation_id", "reply_to", "type", "group_id")
FIELDS = ("destination", "body", "content_type", "properties", "reliability", "priority", "ttl", "delay", *NAMED, *AGAIN)
DIGITS_MAX = 9
KINDS = {"text": "text/plain;charset=utf-8", "json": "application/json", "xml": "application/xml"}


@require_http_methods(["GET", "HEAD", "POST"])
def send(request: HttpRequest, number: str) -> HttpResponse:
    """With `from`, the key of a message here: that one again."""
    it, actor, search = destination_of(request, number), actor_of(request), search_of(request)
    source = _source(request, it, search.subscription)
    given, problem, kept = {**dict.fromkeys(FIELDS, ""), "destination": it.address, "reliability": "assured", "priority": "4"}, "", False
    if request.method == "POST":
        given = {name: _typed_in(request.POST.get(name, "")) for name in FIELDS}
        kept = source is not None and bool(request.POST.get("keep_body"))
        try:
            return _sent(request, it, source, given, kept=kept)
        except (service.InvalidMessage, InvalidProperties, ValueError) as error:
            problem = str(error)
    elif source is None:
        require(actor, SEND, "send", it.address, reads=True)
    if source is not None and request.method != "POST":
        given, kept = _filled(actor, source, it)
    context = {
        "it": it, "given": given, "problem": problem, "source": source, "asked": search.asked, "levels": LEVEL_NAMES, "kinds": KINDS.values(),
        "kept": kept, "tabs": tabs(it, "messages"), "may_delete": source is not None and may(actor, DELETE, it.address), "key": request.GET.get("from", ""),
        "bodies": source is None or may(actor, BROWSE_BODIES, it.address), "removes": bool(request.POST.get("remove")),
        "copies_max": COPIES_MAX, "again": any(given[name] for name in AGAIN),
    }  # fmt: skip
    return render(request, "console/send.html", context, status=400 if problem else 200)


def _source(request: HttpRequest, it: Destination, subscription: int | None) -> service.Source | None:
    text = request.GET.get("from", "")
    try:
        return service.Source(it.address, key_of(text), subscription) if text else None
    except WrongKey as error:
        raise Http404("A message's key is like 4-123.") from error


def _filled(actor: Any, source: service.Source, it: Destination) -> tuple[dict[str, str], bool]:
    """The form as the message has it, and whether its body can only be sent as it is. Raises PermissionDenied, NoMessage."""
    require(actor, BROWSE_BODIES, "read body", source.address, reads=True)
    view = browsing.message(actor, source.address, source.key, source.subscription)
    body, headers = view.body, view.headers
    if body is not None and body.kind == UNKNOWN:
        raise browsing.NoMessage("The message has no body any more.")
    whole = body is not None and not body.truncated and body.hex is None
    left = service.ttl_left(view.seen.message)
    filled = {
        "destination": str(view.added.get(ORIGIN) or it.address), "body": (body.text or "") if body is not None and whole else "",
        "content_type": body.content_type if body is not None else "", "properties": written_properties(typed(view.properties, headers.get(service.TYPES, ""))),
        "reliability": LEVEL_NAMES[view.seen.message.header.reliability], "priority": str(int(view.seen.message.header.priority)),
        "ttl": "" if left is None else f"{-(-left // 1000)} s", "delay": "", **dict.fromkeys(AGAIN, ""),
    }  # fmt: skip
    filled |= {ours: headers.get(name, "") for name, ours in service.NAMED.items()}
    return filled, not whole


def _sent(request: HttpRequest, it: Destination, source: service.Source | None, given: dict[str, str], *, kept: bool) -> HttpResponse:
    """Raises InvalidMessage, InvalidProperties, ValueError, PermissionDenied."""
    actor, address = actor_of(request), given["destination"].strip().removeprefix("/")
    changes, asked = _changes(given), _repetition(given)
    if not kept:
        if len(given["body"].encode()) > SHOWN_OCTETS * 8:
            raise ValueError(f"A body typed here has at most {SHOWN_OCTETS * 8:,} octets: import larger ones.")
        changes |= {"body": given["body"].encode(), "content_type": given["content_type"], "content_encoding": ""}
    if source is None:
        sent = service.send(actor, address, service.Outgoing(**changes), asked=asked)
    else:
        view = browsing.message(actor, it.address, source.key, source.subscription)
        gone = {name: None for name in view.properties if name not in changes["properties"]}
        if _is_untouched(view.body, given["body"]):
            changes = {name: value for name, value in changes.items() if name not in ("body", "content_encoding")}
        sent = service.send_again(actor, address, source, {**changes, "properties": {**gone, **changes["properties"]}}, asked=asked)
    messages.success(request, _told(address, sent))
    if source is not None and request.POST.get("remove"):
        arguments = {"verb": "delete", "messages": [list(source.key)]} | ({"subscription": source.subscription} if source.subscription is not None else {})
        outcome = operations.begin(actor, it.address, arguments)
        if outcome.done:
            return redirect("operation", outcome.request)
        messages.warning(request, f"The original is still there: {outcome.refused or 'no node has answered.'}")
    return to_messages(actor, it)


def _told(address: str, sent: list[service.Sent]) -> str:
    first, last = sent[0], sent[-1]
    if len(sent) == 1:
        return f"Sent to {address} as {first.message_id}."
    begin, end = (f"{instant(each.due_at):%Y-%m-%d %H:%M:%S} UTC" if each.due_at else "now" for each in (first, last))
    due = f", due {begin}" if begin == end else f", the first due {begin}, the last {end}"
    return f"{len(sent):,} sent to {address}{'' if last.due_at is None else f'{due}: those that wait are under Scheduled'}. The first is {first.message_id}."


def _repetition(given: dict[str, str]) -> Repetition:
    """Raises ValueError."""
    numbers: dict[str, int] = {}
    for name, words in (("count", "Copies are"), ("repeat", "More times are")):
        if text := given[name].strip():
            if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
                raise ValueError(f"{words} a whole number.")
            numbers[name] = int(text)
    period = milliseconds_of(given["period"]) if given["period"].strip() else None
    if given["period"].strip() and period is None:
        raise ValueError("The period is like 90 s, 5 min, 2 h or 3 d.")
    return Repetition(period_ms=period, cron=given["cron"].strip(), **numbers)


def _typed_in(text: str) -> str:
    """As forms have it: whatever ends a line there comes back as CRLF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_untouched(body: ShownBody | None, typed_in: str) -> bool:
    """The body came back as the form had it, so that its own line ends stay."""
    return body is not None and body.text is not None and not body.truncated and _typed_in(body.text) == typed_in


def _changes(given: dict[str, str]) -> dict[str, Any]:
    """Raises InvalidProperties, ValueError."""
    if given["priority"] not in set("0123456789"):
        raise ValueError("A priority is a number from 0 to 9.")
    if given["reliability"] not in LEVEL_NAMES:
        raise ValueError(f"The reliability is one of {', '.join(LEVEL_NAMES)}.")
    changes: dict[str, Any] = {"priority": int(given["priority"]), "reliability": given["reliability"], "properties": read_properties(given["properties"])}
    changes["ttl_ms"] = None
    for name, words in (("ttl", "time to live"), ("delay", "delay")):
        if given[name].strip():
            duration = milliseconds_of(given[name])
            if duration is None:
                raise ValueError(f"The {words} is like 90 s, 5 min, 2 h or 3 d.")
            changes[f"{name}_ms"] = duration
    if given["content_type"] == KINDS["json"]:
        _check_json(given["body"])
    return changes | {name: given[name] or None for name in NAMED}


def _check_json(text: str) -> None:
    """Raises ValueError."""
    if text.strip():
        try:
            json.loads(text)
        except RecursionError as error:
            raise ValueError("The body is nested too deeply.") from error
        except ValueError as error:
            raise ValueError(f"The body is no JSON: {error}.") from error


@require_http_methods(["GET", "HEAD", "POST"])
def bring_in(request: HttpRequest, number: str) -> HttpResponse:
    """Lines of JSON as an export has them: all of them are sent, or none."""
    it, actor = destination_of(request, number), actor_of(request)
    require(actor, SEND, "import", it.address, reads=request.method != "POST")
    problem, errors = "", []
    if request.method == "POST":
        file = request.FILES.get("lines")
        try:
            if file is None or (file.size or 0) > service.LINES_OCTETS_MAX:
                raise ValueError(f"Choose a file of at most {service.LINES_OCTETS_MAX >> 20} MiB.")
            sent = service.send_all(actor, it.address, read_file(file.read()))
        except service.InvalidLines as error:
            problem, errors = f"Nothing was sent: {len(error.errors)} lines cannot be.", list(error.errors)
        except ValueError as error:
            problem = str(error)
        else:
            messages.success(request, f"{sent:,} sent to {it.address}.")
            return to_messages(actor, it)
    context = {"it": it, "problem": problem, "errors": errors, "tabs": tabs(it, "messages")}
    return render(request, "console/import.html", context, status=400 if problem else 200)
