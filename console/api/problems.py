"""Every way the API says no: RFC 9457 problem documents, one code per cause."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response

from broker_core.control import InvalidRequest
from broker_core.viewing import InvalidFilter
from console.services import access, accounts, alerts, foreign, grants, login, looking, objects, operators, repeating, replays, schedule, sending, tokens
from console.services.definition_text import InvalidDefinitions
from console.services.refusals import AlreadyThere, NotThere

MEDIA_TYPE = "application/problem+json"
TYPES = "/api/v1/problems"
CODES: dict[str, tuple[int, str]] = {
    "invalid": (400, "The request is not valid as it stands"),
    "unauthenticated": (401, "The request shows nobody: log in, or send a token"),
    "forbidden": (403, "This person or token may not do it"),
    "not-found": (404, "There is no such thing"),
    "method-not-allowed": (405, "The address does not know the method"),
    "not-acceptable": (406, "The answer can be had as JSON only"),
    "exists": (409, "There is one of this name"),
    "refused": (409, "The node refused"),
    "call-unanswered": (409, "The call with this Idempotency-Key has begun, and what became of it is not known yet"),
    "too-large": (413, "The body is too large"),
    "media-type": (415, "The body must be JSON"),
    "key-reused": (422, "The Idempotency-Key was used for another call, or by a caller with other rights"),
    "throttled": (429, "Too many failures from this place: nothing was looked at"),
    "internal": (500, "This is a bug; what was done is not known, and the log has the reason"),
    "node-silent": (503, "No node answered: what it holds is not known"),
    "too-slow": (503, "The messages could not be read in time: ask again, or for less"),
    "unavailable": (503, "The database cannot be reached"),
    "busy": (503, "More is asked at once than can be answered: nothing was looked at, ask again in a moment"),
}
"""Status and title by code."""
SENTENCES = (
    InvalidDefinitions, InvalidRequest, InvalidFilter, access.InvalidRule, accounts.InvalidAccount, alerts.InvalidAlert, foreign.InvalidLink,
    grants.InvalidGrant, objects.InvalidObject, operators.InvalidOperator, repeating.InvalidRepetition, replays.InvalidReplay,
    schedule.InvalidSchedule, sending.InvalidMessage, tokens.InvalidToken,
)  # fmt: skip
"""What services raise for what can never be done as it is asked."""
ERRORS_MAX = 100
LATER_SECONDS = 5
"""After which it is worth asking again, where the database did not answer or too many asked."""


@dataclass(eq=False)
class Problem(Exception):
    """One of CODES, said to the client."""

    code: str
    detail: str = ""
    members: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def answer(problem: Problem) -> Response:
    return Response(document_of(problem), CODES[problem.code][0], headers=problem.headers, content_type=MEDIA_TYPE)


def document_of(problem: Problem) -> dict[str, Any]:
    status, title = CODES[problem.code]
    document = {"type": f"{TYPES}#{problem.code}", "title": title, "status": status, "code": problem.code, "detail": problem.detail or f"{title}."}
    return document | problem.members


def outside(code: str, page: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """What Django answers where no view did: under /api/ the problem, elsewhere the page."""

    def view(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
        if not request.path.startswith("/api/"):
            return page(request) if exception is None else page(request, exception)
        return JsonResponse(document_of(Problem(code)), status=CODES[code][0], content_type=MEDIA_TYPE)

    return view


bad_request = outside("invalid", defaults.bad_request)
not_found = outside("not-found", defaults.page_not_found)
_bug = outside("internal", defaults.server_error)


def server_error(request: HttpRequest) -> HttpResponse:
    """Where no view answered. That the database could not be asked is no bug, and goes by."""
    if isinstance(sys.exception(), OperationalError | InterfaceError):
        return _not_now(request, "unavailable", "The console's database does not answer. Nothing is known to have changed; the reason is in its log.")
    return _bug(request)


def busy(request: HttpRequest) -> HttpResponse:
    """To who has waited long enough for his turn."""
    return _not_now(request, "busy", "More pages are asked for than the console can make at once. Nothing was changed.")


def _page_of_too_large(request: HttpRequest) -> HttpResponse:
    return HttpResponse(render_to_string("413.html"), status=413)


too_large = outside("too-large", _page_of_too_large)
"""To who sends more than anything here takes."""


def _not_now(request: HttpRequest, code: str, sentence: str) -> HttpResponse:
    def page(request: HttpRequest) -> HttpResponse:
        """Without a frame: who asks could not be found out."""
        words = {"sentence": sentence, "seconds": LATER_SECONDS, "again": request.get_full_path() if request.method == "GET" else "/"}
        return HttpResponse(render_to_string("503.html", words), status=503)

    answer = outside(code, page)(request)
    answer.headers["Retry-After"] = str(LATER_SECONDS)
    return answer


def handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's EXCEPTION_HANDLER. None: a bug, which stops loudly."""
    problem = problem_of(error)
    if problem is None:
        return None
    if problem.code == "unauthenticated":
        problem.headers.setdefault("WWW-Authenticate", "Bearer")
    return answer(problem)


