"""What the views have in common: queries and bodies checked, answers of the node turned into answers of the API."""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import serializers
from rest_framework.exceptions import APIException, NotAcceptable
from rest_framework.exceptions import PermissionDenied as FrameworkDenied
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.mediatypes import media_type_matches
from rest_framework.views import APIView

from console.pages.login import note_forged
from console.permissions import Sight, sight
from console.selectors import requests
from console.services import idempotency
from console.services.audit import Actor, look, record
from console.services.looking import Declined, NodeSilent
from console.services.refusals import NotThere
from console.services.requests import Outcome

from . import problems, shapes
from .authentication import actor_of
from .documented import LIMIT_MAX
from .listing import represented
from .problems import Problem

LIMIT = 100
NUMBER_MAX = (1 << 63) - 1
YEAR_MAX = 9999
NOT_FOUND = 404
HARMLESS = (Problem, PermissionDenied, Http404, APIException, NotThere, NodeSilent, Declined, *problems.SENTENCES)
"""What is raised where nothing was done."""


class Documented(DefaultContentNegotiation):
    """Who accepts only what a call is documented to answer beside JSON (a file, YAML, a problem document) is not turned away."""

    def select_renderer(self, request: Request, renderers: Sequence[Any], format_suffix: str | None = None) -> tuple[Any, str]:
        try:
            return super().select_renderer(request, renderers, format_suffix)
        except NotAcceptable:
            handler = getattr(request.parser_context["view"], request.method.lower(), None)
            wanted = self.get_accept_list(request)
            if any(media_type_matches(each, known) for each in wanted for known in getattr(handler, "media_types", ())):
                return renderers[0], renderers[0].media_type
            raise


class View(APIView):
    content_negotiation_class = Documented

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if any("\x00" in value for value in kwargs.values()):
            raise Problem("not-found")
        if "Transfer-Encoding" in request.headers and not request.headers.get("Content-Length"):
            raise Problem("invalid", "Send the body with a Content-Length: one in chunks is not read.")
        handler = getattr(self, request.method.lower(), None)
        if handler is not None:
            self._check_sent(request, getattr(handler, "query_names", ()), getattr(handler, "takes_body", True))

    @staticmethod
    def _check_sent(request: Request, known: Collection[str], takes_body: bool) -> None:
        """A misspelt dry_run would do what it should only count; of two the last one would hold; in a body that nobody reads it would do nothing."""
        if unknown := sorted(set(request.query_params) - set(known)):
            raise Problem("invalid", f"There is no parameter {unknown[0]!r}; this call takes {', '.join(sorted(known)) or 'none'}.")
        if twice := [name for name, values in request.query_params.lists() if len(values) > 1]:
            raise Problem("invalid", f"Give the parameter {twice[0]!r} once.")
        if not takes_body and request.method not in SAFE_METHODS and request.data != {}:
            raise Problem("invalid", "This call takes no body.")

    def handle_exception(self, exc: Exception) -> Response:
        """What somebody may not see is not there for him; that he tried to change it is in the audit like what he was refused. So is what his browser
        sends without the token of our pages."""
        response = super().handle_exception(exc)
        if isinstance(exc, FrameworkDenied):  # the services' own refusals are Django's
            note_forged(self.request._request)
        elif response.status_code == NOT_FOUND and self.request.method not in SAFE_METHODS:
            actor, refused = self.actor, {"refused": "there is no such thing, or it may not be seen"}
            record(actor.name, actor.origin, f"{self.request.method} {self.request.path}", result=refused)
        return response

    @property
    def actor(self) -> Actor:
        return actor_of(self.request)

    @property
    def sight(self) -> Sight:
        """The destinations whose counters the actor may see."""
        return sight(self.actor)

    def look(self, what: str) -> None:
        """Before what is of the whole broker. Raises PermissionDenied."""
        look(self.actor, what)

    def body(self, kind: type[serializers.Serializer]) -> dict[str, Any]:
        """What the client sent, checked. Raises ValidationError."""
        given = kind(data=self.request.data)
        given.is_valid(raise_exception=True)
        return dict(given.validated_data)

    def limit(self) -> int:
        return self.whole("limit", LIMIT, 1, LIMIT_MAX)

    def after(self) -> str:
        return self.request.query_params.get("after", "").replace("\x00", "")

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        """A parameter of the query. Raises Problem."""
        text = self.request.query_params.get(name)
        if text is None:
            return default
        if text.isascii() and text.isdigit() and len(text) <= 19 and least <= int(text) <= most:
            return int(text)
        raise Problem("invalid", f"{name} must be a whole number from {least} to {most}.")

    def flag(self, name: str) -> bool:
        text = self.request.query_params.get(name, "false")
        if text not in ("true", "false"):
            raise Problem("invalid", f"{name} must be true or false.")
        return text == "true"

    def instant(self, name: str) -> datetime | None:
        """A parameter of the query. Raises Problem."""
        text = self.request.query_params.get(name)
        if text is None:
            return None
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            found = None
        if found is None or not 1 < found.year < YEAR_MAX:
            raise Problem("invalid", f"{name} must be an instant such as 2026-11-22T10:00:00Z.")
        # PostgreSQL reads no more than 16 hours of difference from UTC, Python a day.
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)

    def number_after(self) -> int:
        """The key of a page whose keys are numbers."""
        text = self.after()
        if not text:
            return 0
        if text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= NUMBER_MAX:
            return int(text)
        raise Problem("invalid", "after must be the `next` of another page.")


