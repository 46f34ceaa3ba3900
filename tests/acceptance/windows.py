"""Duplicate windows, opened as an operator opens them."""

from __future__ import annotations

from broker_core import control
from tests.support.service import NotServing, Service, await_true

ANSWER_SECONDS_MAX = 30


def open_window(service: Service, address: str, milliseconds: int) -> None:
    """Make the queue. Raises NotServing if no node does."""
    with service.database() as connection, connection.cursor() as cursor:
        request = control.request(cursor, "create", address, {"duplicate_window_ms": milliseconds}, requested_by="acceptance")
        await_true(lambda: control.answer(cursor, request) is not None, ANSWER_SECONDS_MAX, f"nobody makes {address} with a duplicate window")
        answer = control.answer(cursor, request)
    if answer is None or not answer.done:
        raise NotServing(f"there is no {address} with a duplicate window: {answer}")
