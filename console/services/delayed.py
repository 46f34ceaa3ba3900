"""Delayed messages: what waits in a destination's schedule, and what operators do about it."""

from collections.abc import Mapping
from typing import Any

from broker_core.viewing import LEVEL_NAMES, STORED
from console.permissions import BROWSE_HEADERS, DELETE, MOVE
from console.selectors.rows import rows

from .audit import Actor, require
from .refusals import NotThere
from .requests import Outcome, ask

CANCEL, DELIVER, RESCHEDULE = VERBS = ("cancel", "deliver", "reschedule")
RIGHTS = {CANCEL: DELETE, DELIVER: MOVE, RESCHEDULE: MOVE}
_COLUMNS = "schedule AS number, due_at, size, priority, reliability, encoding, expiration, message_id"


class NoDelayed(NotThere):
    """It is not in the schedule any more, or never was."""


def page(actor: Actor, destination: int, address: str, after: tuple[int, int], limit: int) -> tuple[list[Mapping[str, Any]], str]:
    """Rows of the schedule in the order in which they are due, after (due, number); and the key of the next page. One query, by index. What is best effort
    is in the node's memory only, and is not listed. Raises PermissionDenied."""
    require(actor, BROWSE_HEADERS, "list delayed", address, reads=True)
    found = rows(
        f"""SELECT {_COLUMNS} FROM surety.scheduled
             WHERE shard = 0 AND destination = %(destination)s AND (due_at, schedule) > (%(due)s, %(number)s)
             ORDER BY due_at, schedule LIMIT %(limit)s""",
        {"destination": destination, "due": after[0], "number": after[1], "limit": limit + 1},
    )
    shown = found[:limit]
    return [_told(row) for row in shown], f"{shown[-1]['due_at']}-{shown[-1]['number']}" if len(found) > limit else ""


def change(actor: Actor, destination: int, address: str, number: int, verb: str, at: int | None = None) -> Outcome:
    """`verb`: one of VERBS; `at`: the instant in ms to which it is moved. Raises PermissionDenied, NoDelayed, control.InvalidRequest."""
    require(actor, RIGHTS[verb], verb, address)
    found = rows(
        "SELECT due_at FROM surety.scheduled WHERE shard = 0 AND schedule = %(number)s AND destination = %(destination)s",
        {"number": number, "destination": destination},
    )
    if not found:
        raise NoDelayed("There is no such delayed message any more: it was delivered or cancelled.")
    moved = {} if at is None else {"at": at}
    return ask(actor, RIGHTS[verb], "delayed", address, {"schedule": number, "due_at": found[0]["due_at"], "action": verb, **moved})


def _told(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "number": row["number"], "due_at": row["due_at"], "size": row["size"], "priority": row["priority"], "persistent": row["reliability"] >= STORED,
        "reliability": LEVEL_NAMES[row["reliability"]], "protocol": "amqp" if row["encoding"] else "stomp", "expiration": row["expiration"] or None,
        "message_id": row["message_id"],
    }  # fmt: skip
