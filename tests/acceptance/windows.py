"""Destinations with settings, made as an operator makes them."""

from __future__ import annotations

from typing import Any

from broker_core import control
from tests.support.service import NotServing, Service, await_true

ANSWER_SECONDS_MAX = 30


def open_window(service: Service, address: str, milliseconds: int) -> None:
    """Make the queue, with a duplicate window. Raises NotServing if no node does."""
    create(service, address, duplicate_window_ms=milliseconds)


def create(service: Service, address: str, **settings: Any) -> None:
    """Make the destination. Raises NotServing if no node does."""
    with service.database() as connection, connection.cursor() as cursor:
        request = control.request(cursor, "create", address, settings, requested_by="acceptance")
        await_true(lambda: control.answer(cursor, request) is not None, ANSWER_SECONDS_MAX, f"nobody makes {address} with {settings}")
        answer = control.answer(cursor, request)
    if answer is None or not answer.done:
        raise NotServing(f"there is no {address} with {settings}: {answer}")
