"""The administrator's door (R22): what operators and the scheduler ask of the node.

Synchronous, on a cursor the caller passes, so that a request and its audit row are one transaction. The node applies a request in order
with traffic and writes the answer in the same commit. A request that is malformed is refused here, before it costs the node anything;
what depends on the destination's state (it exists, it is in use) only the node can know. Verifiers of client accounts are made here too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from broker_core.engine.access import ANYBODY, EVERYTHING, OPERATIONS, RULES_MAX, Rule
from broker_core.engine.access import problem as access_problem
from broker_core.engine.address import is_reserved, is_valid
from broker_core.engine.compaction import PERCENT_MAX
from broker_core.engine.definitions import UndoEnd
from broker_core.engine.levels import ASKED
from broker_core.engine.message import LEVEL_NAMES, STORED
from broker_core.engine.observing import CAUSES, WAITED_MS
from broker_core.engine.operation import SELECTED_MAX
from broker_core.engine.operation import VERBS as OPERATION_VERBS
from broker_core.engine.policy import why_not as pattern_problem
from broker_core.engine.settings import BOUNDS, CHOICES, NAMES, QUEUES, QUEUES_ONLY, TEXTS, Settings
from broker_core.scram import InvalidPassword, make_verifier

from .forms import DEPTH_MAX, DIRECTIONS, DRAIN_SECONDS_MAX, LOOKS, VERBS

__all__ = [
    "ANYBODY",
    "ASKED",
    "CAUSES",
    "CHOICES",
    "DEADLINE_MS",
    "DEPTH_MAX",
    "DIRECTIONS",
    "DRAIN_SECONDS_MAX",
    "EVERYTHING",
    "LOOKS",
    "NAMES",
    "OPERATIONS",
    "OPERATION_VERBS",
    "PERCENT_MAX",
    "QUEUES",
    "QUEUES_ONLY",
    "RULES_MAX",
    "SELECTED_MAX",
    "SETTINGS",
    "TEXTS",
    "UNDO_ENDS",
    "VERBS",
    "WAITED_MS",
    "Answer",
    "InvalidPassword",
    "InvalidRequest",
    "Rule",
    "access_problem",
    "answer",
    "default_settings",
    "is_reserved",
    "level_problem",
    "level_warnings",
    "make_verifier",
    "pattern_problem",
    "pending",
    "request",
    "request_problem",
    "settings_problem",
    "take",
]  # fmt: skip

SHARD = 0
"""There is one shard so far; every key carries it (R18)."""
DEADLINE_MS = 30_000
DEADLINE_MS_MAX = 3_600_000
"""An hour: longer than any operator waits, and than the scheduler's longest interval."""
REQUESTED_BY_OCTETS_MAX = 255
CHANNEL = "surety_control"
"""The node listens here and asks for waiting requests when notified, and once a second in case a notification was missed."""
UNDO_ENDS = tuple(how.value for how in UndoEnd)
"""Why a purge cannot be undone any more."""
SETTINGS: Mapping[str, tuple[type, float, float]] = BOUNDS
"""Of every setting of a destination that is a number, or true or false: its type, least and greatest value. Of words CHOICES has the values, QUEUES
names those that are a queue's address or empty, TEXTS those that are other texts, and NAMES has all in order."""


class Cursor(Protocol):
    """What this door needs of a DB-API cursor; Django's and psycopg's have it."""

    def execute(self, query: str, params: Mapping[str, Any]) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> Any: ...


class InvalidRequest(ValueError):
    """The request can never be applied as it stands; the message is a sentence that says what to change."""


@dataclass(slots=True, frozen=True)
class Answer:
    """What the node answered."""

    done: bool
    """False: refused; `result` says why under `reason`."""
    result: dict[str, Any]

    @property
    def refusal(self) -> str:
        """Why not, and the particulars; a sentence without its full stop."""
        words = self.result.get("message", "the node refused, and did not say why")
        return f"{words} ({self.result['detail']})" if self.result.get("detail") else str(words)


def default_settings() -> dict[str, Any]:
    """The settings of a destination that nobody has set."""
    return Settings().as_dict()


def settings_problem(address: str, values: Mapping[str, Any]) -> str:
    """A sentence that says why a destination of this address, or one of this pattern, cannot have them beside defaults; or nothing."""
    given = dict(values)
    return Settings.problem(given, address) or Settings(**given).contradiction()


def request_problem(verb: str, address: str, arguments: Mapping[str, Any]) -> str:
    """A sentence that says why `request` would not file it, or nothing."""
    try:
        _check(verb, address, dict(arguments), "operator", DEADLINE_MS)
    except InvalidRequest as error:
        return str(error)
    return ""


def level_problem(mode: str, level: str) -> str:
    """A sentence that says why a delivery mode cannot stand for this level, or nothing. `mode`: persistent, nonpersistent; empty `level`: none."""
    return "" if not level or level in ASKED else f"{mode} messages can stand for one of {', '.join(ASKED)}, or for nothing particular"


def level_warnings(persistent: str) -> list[str]:
    """What an operator may not have meant who has persistent messages stand for this level (item 118)."""
    if persistent not in LEVEL_NAMES or LEVEL_NAMES.index(persistent) >= STORED:
        return []
    return [f"persistent messages are sent as {persistent}: they are lost when the broker stops"]


