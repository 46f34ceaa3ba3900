"""Pages of stored messages (R6, R7): whole intervals in one statement however many segments they span, stopped by rows or octets."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection, AsyncCursor

from broker_core.engine.effects import RETAINED, ExpiredWanted, PageWanted, PositionsWanted, Read
from broker_core.engine.message import PRIORITIES, VOLATILE, Header, Message, StoredBody

from .segments import Segments, message_table, spill_table

_ROW = (
    "headers, priority, reliability, expiration, encoding, message_id, client_id, annotations, "
    "sequence, position, accepted_at, destination, size, body, stored_body"
)
HEADERS_KEPT = 2_000
"""Distinct header sections kept so that messages of a page share them."""


class Reader:
    """Reads on one connection, one statement at a time; never the writer's."""

    def __init__(self, connection: AsyncConnection[Any], shard: int, segments: Segments) -> None:
        self._cursor: AsyncCursor[Any] = connection.cursor(binary=True)
        self._shard, self._segments = shard, segments
        self._headers: dict[tuple[object, ...], Header] = {}

    async def read(self, read: Read) -> tuple[list[Message], bool]:
        """The rows, and whether they are all. Raises SegmentMissing, psycopg.Error."""
        if isinstance(read, PageWanted):
            return await self._page(read)
        if isinstance(read, PositionsWanted):
            return await self._positions(read), True
        return await self._expired(read)

    async def _page(self, read: PageWanted) -> tuple[list[Message], bool]:
        where = f"destination = {read.destination} AND priority = {read.lane % PRIORITIES} AND position > {read.after} AND position <= {read.upto}"
        rows = self._sources(_ROW, read.lane, read.segments, where, f"ORDER BY position LIMIT {read.limit}")
        # `before` is the weight of the rows above. The row that overflows comes without its body: it only tells that there is more.
        weighed = f"SELECT *, sum(size) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) - size AS before FROM ({rows}) AS source"
        fits = f"before = 0 OR before + size <= {read.bytes_max}"
        row = _ROW.replace("body, stored_body", f"CASE WHEN {fits} THEN body END AS body, CASE WHEN {fits} THEN stored_body END AS stored_body")
        messages = await self._messages(f"SELECT {row} FROM ({weighed}) AS page WHERE before < {read.bytes_max} OR before = 0 ORDER BY position")
        octets = sum([message.size for message in messages])
        if octets > read.bytes_max and len(messages) > 1:
            messages.pop()
        cut = octets >= read.bytes_max or len(messages) == read.limit
        return messages, not cut or messages[-1].position == read.upto

    async def _positions(self, read: PositionsWanted) -> list[Message]:
        positions = ",".join(map(str, read.positions))
        where = f"destination = {read.destination} AND priority = {read.lane % PRIORITIES} AND position = ANY('{{{positions}}}'::int8[])"
        return await self._messages(self._sources(_ROW, read.lane, read.segments, where, "ORDER BY position"))

    async def _expired(self, read: ExpiredWanted) -> tuple[list[Message], bool]:
        expiration, sequence = read.after
        where = f"expiration > 0 AND (expiration, sequence) > ({expiration}, {sequence}) AND expiration <= {read.upto}"
        bare = _ROW.replace("body, stored_body", "NULL::bytea AS body, NULL::int8 AS stored_body")
        messages = await self._messages(self._sources(bare, 0, read.segments, where, f"ORDER BY expiration, sequence LIMIT {read.limit}"))
        return messages, len(messages) < read.limit

    def _sources(self, row: str, lane: int, segments: list[int], where: str, order: str) -> str:
        """One SELECT over all the tables: each is read in the order of its index and merged, so that a limit stops all of them early."""
        known = [self._segments.known[segment] for segment in segments if segment != RETAINED and self._segments.may_read(segment)]
        if lane >= VOLATILE:
            tables = [spill_table(self._shard, segment.segment) for segment in known if segment.spill]
        else:
            tables = [message_table(self._shard, segment.segment) for segment in known]
        selects = [f"(SELECT {row} FROM {table} WHERE {where} {order})" for table in tables]
        if RETAINED in segments and lane < VOLATILE:
            # Survivors of a compaction under way are in both places; the segment speaks for itself while it is asked.
            asked = ",".join(map(str, segments))
            selects.append(f"(SELECT {row} FROM surety.retained WHERE shard = {self._shard} AND {where} AND segment NOT IN ({asked}) {order})")
        if not selects:
            selects.append(f"(SELECT {row} FROM surety.retained WHERE false)")
        return f"SELECT * FROM ({' UNION ALL '.join(selects)}) AS rows {order}"

    async def _messages(self, statement: str) -> list[Message]:
        messages, headers = [], self._headers
        for row in await (await self._cursor.execute(statement.encode())).fetchall():
            columns = row[:8]
            header = headers.get(columns) or self._header(columns)
            stored_body, size = row[14], row[12]
            message = Message(header, row[13] if stored_body is None else StoredBody(stored_body, size - len(header.octets)), size)
            message.sequence, message.position, message.accepted_at, message.destination = row[8:12]
            messages.append(message)
        return messages

    def _header(self, columns: tuple[Any, ...]) -> Header:
        octets, priority, reliability, expiration, encoding, message_id, client_id, annotations = columns
        if len(self._headers) >= HEADERS_KEPT:
            self._headers.clear()
        header = Header(octets, priority, reliability, expiration, encoding, message_id or "", client_id or "", annotations or "")
        self._headers[columns] = header
        return header
