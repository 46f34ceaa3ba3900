"""Who is behind a WebSocket: by the session of the console, asked for again while it is open, for a logout elsewhere must end it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http.request import split_domain_port, validate_host

from console.permissions import LOOK, METRICS, Sight, may, sight
from console.services.audit import Actor

from .board import Subject
from .topics import TOPICS


class Person:
    """What may be told to him, as it was when this was made."""

    def __init__(self, actor: Actor) -> None:
        self._looks: bool = may(actor, LOOK)
        self._sight: Sight = sight(actor, METRICS)

    @property
    def rights(self) -> tuple[bool, Sight]:
        """Equal of all who are told the same."""
        return self._looks, self._sight

    def shows(self, subject: Subject, address: str) -> bool:
        right = TOPICS[subject[0]].right
        return not right or (self._looks if right == LOOK else self._sight.shows(address))


def person(session_key: str) -> Person | None:
    """None: the session has ended, or who has it may not log in any more."""
    user = get_user(SimpleNamespace(session=SessionStore(session_key or None)))
    return Person(Actor(user)) if user.is_authenticated and user.is_active else None


def is_ours(headers: dict[bytes, bytes]) -> bool:
    """Whether a page of the console itself opens the WebSocket: browsers send cookies along whoever asks."""
    host, origin = (headers.get(name, b"").decode("latin-1") for name in (b"host", b"origin"))
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return False
    found = urlsplit(origin)
    if settings.HTTPS and found.scheme != "https":
        return False
    return origin in settings.CSRF_TRUSTED_ORIGINS or (found.scheme in ("http", "https") and found.netloc.lower() == host.lower())


def session_key(cookies: dict[str, Any]) -> str:
    return str(cookies.get(settings.SESSION_COOKIE_NAME, ""))