def request(
    cursor: Cursor,
    verb: str,
    address: str = "",
    arguments: Mapping[str, Any] | None = None,
    *,
    requested_by: str,
    deadline_ms: int = DEADLINE_MS,
) -> int:
    """File a request; its number. Past `deadline_ms` from now, by the database's clock, the node refuses it. One of LOOKS need not be on disk. Raises
    InvalidRequest.

    The node hears of it when the caller's transaction commits.
    """
    given = dict(arguments or {})
    _check(verb, address, given, requested_by, deadline_ms)
    cursor.execute(
        """
        WITH quick AS MATERIALIZED (SELECT CASE WHEN %(looks)s THEN set_config('synchronous_commit', 'off', true) END AS how), filed AS (
            INSERT INTO surety.control_request (shard, verb, address, arguments, requested_by, deadline)
            VALUES (%(shard)s, %(verb)s, %(address)s, %(arguments)s::jsonb, %(requested_by)s,
                    (extract(epoch FROM clock_timestamp()) * 1000)::int8 + %(deadline_ms)s)
            RETURNING request)
        SELECT request, pg_notify(%(channel)s, request::text), how FROM filed, quick
        """,
        {
            "shard": SHARD, "verb": verb, "address": address, "arguments": json.dumps(given), "requested_by": requested_by,
            "deadline_ms": deadline_ms, "channel": CHANNEL, "looks": verb in LOOKS,
        },
    )  # fmt: skip
    return int(cursor.fetchone()[0])


def answer(cursor: Cursor, request: int) -> Answer | None:
    """The node's answer to a request; None: there is none yet. Raises InvalidRequest for a request that was never filed."""
    cursor.execute(
        """SELECT answered_at IS NOT NULL, done, coalesce(result, '{}')::text
             FROM surety.control_request WHERE shard = %(shard)s AND request = %(request)s""",
        {"shard": SHARD, "request": request},
    )
    row = cursor.fetchone()
    if row is None:
        raise InvalidRequest(f"there is no request {request}")
    answered, done, result = row
    return Answer(bool(done), json.loads(result)) if answered else None


def take(cursor: Cursor, request: int, *, waits: bool = True) -> Answer | None:
    """The answer to a look, of which nothing is kept: it may hold messages. None: there is none yet. `waits`: else nobody asks for it any more."""
    cursor.execute(
        """WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS how)
           DELETE FROM surety.control_request USING quick
            WHERE shard = %(shard)s AND request = %(request)s AND (answered_at IS NOT NULL OR NOT %(waits)s)
        RETURNING answered_at IS NOT NULL, done, coalesce(result, '{}')::text, how""",
        {"shard": SHARD, "request": request, "waits": waits},
    )
    row = cursor.fetchone()
    return Answer(bool(row[1]), json.loads(row[2])) if row is not None and row[0] else None


def pending(cursor: Cursor, verb: str) -> list[int]:
    """Requests of this verb that wait for an answer and are not past their deadline, oldest first. At most 1,000."""
    cursor.execute(
        """SELECT request FROM surety.control_request
            WHERE shard = %(shard)s AND answered_at IS NULL AND verb = %(verb)s
              AND (deadline = 0 OR deadline > extract(epoch FROM clock_timestamp()) * 1000)
            ORDER BY request LIMIT 1000""",
        {"shard": SHARD, "verb": verb},
    )
    return [row[0] for row in cursor.fetchall()]


def _check(verb: str, address: str, arguments: Mapping[str, Any], requested_by: str, deadline_ms: int) -> None:
    form = VERBS.get(verb)
    if form is None:
        raise InvalidRequest(f"{verb!r} is not a verb; the verbs are {', '.join(VERBS)}")
    if form.pattern:
        if not _is_text(address) or (sentence := pattern_problem(address)):
            raise InvalidRequest(f"the pattern is not valid: {sentence if _is_text(address) else 'it is no text'}")
    elif form.addressed and not (is_valid(address) and _is_text(address)):
        raise InvalidRequest(
            "the destination's name is not valid: give queue/<name> or topic/<name>, at most 255 octets, no control characters, * or >"
        )
    if not form.addressed and address:
        raise InvalidRequest(f"{verb} concerns the whole broker: leave the destination out")
    if form.addressed and not form.reserved and is_reserved(address):
        raise InvalidRequest(f"{address} belongs to the broker and cannot be the object of {verb}: names that begin with mq. are reserved")
    if problem := form.problem(arguments):
        raise InvalidRequest(problem)
    if not 0 < deadline_ms <= DEADLINE_MS_MAX:
        raise InvalidRequest(f"the deadline must lie between 1 and {DEADLINE_MS_MAX} ms from now")
    if not (_is_text(requested_by) and 0 < len(requested_by.encode()) <= REQUESTED_BY_OCTETS_MAX):
        raise InvalidRequest(f"say who asks, in at most {REQUESTED_BY_OCTETS_MAX} octets")


def _is_text(text: str) -> bool:
    """True if the database can keep it: no NUL and no half of a surrogate pair."""
    return not any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in text)
