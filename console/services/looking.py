"""How operators look at what the node holds: a control request that changes nothing, whose answer is kept nowhere, and rows of the store by their keys."""

import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

from django.conf import settings
from django.db import OperationalError, ProgrammingError, connection

from broker_core import control
from broker_core.viewing.rows import SETTINGS, Row, TableGone, TooSlow
from console.selectors.rows import QUERY_CANCELED

POLL_SECONDS, POLLS_SOON = 0.004, 25
DEADLINE_MS = 5_000
LATER_POLL_SECONDS = 0.02
SHARED_SECONDS = 1.0
SHARED_MAX = 256
__all__ = ["Declined", "NodeSilent", "TableGone", "TooSlow", "look", "read", "shared"]
UNDEFINED_TABLE = "42P01"


class NodeSilent(Exception):
    """No node answered: what it holds is not known."""


class Declined(Exception):
    """The node's refusal: its name, and a sentence."""

    def __init__(self, answer: control.Answer) -> None:
        super().__init__(answer.refusal)
        self.refusal = str(answer.result.get("refusal", ""))


def look(asked_by: str, verb: str, address: str = "", arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The node's answer. Raises NodeSilent, Declined, control.InvalidRequest. Whoever may do it is the caller's to say."""
    assert verb in control.LOOKS, verb
    assert not connection.in_atomic_block, "the node cannot see a request before its transaction ends"
    with connection.cursor() as cursor:
        request = control.request(cursor, verb, address, arguments, requested_by=asked_by, deadline_ms=DEADLINE_MS)
        answer = _answer(cursor, request)
    if answer is None:
        raise NodeSilent
    if not answer.done:
        raise Declined(answer)
    return answer.result


def _answer(cursor: Any, request: int) -> control.Answer | None:
    ends, polls = time.monotonic() + settings.LOOK_WAIT_SECONDS, 0
    while True:
        late = time.monotonic() >= ends
        found = control.take(cursor, request, waits=not late)
        if found is not None or late:
            return found
        polls += 1
        time.sleep(POLL_SECONDS if polls < POLLS_SOON else LATER_POLL_SECONDS)


def read(statement: str, parameters: Mapping[str, Any], seconds: float) -> list[Row]:
    """Rows, by index whatever the planner thinks. Raises TooSlow, TableGone."""
    try:
        with connection.cursor() as cursor:  # all of it is one message to the server, and so one transaction
            cursor.execute(f"{SETTINGS}; SET LOCAL statement_timeout = {max(int(seconds * 1000), 1)}; {statement}", parameters)
            while cursor.nextset():
                pass
            found: list[Row] = cursor.fetchall()
            return found
    except OperationalError as error:
        if _state(error) == QUERY_CANCELED:
            raise TooSlow from error
        raise
    except ProgrammingError as error:
        if _state(error) == UNDEFINED_TABLE:
            raise TableGone from error
        raise


def _state(error: Exception) -> str:
    return str(getattr(error.__cause__, "sqlstate", ""))


# -- for pages that keep themselves up to date ------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _Shared:
    lock: Lock = field(default_factory=Lock)
    at: float = -SHARED_SECONDS
    value: Any = None
    silent_at: float = -SHARED_SECONDS
    """When no node had answered."""


_shared: dict[Hashable, _Shared] = {}
_sharing = Lock()
Found = TypeVar("Found")


def shared(key: Hashable, find: Callable[[], Found]) -> Found:
    """What `find` returns, or what it returned within the last second: however many pages are open, the node is asked once a second. `key` says all that
    the answer depends on; who asks may not be among it, and nobody changes what is returned. Raises what `find` raises."""
    now = time.monotonic()
    with _sharing:
        if len(_shared) >= SHARED_MAX:
            for old in [old for old, entry in _shared.items() if now - entry.at >= SHARED_SECONDS and not entry.lock.locked()]:
                del _shared[old]
        entry = _shared.setdefault(key, _Shared()) if len(_shared) < SHARED_MAX else _shared.get(key, _Shared())
    with entry.lock:
        if time.monotonic() - entry.at >= SHARED_SECONDS:
            if entry.silent_at > now:
                raise NodeSilent  # while this one waited for it: a hundred pages would wait for a silent node one after another
            try:
                entry.value, entry.at = find(), time.monotonic()
            except NodeSilent:
                entry.silent_at = time.monotonic()
                raise
        return entry.value  # type: ignore[no-any-return]
