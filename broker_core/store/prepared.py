"""Prepared branches (R13): rows that come and go with group commits, and are read at recovery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import AsyncCursor

from broker_core.engine.branch import State
from broker_core.engine.message import Header, Message, StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.writes import Commit, PreparedBranch

from .arrays import integers
from .literals import literal
from .queries import QUERIES
from .rows import SENT

PREPARED = -3
"""Stands for them where body_reference names a segment."""


def prepare(branches: Sequence[PreparedBranch], shard: int) -> list[bytes]:
    """The statement that keeps the branches; what they are about is a COPY."""
    rows = [
        b"(%d,%d,%b,%b,%d,%d,%d,%d,%d)"
        % (
            shard, one.branch, literal(one.xid), literal(one.account), one.state, len(one.sends), len(one.settled), one.octets, one.prepared_at,
        )
        for one in branches
    ]  # fmt: skip
    names = b"shard,branch,xid,account,state,sends,acknowledgements,octets,prepared_at"
    return [b"INSERT INTO surety.prepared(" + names + b")VALUES" + b",".join(rows)]


def resolve(commit: Commit, shard: int) -> list[bytes]:
    """What was prepared goes. A large body that was sent is named by its segment or the schedule by now, or nobody needs it and the engine says so."""
    ended = integers([branch for branch, _ in commit.resolved])
    over = integers([branch for branch, state in commit.resolved if not state])
    parts = [
        (
            f"WITH gone AS (DELETE FROM surety.prepared_item WHERE shard = {shard} AND branch = ANY('{ended}'::int8[]) RETURNING stored_body) "
            f"DELETE FROM surety.body_reference WHERE shard = {shard} AND segment = {PREPARED} "
            "AND body IN (SELECT stored_body FROM gone WHERE stored_body IS NOT NULL)"
        ),
        f"DELETE FROM surety.prepared WHERE shard = {shard} AND branch = ANY('{over}'::int8[])",
    ]
    parts += [
        f"UPDATE surety.prepared SET state = {state:d}, ended_at = {commit.at} WHERE shard = {shard} AND branch = {branch}"
        for branch, state in commit.resolved
        if state
    ]
    return [part.encode() for part in parts]


async def prepared_branches(cursor: AsyncCursor[Any], shard: int) -> list[PreparedBranch]:
    """As they were prepared, in the order of their numbers. What they hold is bounded (engine.limits). Raises psycopg.Error."""
    rows = await (await cursor.execute(QUERIES["prepared_read"], {"shard": shard})).fetchall()
    found = {row[0]: PreparedBranch(*row) for row in rows}
    items = await (await cursor.execute(QUERIES["prepared_items_read"], {"shard": shard, "state": State.PREPARED})).fetchall()
    for branch, outcome, subscription, address, *columns in items:
        message = _message(*columns)
        if outcome == SENT:
            found[branch].sends.append((address, message))
        else:
            found[branch].settled.append((subscription, Outcome(outcome), message))
    return list(found.values())


def _message(
    octets: bytes, priority: int, reliability: int, expiration: int, encoding: int, message_id: str | None, client_id: str | None,
    annotations: str | None, delay: int, duplicate_id: str, sequence: int, position: int, accepted_at: int, destination: int, size: int,
    body: bytes | None, stored_body: int | None,
) -> Message:  # fmt: skip
    header = Header(
        octets, priority, reliability, expiration, encoding, message_id or "", client_id or "", annotations or "", delay, duplicate_id
    )  # fmt: skip
    message = Message(header, body if stored_body is None else StoredBody(stored_body, size - len(octets)), size)
    message.sequence, message.position, message.accepted_at, message.destination = sequence, position, accepted_at, destination
    return message
