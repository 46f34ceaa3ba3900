"""Single sign-on by OpenID Connect (authorization code with PKCE): who an organisation's provider says that somebody is. Off unless it is configured."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.django_client import OAuth
from django.conf import settings
from joserfc.errors import JoseError

from console.oidc_settings import Settings

TIMEOUT_SECONDS = 5.0
"""Of each request to the provider: nobody waits longer for the page that says so."""
LEEWAY_SECONDS = 60
"""By which the provider's clock may differ."""
CLAIM_CHARACTERS_MAX = 255
GROUPS_MAX = 1_000


class NotShown(Exception):
    """The provider did not show who it is; the message is a sentence for the log and the audit, not for a stranger."""


class ProviderSilent(NotShown):
    """The provider cannot be reached."""


@dataclass(slots=True, frozen=True)
class Shown:
    """Who it is, as the provider says."""

    issuer: str
    subject: str
    name: str
    groups: frozenset[str]


def begin(redirect_uri: str) -> tuple[str, dict[str, Any]]:
    """Where the browser is to go, and what must be kept until it comes back: state, nonce and code verifier. Raises NotShown."""
    request = SimpleNamespace(session={})
    try:
        response = _client().authorize_redirect(request, redirect_uri)
    except _FAILURES as error:
        raise _problem(error) from error
    return response.url, request.session


def conclude(query: Any, kept: dict[str, Any]) -> Shown:
    """What came of it, from the query with which the browser came back. Raises NotShown."""
    configured: Settings = settings.OIDC
    request = SimpleNamespace(session=dict(kept), method="GET", GET=query)
    claims_options = {"iss": {"essential": True, "values": [configured.issuer]}, "aud": {"essential": True, "values": [configured.client_id]}}
    try:
        token = _client().authorize_access_token(request, claims_options=claims_options, leeway=LEEWAY_SECONDS)
    except _FAILURES as error:
        raise _problem(error) from error
    claims = token.get("userinfo")
    if not claims:
        raise NotShown("the provider sent no ID token")
    return _shown(configured, claims)


_FAILURES = (AuthlibBaseError, JoseError, requests.RequestException, RuntimeError, ValueError, KeyError, TypeError)
"""What the libraries raise for what a provider, or somebody who poses as one, may send."""
_clients: dict[Settings, Any] = {}


def _client() -> Any:
    """One for a configuration: it keeps what it has read of the provider's metadata and keys."""
    configured: Settings = settings.OIDC
    if configured not in _clients:
        registry = OAuth()
        _clients[configured] = registry.register(
            "provider",
            client_id=configured.client_id,
            client_secret=configured.client_secret,
            server_metadata_url=f"{configured.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256", "default_timeout": TIMEOUT_SECONDS},
        )
    client = _clients[configured]
    if client.load_server_metadata().get("issuer") != configured.issuer:
        del _clients[configured]
        raise NotShown("the provider's metadata names another issuer")
    return client


def _problem(error: Exception) -> NotShown:
    if isinstance(error, requests.RequestException):
        return ProviderSilent(f"the provider cannot be asked: {type(error).__name__}")
    return NotShown(f"{type(error).__name__}: {str(error)[:CLAIM_CHARACTERS_MAX]}")


def _shown(configured: Settings, claims: dict[str, Any]) -> Shown:
    subject, name, groups = claims.get("sub"), claims.get(configured.name_claim), claims.get(configured.groups_claim, [])
    for claim, value in (("sub", subject), (configured.name_claim, name)):
        if not isinstance(value, str) or not 0 < len(value) <= CLAIM_CHARACTERS_MAX or "\x00" in value:
            raise NotShown(f"the claim {claim} is missing or no usable text")
    if isinstance(groups, str):
        groups = [groups]
    if not isinstance(groups, list) or len(groups) > GROUPS_MAX:
        raise NotShown(f"the claim {configured.groups_claim} is no list of groups")
    return Shown(configured.issuer, str(subject), str(name), frozenset(each for each in groups if isinstance(each, str)))
