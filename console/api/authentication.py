"""Who asks: the bearer of a token, or who has logged in with a browser (whose writes then carry Django's CSRF token)."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from console.models import ApiToken
from console.pages.actor import origin_of
from console.services import tokens
from console.services.audit import Actor

SCHEME = "bearer"


class Bearer(authentication.BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[Any, ApiToken] | None:
        """Raises AuthenticationFailed, login.Throttled."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != SCHEME:
            return None
        found = tokens.shown(token.strip(), origin_of(request))
        if found is None:
            raise exceptions.AuthenticationFailed("The token is wrong, has expired or was revoked, or its owner is disabled.")
        return found.owner, found

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = Bearer
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": SCHEME}


def actor_of(request: Request) -> Actor:
    """The person, and the token that he gave to a machine, if it is one. What the command line asks in its own process came by no connection."""
    origin, token = getattr(request._request, "command_line", "") or origin_of(request), request.auth
    if token is None:
        return Actor(request.user, origin)
    read_only = token.scope == ApiToken.READ
    return Actor(request.user, f"{origin}, token {token.pk}", read_only, tuple(token.verbs), tuple(token.patterns))