def problem_of(error: Exception) -> Problem | None:
    """None: it is a bug."""
    if isinstance(error, Problem):
        return error
    for kind, code in ((AlreadyThere, "exists"), (NotThere, "not-found")):
        if isinstance(error, kind):
            return Problem(code, str(error))
    if isinstance(error, sending.InvalidLines):
        lines = [{"field": f"line {number}", "message": sentence} for number, sentence in error.errors]
        return Problem("invalid", _sentence(str(error)), {"errors": lines})
    if isinstance(error, InvalidDefinitions):
        return Problem("invalid", _sentence(str(error)), {"errors": [{"field": path, "message": sentence} for path, sentence in error.errors]})
    if isinstance(error, SENTENCES):
        return Problem("invalid", _sentence(str(error)))
    if isinstance(error, looking.NodeSilent):
        return Problem("node-silent", headers={"Retry-After": "1"})
    if isinstance(error, looking.TooSlow | looking.TableGone):
        return Problem("too-slow", headers={"Retry-After": "1"})
    if isinstance(error, looking.Declined):
        return Problem("refused", _sentence(str(error)), {"refusal": error.refusal})
    if isinstance(error, login.Throttled):
        return Problem("throttled", headers={"Retry-After": str(error.retry_seconds)})
    if isinstance(error, exceptions.ValidationError):
        found = list(_errors("", error.detail))[:ERRORS_MAX]
        return Problem("invalid", f"{found[0]['field'] or 'The body'}: {found[0]['message']}", {"errors": found})
    if isinstance(error, PermissionDenied | exceptions.PermissionDenied):
        return Problem("forbidden", str(error))
    if isinstance(error, Http404 | exceptions.NotFound):
        return Problem("not-found")
    if isinstance(error, OperationalError | InterfaceError):
        return Problem("unavailable", headers={"Retry-After": str(LATER_SECONDS)})
    for kind, code in _OF_FRAMEWORK:
        if isinstance(error, kind):
            return Problem(code, str(error.detail))
    return None


_OF_FRAMEWORK: tuple[tuple[type[exceptions.APIException], str], ...] = (
    (exceptions.ParseError, "invalid"),
    (exceptions.NotAuthenticated, "unauthenticated"),
    (exceptions.AuthenticationFailed, "unauthenticated"),
    (exceptions.MethodNotAllowed, "method-not-allowed"),
    (exceptions.NotAcceptable, "not-acceptable"),
    (exceptions.UnsupportedMediaType, "media-type"),
)


def _errors(path: str, detail: Any) -> Any:
    """DRF's tree of errors as a list of fields and sentences."""
    if isinstance(detail, dict):
        for name, each in detail.items():
            inner = path if name == "non_field_errors" else f"{path}.{name}" if path else str(name)
            yield from _errors(inner, each)
    elif isinstance(detail, list):
        for each in detail:
            yield from _errors(path, each)
    else:
        yield {"field": path, "message": str(detail)}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