def page(shape: type[serializers.Serializer], found: tuple[Sequence[Any], Any]) -> Response:
    listed, following = found
    return Response({"items": represented(shape, listed), "next": str(following) if following else None})


def one(shape: type[serializers.Serializer], found: Any) -> Response:
    """Raises Problem: there is none."""
    if found is None:
        raise Problem("not-found")
    return Response(shape(found).data)


def told(outcome: Outcome, status: int = 200, location: str = "") -> Response:
    """What the node answered; 202 if it has not. Raises Problem: it refused."""
    answer = outcome.answer
    if answer is not None and not answer.done:
        raise Problem("refused", outcome.refused, {"refusal": answer.result.get("refusal", ""), "request": outcome.request})
    where = f"/api/v1/requests/{outcome.request}" if answer is None else location
    asked = shapes.ControlRequest(requests.by_number(outcome.request)).data
    return Response(asked, 202 if answer is None else status, headers={"Location": where} if where else None)


def done(warnings: Sequence[str] | None = None, status: int = 200, location: str = "") -> Response:
    return Response({"warnings": list(warnings or ())}, status, headers={"Location": location} if location else None)


def idempotent(handler: Callable[..., Response]) -> Callable[..., Response]:
    """A call that may carry an Idempotency-Key. What was refused did nothing: its key may be used again."""

    @wraps(handler)
    def call(self: View, request: Request, **arguments: Any) -> Response:
        key = request.headers.get("Idempotency-Key")
        if key is None or self.flag("dry_run"):
            return handler(self, request, **arguments)
        if not (key.isascii() and key.isprintable() and " " not in key and 0 < len(key) <= idempotency.KEY_CHARACTERS_MAX):
            raise Problem("invalid", f"Idempotency-Key must have 1 to {idempotency.KEY_CHARACTERS_MAX} characters of ASCII, none of them a space.")
        try:
            known, new = idempotency.begin(self.actor, key, request.method, request.get_full_path(), request.data)
        except idempotency.KeyReused as error:
            raise Problem("key-reused") from error
        except idempotency.CallUnanswered as error:
            raise Problem("call-unanswered", headers={"Retry-After": "1"}) from error
        if not new:
            again = {"Idempotent-Replayed": "true"} | ({"Location": known.location} if known.location else {})
            return Response(known.answer, known.status, headers=again)
        try:
            response = handler(self, request, **arguments)
        except HARMLESS:
            idempotency.free(known)
            raise
        idempotency.keep(known, response.status_code, response.data, response.headers.get("Location", ""))
        return response

    return call
