"""How many requests are dealt with at one time: as many as have a connection to the database for themselves. The others wait for their turn, in the order
in which they came; whom it takes too long is told so, and when to come again."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.http import HttpRequest, HttpResponse

Scope = MutableMapping[str, Any]
Receive, Send = Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
REQUESTS_MAX, WAIT_SECONDS = 8, 10.0
BODY_OCTETS_MAX = 16 << 20
"""Twice what anything takes, so that what is a little too large is told so by what takes it. Django puts bodies on disk before it looks at anything."""
AT_ONCE = ("/static/", "/health/")
"""What asks the database for nothing, or must say soon that nothing can be asked of it."""
_REFUSED = "surety.refused"
_LATE, _TOO_LARGE = "late", "too large"


class Admission:
    """Around the pages' ASGI application. A request takes its place when all of it has come, and gives it up when its answer begins: who sends or reads slowly
    keeps nobody waiting."""

    def __init__(self, application: Application, requests_max: int = REQUESTS_MAX, wait_seconds: float = WAIT_SECONDS) -> None:
        self._application, self._wait_seconds = application, wait_seconds
        self._places = asyncio.Semaphore(requests_max)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        visit = _Visit({**scope}, receive, send, self._places, self._wait_seconds)
        try:
            await self._application(visit.scope, visit.hear, visit.say)
        finally:
            visit.leave()


class _Visit:
    def __init__(self, scope: Scope, receive: Receive, send: Send, places: asyncio.Semaphore, wait_seconds: float) -> None:
        self.scope, self._receive, self._send = scope, receive, send
        self._places, self._wait_seconds = places, wait_seconds
        self._octets, self._is_whole, self._has_place = 0, False, False

    async def hear(self) -> Any:
        """The application's receive. What comes after too much is dropped, and the body ends there."""
        message = await self._receive()
        while self._is_whole and message["type"] == "http.request":
            message = await self._receive()
        if message["type"] != "http.request":
            return message
        self._octets += len(message.get("body", b""))
        if self._octets > BODY_OCTETS_MAX:
            self.scope[_REFUSED], message = _TOO_LARGE, {"type": "http.request"}
        if not message.get("more_body", False):
            self._is_whole = True
            await self._enter()
        return message

    async def say(self, message: Any) -> None:
        self.leave()
        await self._send(message)

    def leave(self) -> None:
        if self._has_place:
            self._has_place = False
            self._places.release()

    async def _enter(self) -> None:
        if _REFUSED in self.scope or self.scope["path"].startswith(AT_ONCE):
            return
        try:
            await asyncio.wait_for(self._places.acquire(), self._wait_seconds)
        except TimeoutError:
            self.scope[_REFUSED] = _LATE
        else:
            self._has_place = True


def refused_are_told(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware, before whatever needs the database."""
    from console.api.problems import busy, too_large

    answers = {_LATE: busy, _TOO_LARGE: too_large}

    def respond(request: HttpRequest) -> HttpResponse:
        why = getattr(request, "scope", {}).get(_REFUSED)
        return answers[why](request) if why else get_response(request)

    return respond
