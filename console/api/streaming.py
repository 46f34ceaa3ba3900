"""Answers that are too large to be held: octets as they come."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.db import connection
from django.http import StreamingHttpResponse

_END = b""


def stream(request: Any, octets: Iterator[bytes], content_type: str, headers: dict[str, str]) -> StreamingHttpResponse:
    """Under ASGI Django would gather what is no asynchronous iterator."""
    body = _turns(octets) if isinstance(request._request, ASGIRequest) else octets
    return StreamingHttpResponse(body, content_type=content_type, headers=headers)


async def _turns(octets: Iterator[bytes]) -> AsyncIterator[bytes]:
    following = sync_to_async(_next)
    while piece := await following(octets):
        yield piece


def _next(octets: Iterator[bytes]) -> bytes:
    """The next piece; empty: there is none. Who reads slowly keeps no connection of the pool meanwhile."""
    piece = next(octets, _END)
    if not connection.in_atomic_block:
        connection.close()
    return piece
