"""Operations of operators: their rows come with the group commits that do their steps, are read at recovery, and kept for some weeks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from psycopg import AsyncCursor

from broker_core.engine.reads import RETAINED
from broker_core.engine.writes import BulkCopy, OperationRow, OperationState

from .arrays import integers, texts
from .literals import json_literal, literal
from .queries import QUERIES
from .rows import COLUMNS, instant
from .segments import message_table

_INSERT = (
    b"INSERT INTO surety.operation(shard,operation,verb,address,arguments,requested_by,state,looked_at,done,skipped,failed,total,place,started_at,ended_at,"
    b"error,results)VALUES"
)
_UPDATE = (
    b"ON CONFLICT(shard,operation)DO UPDATE SET state=excluded.state,looked_at=excluded.looked_at,done=excluded.done,skipped=excluded.skipped,"
    b"failed=excluded.failed,total=excluded.total,place=excluded.place,started_at=excluded.started_at,ended_at=excluded.ended_at,error=excluded.error,"
    b"results=excluded.results"
)
_SOURCE = "size, body, stored_body, encoding, headers, message_id, client_id, sequence, reliability, expiration, annotations"


def progress(rows: Sequence[OperationRow], shard: int) -> list[bytes]:
    """Statements that keep the operations as they are now; what became of one that ended is in the audit, too."""
    parts = [_INSERT + b",".join([_row(row, shard) for row in rows]) + _UPDATE]
    ended = integers([row.operation for row in rows if row.ended_at is not None])
    if ended != "{}":
        parts.append(
            (
                "INSERT INTO surety.audit (who, what, address, request, result) SELECT requested_by, verb || ' ' || state, address, operation, "
                "jsonb_build_object('looked_at', looked_at, 'done', done, 'skipped', skipped, 'failed', failed, 'error', error) "
                f"FROM surety.operation WHERE shard = {shard} AND operation = ANY('{ended}'::int8[]) ORDER BY operation"
            ).encode()
        )
    return parts


def _row(row: OperationRow, shard: int) -> bytes:
    by = b"coalesce((SELECT requested_by FROM surety.control_request WHERE shard=%d AND request=%d),'')" % (shard, row.operation)
    return b"(%d,%d,%b,%b,%b,%b,%b,%d,%d,%d,%d,%b,%b,%d,%b,%b,%b)" % (
        shard, row.operation, literal(row.verb), literal(row.address), json_literal(row.arguments), by, literal(row.state.value),
        row.looked_at, row.done, row.skipped, row.failed, _number(row.total), json_literal(row.place), row.started_at, _number(row.ended_at),
        literal(row.error), json_literal(row.results),
    )  # fmt: skip


def _number(value: int | None) -> bytes:
    return b"NULL::int8" if value is None else b"%d" % value


def bulk_copy(bulk: BulkCopy, shard: int, segment: int) -> bytes:
    """R15, of many: sources' octets at neighbouring places. A source that is not there violates NOT NULL: better no commit than a position without its
    message."""
    if bulk.segment == RETAINED:
        source, same = "surety.retained", f"s.shard = {shard} AND "
    else:
        source, same = message_table(shard, bulk.segment), ""
    if _are_alike_neighbours(bulk):
        return _neighbours(bulk, shard, segment, f"{source} s WHERE {same}")
    arrays, names = [f"'{integers(bulk.positions)}'::int8[]"], ["position"]
    if bulk.expirations is not None:
        arrays.append(f"'{integers(map(instant, bulk.expirations))}'::int8[]")
        names.append("expiration")
    if bulk.annotations is not None:
        arrays.append(literal(texts(bulk.annotations)).decode() + "::text[]")
        names.append("annotations")
    expiration = "t.expiration" if bulk.expirations is not None else "o.expiration"
    annotations = "NULLIF(t.annotations, '')" if bulk.annotations is not None else "o.annotations"
    identifier = literal(bulk.identifier).decode()
    destination, lane = bulk.source
    statement = (
        f"WITH copied AS (INSERT INTO {message_table(shard, segment)}({COLUMNS}) SELECT {bulk.sequence - 1}::int8 + t.n, {bulk.position - 1}::int8 + t.n, "
        f"{bulk.accepted_at}::int8, {bulk.destination}, o.size, o.body, o.stored_body, {expiration}, {bulk.lane}, o.reliability, o.encoding, NULL, "
        f"coalesce(o.message_id, {identifier} || o.sequence), o.client_id, {annotations}, o.headers "
        f"FROM unnest({', '.join(arrays)}) WITH ORDINALITY AS t ({', '.join(names)}, n) "
        # LATERAL with a LIMIT is one index probe a copy, whatever the planner thinks of a table without statistics.
        f"LEFT JOIN LATERAL (SELECT {_SOURCE} FROM {source} s WHERE {same}s.destination = {destination} AND s.priority = {lane} "
        "AND s.position = t.position LIMIT 1) AS o ON true RETURNING stored_body) "
        f"INSERT INTO surety.body_reference(shard,segment,body) SELECT {shard},{segment},stored_body FROM copied "
        "WHERE stored_body IS NOT NULL ON CONFLICT DO NOTHING"
    )
    return statement.encode()


def _are_alike_neighbours(bulk: BulkCopy) -> bool:
    if bulk.positions[-1] - bulk.positions[0] + 1 != len(bulk.positions):
        return False
    return len(set(bulk.expirations or ())) < 2 and len(set(bulk.annotations or ())) < 2


def _neighbours(bulk: BulkCopy, shard: int, segment: int, source: str) -> bytes:
    """The same of what is read in one go, a third cheaper. How many there were is asked before anything is referred to: a source that is not there divides
    by zero."""
    first, last = bulk.positions[0], bulk.positions[-1]
    expiration = "s.expiration" if bulk.expirations is None else str(instant(bulk.expirations[0]))
    annotations = "s.annotations"
    if bulk.annotations is not None:
        annotations = f"{literal(bulk.annotations[0]).decode()}::text" if bulk.annotations[0] else "NULL::text"
    destination, lane = bulk.source
    statement = (
        f"WITH copied AS (INSERT INTO {message_table(shard, segment)}({COLUMNS}) SELECT s.position + {bulk.sequence - first}::int8, "
        f"s.position + {bulk.position - first}::int8, {bulk.accepted_at}::int8, {bulk.destination}, s.size, s.body, s.stored_body, {expiration}, {bulk.lane}, "
        f"s.reliability, s.encoding, NULL, coalesce(s.message_id, {literal(bulk.identifier).decode()} || s.sequence), s.client_id, {annotations}, s.headers "
        f"FROM {source}s.destination = {destination} AND s.priority = {lane} AND s.position BETWEEN {first} AND {last} RETURNING stored_body) "
        f"INSERT INTO surety.body_reference(shard,segment,body) SELECT {shard},{segment},stored_body FROM copied "
        f"WHERE (SELECT 1 / (count(*) = {len(bulk.positions)})::int4 FROM copied) = 1 AND stored_body IS NOT NULL ON CONFLICT DO NOTHING"
    )
    return statement.encode()


async def unended(cursor: AsyncCursor[Any], shard: int) -> list[OperationRow]:
    """Those that wait or run, in the order of their numbers. Raises psycopg.Error."""
    rows = await (await cursor.execute(QUERIES["operations_read"], {"shard": shard})).fetchall()
    found = []
    for number, verb, address, arguments, state, looked_at, done, skipped, failed, total, place, started_at, error, results in rows:
        counts = looked_at, done, skipped, failed, total
        at = json.loads(place), started_at, None
        found.append(OperationRow(number, verb, address, json.loads(arguments), OperationState(state), *counts, *at, error, json.loads(results)))
    return found
