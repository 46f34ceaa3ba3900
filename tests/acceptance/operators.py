"""What operators ask of a running node, answered."""

from __future__ import annotations

from typing import Any

from broker_core import control
from tests.support.service import NotServing, Service, await_true

ANSWER_SECONDS_MAX = 30


def ask(service: Service, verb: str, address: str, **arguments: Any) -> dict[str, Any]:
    """The node's answer. Raises NotServing if none comes, or if it is a refusal."""
    with service.database() as connection, connection.cursor() as cursor:
        request = control.request(cursor, verb, address, arguments, requested_by="acceptance")
        await_true(lambda: control.answer(cursor, request) is not None, ANSWER_SECONDS_MAX, f"nobody answers {verb} {address}")
        answer = control.answer(cursor, request)
    if answer is None or not answer.done:
        raise NotServing(f"{verb} {address} was refused: {answer}")
    return answer.result
