"""Rows of messages by their keys: statements over the tables that the node named, by index only, and messages of what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from broker_core.engine.message import PRIORITIES, VOLATILE, Header, Message, StoredBody
from broker_core.engine.reads import RETAINED
from broker_core.store.segments import message_table, spill_table
from broker_core.store.sieve import Sieve

SHARD = 0
RETAINED_TABLE = "surety.retained"
COLUMNS = (
    "sequence, position, accepted_at, destination, size, priority, reliability, encoding, expiration, stored_body, message_id, client_id, annotations, headers"
)
SETTINGS = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off; SET LOCAL jit = off"
"""Message tables have no statistics: the planner is told that their index, in its order, is always right."""

Row = Sequence[Any]
Read = Callable[[str, Mapping[str, Any], float], list[Row]]
"""A statement, its parameters and its time in seconds, to the rows. Raises TooSlow, TableGone."""


class TooSlow(Exception):
    """The statement took longer than it may."""


class TableGone(Exception):
    """A segment ended since the node named it: ask the node again."""


def statement(lane: int, segments: Sequence[int], sifted: Sieve, *, newest_first: bool, bodies: bool) -> str:
    """Rows of %(destination)s, %(priority)s from %(first)s to %(last)s that `sifted` lets through, %(limit)s at the most, in order of position."""
    order = f"ORDER BY position {'DESC' if newest_first else 'ASC'}"
    row = f"{COLUMNS}, {'body' if bodies else 'NULL::bytea'} AS body"
    selects = []
    for segment in segments:
        if sifted.columns:  # worked out once a row: OFFSET 0 keeps the planner from copying it to everyone who asks
            source = f"(SELECT *{sifted.columns} FROM {source_of(lane, segment)} {order} OFFSET 0) AS source WHERE {sifted.condition}"
        else:
            source = f"{source_of(lane, segment)} AND {sifted.condition}"
        selects.append(f"(SELECT {row} FROM {source} {order} LIMIT %(limit)s)")
    return f"SELECT * FROM ({' UNION ALL '.join(selects)}) AS rows {order} LIMIT %(limit)s"


def source_of(lane: int, segment: int) -> str:
    """A segment's rows of the interval, to stand behind FROM."""
    where = "destination = %(destination)s AND priority = %(priority)s AND position BETWEEN %(first)s AND %(last)s"
    if segment == RETAINED:  # survivors of a compaction under way are in both places; the segment speaks for itself
        where = f"shard = {SHARD} AND {where} AND segment <> ALL(%(segments)s::int4[])"
    return f"{_table(lane, segment)} WHERE {where}"


def _table(lane: int, segment: int) -> str:
    if lane >= VOLATILE:
        return spill_table(SHARD, segment)
    return RETAINED_TABLE if segment == RETAINED else message_table(SHARD, segment)


def keys(destination: int, lane: int, segments: Sequence[int]) -> dict[str, Any]:
    return {"destination": destination, "priority": lane % PRIORITIES, "segments": list(segments)}


def message_of(row: Row) -> Message:
    """Of one row: COLUMNS and the body."""
    priority, reliability, encoding, expiration, stored_body, message_id, client_id, annotations, octets, body = row[5:]
    octets = bytes(octets)
    header = Header(octets, priority, reliability, expiration, encoding, message_id or "", client_id or "", annotations or "")
    content = StoredBody(stored_body, row[4] - len(octets)) if stored_body is not None else None if body is None else bytes(body)
    message = Message(header, content, row[4])
    message.sequence, message.position, message.accepted_at, message.destination = row[:4]
    return message
