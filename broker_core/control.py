"""The administrator's door (R22): what operators and the scheduler ask of the node.

Synchronous, on a cursor the caller passes, so that a request and its audit row are one transaction. The node applies a request in order
with traffic and writes the answer in the same commit. A request that is malformed is refused here, before it costs the node anything;
what depends on the destination's state (it exists, it is in use) only the node can know. Verifiers of client accounts are made here too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from .engine.access import ANYBODY, EVERYTHING, OPERATIONS, RULES_MAX, Rule
from .engine.access import problem as access_problem
from .engine.address import is_reserved, is_valid
from .engine.aliases import problem as alias_problem
from .engine.commands import Direction
from .engine.compaction import PERCENT_MAX
from .engine.definitions import UndoEnd
from .engine.levels import ASKED
from .engine.message import LANES, LEVEL_NAMES, STORED
from .engine.observing import CAUSES, WAITED_MS
from .engine.operation import SELECTED_MAX
from .engine.operation import VERBS as OPERATION_VERBS
from .engine.operation import problem as operation_problem
from .engine.policy import why_not as pattern_problem
from .engine.settings import BOUNDS, CHOICES, NAMES, QUEUES, QUEUES_ONLY, TEXTS, Settings
from .scram import InvalidPassword, make_verifier

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
DEPTH_MAX = (1 << 63) - 1
DELIVERIES_MAX = 1_000
"""That one release names."""
REASON_CHARACTERS_MAX = 255
NODE_CHARACTERS_MAX = 255
DRAIN_SECONDS_MAX = 86_400
REQUESTED_BY_OCTETS_MAX = 255
CHANNEL = "surety_control"
"""The node listens here and asks for waiting requests when notified, and once a second in case a notification was missed."""
DIRECTIONS = tuple(direction.name for direction in Direction)
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


@dataclass(slots=True, frozen=True)
class Form:
    """What a verb takes."""

    addressed: bool
    """It concerns one destination, whose address must be given."""
    problem: Callable[[Mapping[str, Any]], str]
    """A sentence that says what is wrong with the arguments, or nothing."""
    reserved: bool = True
    """May concern destinations of the broker itself."""
    pattern: bool = False
    """The address is a pattern of queues or topics."""


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


# -- arguments ----------------------------------------------------------------------------------------------------------------------
def _settings(arguments: Mapping[str, Any]) -> str:
    return Settings.problem(dict(arguments))


def _changed_settings(arguments: Mapping[str, Any]) -> str:
    nothing = "" if arguments else f"an update names at least one setting; the settings are {', '.join(NAMES)}"
    return _settings(arguments) or nothing


def _direction(arguments: Mapping[str, Any]) -> str:
    if set(arguments) == {"direction"} and arguments["direction"] in DIRECTIONS:
        return ""
    return f"name the direction: one of {', '.join(DIRECTIONS)}"


def _depth(arguments: Mapping[str, Any]) -> str:
    depth = arguments.get("depth")
    if set(arguments) == {"depth"} and type(depth) is int and 0 <= depth <= DEPTH_MAX:
        return ""
    return "name the depth you saw, a whole number of messages: nobody should discard messages without knowing how many"


def _destruction(arguments: Mapping[str, Any]) -> str:
    """`if_unused`: refused if anybody uses it, or anything is in it."""
    if not isinstance(arguments.get("if_unused", False), bool):
        return "if_unused is true or false"
    return _depth({name: value for name, value in arguments.items() if name != "if_unused"})


def _alias(arguments: Mapping[str, Any]) -> str:
    return alias_problem(arguments) or ("" if "target" in arguments else "name the target, the destination that it stands for")


def _changed_alias(arguments: Mapping[str, Any]) -> str:
    return alias_problem(arguments) or ("" if arguments else "an update names what is to change")


def _nothing(arguments: Mapping[str, Any]) -> str:
    return "this takes no arguments" if arguments else ""


def _branch(arguments: Mapping[str, Any]) -> str:
    branch = arguments.get("branch")
    if set(arguments) == {"branch"} and type(branch) is int and 0 < branch <= DEPTH_MAX:
        return ""
    return "name the branch: its number in surety.prepared, a whole number"


def _operation(arguments: Mapping[str, Any]) -> str:
    number = arguments.get("operation")
    if set(arguments) == {"operation"} and type(number) is int and 0 < number <= DEPTH_MAX:
        return ""
    return "name the operation: its number, a whole number"


def _undo(arguments: Mapping[str, Any]) -> str:
    number = arguments.get("undo")
    if set(arguments) == {"undo"} and type(number) is int and 0 < number <= DEPTH_MAX:
        return ""
    return "name the purge: its number, a whole number"


def _founding(arguments: Mapping[str, Any]) -> str:
    """See engine.founding."""
    if unknown := sorted(set(arguments) - {"name", "client_id", "account", "shared", "selector", "no_local"}):
        return f"a subscription does not take {unknown[0]}"
    if not all(isinstance(arguments.get(name, "x"), str) for name in ("name", "client_id", "account", "selector")):
        return "name, client_id, account and selector are texts"
    if not (arguments.get("name") and arguments.get("account")):
        return "name the subscription, and the account that it belongs to"
    flags = all(isinstance(arguments.get(name, False), bool) for name in ("shared", "no_local"))
    return "" if flags else "shared and no_local are true or false"


def _ending(arguments: Mapping[str, Any]) -> str:
    number = arguments.get("subscription")
    if set(arguments) - {"force"} == {"subscription"} and type(number) is int and 0 < number <= DEPTH_MAX and isinstance(arguments.get("force", False), bool):
        return ""
    return "name the subscription, by its number; force is true or false"


def _subscriptions(arguments: Mapping[str, Any]) -> str:
    numbers = arguments.get("numbers")
    if set(arguments) != {"numbers"} or not isinstance(numbers, list) or len(numbers) > DELIVERIES_MAX or any(type(number) is not int for number in numbers):
        return f"numbers are those of subscriptions, {DELIVERIES_MAX} at the most"
    return ""


def _numbers(arguments: Mapping[str, Any]) -> str:
    for name, value in arguments.items():
        if type(value) is not int or not 0 <= value <= DEPTH_MAX:
            return f"{name} must be a whole number, 0 or greater"
    return ""


def _look(arguments: Mapping[str, Any]) -> str:
    """See engine.looking."""
    if unknown := sorted(set(arguments) - {"subscription", "from", "newest_first", "positions", "messages", "bodies"}):
        return f"a look does not take {unknown[0]}"
    for name in ("positions", "messages"):
        value = arguments.get(name, 1)
        if type(value) is not int or not 0 < value <= DEPTH_MAX:
            return f"{name} must be a whole number, 1 or greater"
    place = arguments.get("from")
    if place is not None and not (isinstance(place, list) and len(place) == 2 and all(type(each) is int for each in place)
                                  and 0 <= place[0] < LANES and 0 <= place[1] <= DEPTH_MAX):  # fmt: skip
        return "from must be a lane and a position"
    if not isinstance(arguments.get("subscription", 0), int):
        return "subscription must be a number"
    return "" if all(isinstance(arguments.get(name, False), bool) for name in ("newest_first", "bodies")) else "newest_first and bodies are true or false"


def _listing(arguments: Mapping[str, Any]) -> str:
    """See engine.presence."""
    if unknown := sorted(set(arguments) - {"after", "limit", "only", "connection", *_LISTED_OF}):
        return f"a list does not take {unknown[0]}"
    numbers = [arguments.get(name, 0) for name in ("after", "limit", "only", "connection")]
    wrong = any(type(number) is not int or not 0 <= number <= DEPTH_MAX for number in numbers) or arguments.get("limit") == 0
    texts = all(isinstance(arguments.get(name, ""), str) for name in _LISTED_OF)
    return "after, limit, only and connection are whole numbers, all else is a text" if wrong or not texts else ""


_LISTED_OF = ("destination", "account", "client_id")


def _held(arguments: Mapping[str, Any]) -> str:
    if unknown := sorted(set(arguments) - {"consumer", "deliveries", "after", "limit"}):
        return f"this does not take {unknown[0]}"
    deliveries = arguments.get("deliveries", [])
    if not isinstance(deliveries, list) or len(deliveries) > DELIVERIES_MAX or any(type(tag) is not int for tag in deliveries):
        return f"deliveries are their numbers, {DELIVERIES_MAX} at the most"
    numbers = [arguments.get(name, 1) for name in ("after", "limit")] + [arguments.get("consumer")]
    return "name the consumer, by its number" if any(type(number) is not int or not 0 <= number <= DEPTH_MAX for number in numbers) else ""


def _delayed(arguments: Mapping[str, Any]) -> str:
    """See engine.rescheduling."""
    action, moves = arguments.get("action"), arguments.get("action") == "reschedule"
    if action not in ("cancel", "deliver", "reschedule") or set(arguments) != {"schedule", "due_at", "action", *(["at"] if moves else [])}:
        return "name the delayed message by its number and by when it is due, and the action: cancel, deliver, or reschedule with the instant"
    numbers = [arguments["schedule"], arguments["due_at"], arguments.get("at", 1)]
    return "" if all(type(number) is int and 0 < number <= DEPTH_MAX for number in numbers) else "numbers and instants are whole numbers"


def _dismissal(arguments: Mapping[str, Any]) -> str:
    number, reason = arguments.get("connection"), arguments.get("reason")
    if set(arguments) != {"connection", "reason"} or type(number) is not int or not 0 < number <= DEPTH_MAX:
        return "name the connection, by its number, and the reason"
    if not isinstance(reason, str) or not 0 < len(reason) <= REASON_CHARACTERS_MAX or not reason.isprintable():
        return f"give a reason, which the client is told: 1 to {REASON_CHARACTERS_MAX} printable characters"
    return ""


def _term(arguments: Mapping[str, Any], **others: Callable[[Any], bool]) -> str:
    """Of the node itself, not of what it holds: `epoch` says which term is meant, so that the next one is not quiesced by what was asked of this one."""
    epoch = arguments.get("epoch")
    if set(arguments) != {"epoch", *others} or type(epoch) is not int or not 0 < epoch <= DEPTH_MAX:
        return f"give these and nothing else: {', '.join(['epoch, that of the node that serves', *others])}"
    wrong = [name for name, fits in others.items() if not fits(arguments[name])]
    return f"{wrong[0]} cannot be {arguments[wrong[0]]!r:.80}" if wrong else ""


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NODE_CHARACTERS_MAX and value.isprintable()


def _drain(arguments: Mapping[str, Any]) -> str:
    return _term(arguments, seconds=lambda value: type(value) is int and 0 <= value <= DRAIN_SECONDS_MAX)


def _taking_over(arguments: Mapping[str, Any]) -> str:
    return _term(arguments, node=_is_name)


def _listener(arguments: Mapping[str, Any]) -> str:
    return _term(arguments, listener=_is_name)


def _percent(arguments: Mapping[str, Any]) -> str:
    percent = arguments.get("percent")
    if set(arguments) == {"percent"} and type(percent) is int and 0 <= percent <= PERCENT_MAX:
        return ""
    return f"name the percent of a segment that may be unsettled, a whole number up to {PERCENT_MAX}"


VERBS: Mapping[str, Form] = {
    "create": Form(addressed=True, problem=_settings, reserved=False),
    "update": Form(addressed=True, problem=_changed_settings),
    "create_alias": Form(addressed=True, problem=_alias, reserved=False),
    "update_alias": Form(addressed=True, problem=_changed_alias, reserved=False),
    "delete_alias": Form(addressed=True, problem=_nothing, reserved=False),
    "set_policy": Form(addressed=True, problem=_changed_settings, pattern=True),
    "drop_policy": Form(addressed=True, problem=_nothing, pattern=True),
    "pause": Form(addressed=True, problem=_direction, reserved=False),
    "resume": Form(addressed=True, problem=_direction, reserved=False),
    "purge": Form(addressed=True, problem=_depth),
    "destroy": Form(addressed=True, problem=_destruction, reserved=False),
    "undo": Form(addressed=True, problem=_undo),
    "give_up": Form(addressed=True, problem=_undo),
    "subscribe": Form(addressed=True, problem=_founding, reserved=False),
    "unsubscribe": Form(addressed=False, problem=_ending),
    "subscriptions": Form(addressed=False, problem=_subscriptions),
    "browse": Form(addressed=True, problem=_look),
    "connections": Form(addressed=False, problem=_listing),
    "consumers": Form(addressed=False, problem=_listing),
    "producers": Form(addressed=False, problem=_listing),
    "transactions": Form(addressed=False, problem=_listing),
    "unsettled": Form(addressed=False, problem=_held),
    "release": Form(addressed=False, problem=_held),
    "delayed": Form(addressed=True, problem=_delayed),
    "disconnect": Form(addressed=False, problem=_dismissal),
    "operate": Form(addressed=True, problem=operation_problem),
    "cancel": Form(addressed=True, problem=_operation),
    "quiesce": Form(addressed=False, problem=_term),
    "unquiesce": Form(addressed=False, problem=_term),
    "drain": Form(addressed=False, problem=_drain),
    "take_over": Form(addressed=False, problem=_taking_over),
    "pause_listener": Form(addressed=False, problem=_listener),
    "resume_listener": Form(addressed=False, problem=_listener),
    "compact": Form(addressed=False, problem=_percent),
    "compactable": Form(addressed=False, problem=_percent),
    "commit": Form(addressed=False, problem=_branch),
    "rollback": Form(addressed=False, problem=_branch),
    "forget": Form(addressed=False, problem=_branch),
    "expire": Form(addressed=False, problem=_numbers),
    "reap": Form(addressed=False, problem=_numbers),
    "ledger": Form(addressed=False, problem=_numbers),
    "retain": Form(addressed=False, problem=_numbers),
}
"""The last four are the scheduler's, the rest operators' verbs: `operate` begins an operation on many messages (engine.operation), which has the request's
number, and `cancel` ends one. Six are about the node itself (server.managing). Three are of prepared branches of distributed transactions, to end one by
hand and to forget that one was ended so."""
LOOKS = frozenset(("subscriptions", "browse", "connections", "consumers", "producers", "transactions", "unsettled", "compactable"))
"""The verbs that change nothing: the answer is for who asked alone, as it may hold messages, and he takes it away (`take`)."""


# -- requests -----------------------------------------------------------------------------------------------------------------------
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
