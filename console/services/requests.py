"""From an operator's wish to the node's answer: a control request and an audit row in one transaction, then a bounded wait."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from broker_core import control

from .audit import Actor, record, require

POLL_SECONDS = 0.02


@dataclass(slots=True, frozen=True)
class Outcome:
    """What became of a request so far."""

    request: int
    answer: control.Answer | None
    """None: the node has not answered; it may still do so until the request's deadline."""

    @property
    def done(self) -> bool:
        return self.answer is not None and self.answer.done

    @property
    def refused(self) -> str:
        """What the node said, as a sentence; empty: it did not refuse."""
        if self.answer is None or self.answer.done:
            return ""
        return f"{self.answer.refusal}."


def ask(actor: Actor, right: str, verb: str, address: str, arguments: Mapping[str, Any] | None = None, *, over: str | None = None) -> Outcome:
    """File a request for `actor` and wait for its answer, at most CONTROL_WAIT_SECONDS. `over`: as `require` has it.
    Raises PermissionDenied, control.InvalidRequest.

    Must not be called within a transaction: the node sees a request only once it is committed.
    """
    assert not connection.in_atomic_block, "the node cannot see a request before its transaction ends"
    require(actor, right, verb, address, over=over)
    with transaction.atomic():
        with connection.cursor() as cursor:
            request = control.request(cursor, verb, address, arguments, requested_by=actor.name)
        record(actor.name, actor.origin, verb, address, arguments, request=request)
    return Outcome(request, _answer(request))


def _answer(request: int) -> control.Answer | None:
    patience_ends = time.monotonic() + settings.CONTROL_WAIT_SECONDS
    while True:
        with connection.cursor() as cursor:
            found = control.answer(cursor, request)
        if found is not None or time.monotonic() >= patience_ends:
            return found
        time.sleep(POLL_SECONDS)
