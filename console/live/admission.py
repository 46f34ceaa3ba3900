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
AT_ONCE = ("/static/", "/health/")
"""What asks the database for nothing, or must say soon that nothing can be asked of it."""
_LATE = "surety.late"


class Admission:
    """Around the pages' ASGI application. A request gives its place up when its answer begins: who reads slowly keeps nobody waiting."""

    def __init__(self, application: Application, requests_max: int = REQUESTS_MAX, wait_seconds: float = WAIT_SECONDS) -> None:
        self._application, self._wait_seconds = application, wait_seconds
        self._places = asyncio.Semaphore(requests_max)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(AT_ONCE):
            await self._application(scope, receive, send)
            return
        try:
            await asyncio.wait_for(self._places.acquire(), self._wait_seconds)
        except TimeoutError:
            await self._application({**scope, _LATE: True}, receive, send)
            return
        has_place = True

        def leave() -> None:
            nonlocal has_place
            if has_place:
                has_place = False
                self._places.release()

        async def say(message: Any) -> None:
            leave()
            await send(message)

        try:
            await self._application(scope, receive, say)
        finally:
            leave()


def late_are_told(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware, before whatever needs the database."""
    from console.api.problems import busy

    def respond(request: HttpRequest) -> HttpResponse:
        return busy(request) if getattr(request, "scope", {}).get(_LATE) else get_response(request)

    return respond
