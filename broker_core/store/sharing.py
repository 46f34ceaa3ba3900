"""Connections that several tasks share: a statement is never cut off in the middle by the task that asked for it being cancelled.

A client that vanishes during its login or in the middle of a large body cancels what it waits for. psycopg would then cancel the query and, if that
fails, close the connection, and with it everybody else's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which runs to its end even if the caller is cancelled; its error is then nobody's."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_look_at)
        raise


def _look_at(task: asyncio.Future[Any]) -> None:
    """Take note of the error, so that it is not reported as forgotten: whoever uses the connection next meets it."""
    if not task.cancelled():
        task.exception()
