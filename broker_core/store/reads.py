"""Pages of stored messages (R6, R7): whole intervals in one statement however many segments they span, stopped by rows or octets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection, AsyncCursor
from psycopg.types.numeric import Int8

from broker_core.engine.message import PRIORITIES, VOLATILE, Header, Message, StoredBody, octets_as_read
from broker_core.engine.reads import RETAINED, ExpiredWanted, PageWanted, PositionsWanted, Read, ScheduledWanted
from broker_core.engine.subscription import EVERYTHING
from broker_core.engine.wishes import MARK

from .segments import Segments, message_table, spill_table
from .sieve import Constant, sieve

_ROW = (
    "headers, priority, reliability, expiration, encoding, message_id, client_id, annotations, "
    "sequence, position, accepted_at, destination, size, body, stored_body"
)
_BARE = _ROW.replace("body, stored_body", "NULL::bytea AS body, NULL::int8 AS stored_body")
_WISHING = f"CASE WHEN position('{MARK}'::bytea IN headers) > 0 THEN headers ELSE ''::bytea END AS headers"
_SCHEDULED_ROW = _ROW.replace("sequence, position, accepted_at", "schedule AS sequence, 0::int8 AS position, due_at AS accepted_at")
_RETAINED = "surety.retained"
Keys = dict[str, int | list[int]]
HEADERS_KEPT = 2_000
"""Distinct header sections kept so that messages of a page share them."""


SESSION = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off"
"""Pages are prepared statements: planning one anew costs more (0.4 ms) than reading ten rows. The generic plan knows neither limit nor interval,
and the tables have no statistics; so it is told that the index, in its order, is always right."""


class Reader:
    """Reads on one connection, one statement at a time; never the writer's."""

    def __init__(self, connection: AsyncConnection[Any], shard: int, segments: Segments) -> None:
        self.connection = connection
        self._cursor: AsyncCursor[Any] = connection.cursor(binary=True)
        self._shard, self._segments = shard, segments
        self._headers: dict[tuple[object, ...], Header] = {}

    async def read(self, read: Read) -> tuple[list[Message], bool]:
        """The rows, and whether they are all. Raises SegmentMissing, psycopg.Error."""
        if isinstance(read, PageWanted):
            return await self._page(read)
        if isinstance(read, PositionsWanted):
            return await self._positions(read), True
        if isinstance(read, ScheduledWanted):
            return await self._scheduled(read)
        return await self._expired(read)

    async def _page(self, read: PageWanted) -> tuple[list[Message], bool]:
        tables = self._tables(read.lane, self._needed(read))
        where = "destination = %(destination)s::int4 AND priority = %(priority)s::int2 AND position > %(after)s::int8 AND position <= %(upto)s::int8"
        keys: Keys = self._keys(read) | {"after": read.after, "upto": read.upto, "limit": read.limit, "bytes_max": read.bytes_max}
        order = "ORDER BY position LIMIT %(limit)s::int8"
        if read.wanted is not None:
            return await self._scan(read, tables, where, order, keys)
        messages, cut = await self._weighed(self._union(_ROW, tables, where, order), "position", keys, read)
        return messages, not cut or messages[-1].position == read.upto

    async def _scheduled(self, read: ScheduledWanted) -> tuple[list[Message], bool]:
        where = "shard = %(shard)s::int2 AND (due_at, schedule) > (%(due)s::int8, %(number)s::int8) AND due_at <= %(upto)s::int8"
        rows = f"SELECT {_SCHEDULED_ROW} FROM surety.scheduled WHERE {where} ORDER BY due_at, schedule LIMIT %(limit)s::int8"
        due, number = read.after
        keys: Keys = {"shard": self._shard, "due": due, "number": number, "upto": read.upto, "limit": read.limit, "bytes_max": read.bytes_max}
        messages, cut = await self._weighed(rows, "accepted_at, sequence", keys, read)
        return messages, not cut

    async def _weighed(self, rows: str, order: str, keys: Keys, read: PageWanted | ScheduledWanted) -> tuple[list[Message], bool]:
        """The rows that fit, one at least, and whether there may be more."""
        # `before` is the weight of the rows above. The row that overflows comes without its body: it only tells that there is more.
        weighed = f"SELECT *, sum(size) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) - size AS before FROM ({rows}) AS source"
        fits = "before = 0 OR before + size <= %(bytes_max)s::int8"
        row = _ROW.replace("body, stored_body", f"CASE WHEN {fits} THEN body END AS body, CASE WHEN {fits} THEN stored_body END AS stored_body")
        statement = f"SELECT {row} FROM ({weighed}) AS page WHERE before < %(bytes_max)s::int8 OR before = 0 ORDER BY {order}"
        messages = await self._messages(statement, keys)
        return messages, _cut(read, messages, [message.size for message in messages])

    async def _scan(self, read: PageWanted, tables: list[str], where: str, order: str, keys: Keys) -> tuple[list[Message], bool]:
        """The same without bodies, and without what the filter certainly leaves out: header sections are what weighs."""
        sifted = sieve(read.wanted or EVERYTHING)
        if sifted.columns:
            # Worked out once a row, whatever asks for it: OFFSET 0 keeps the planner from copying it to everyone who does.
            rows = self._union(_BARE, tables, where, order, f"SELECT *{sifted.columns}", sifted.condition)
        else:
            rows = self._union(_BARE, tables, f"{where} AND {sifted.condition}", order)
        messages, complete = await self._sections(rows, "position", keys, read, sifted.constants)
        return messages, complete or messages[-1].position == read.upto

    async def _sections(
        self, rows: str, order: str, keys: Keys, read: PageWanted | ExpiredWanted, constants: Mapping[str, Constant] | None = None,
    ) -> tuple[list[Message], bool]:  # fmt: skip
        """The rows of which that fits what comes of them, one at least, and whether there are no more."""
        weight = "octet_length(headers) + coalesce(octet_length(body), 0)"
        weighed = f"SELECT *, sum({weight}) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING) - ({weight}) AS before FROM ({rows}) AS source"
        statement = f"SELECT {_ROW} FROM ({weighed}) AS page WHERE before < %(bytes_max)s::int8 OR before = 0 ORDER BY {order}"
        messages = await self._messages(statement, keys, constants)
        return messages, not _cut(read, messages, [octets_as_read(message) for message in messages])

    async def _positions(self, read: PositionsWanted) -> list[Message]:
        where = "destination = %(destination)s::int4 AND priority = %(priority)s::int2 AND position = ANY(%(positions)s::int8[])"
        statement = self._union(_ROW, self._tables(read.lane, read.segments), where, "ORDER BY position")
        return await self._messages(statement, self._keys(read) | {"positions": read.positions})

    async def _expired(self, read: ExpiredWanted) -> tuple[list[Message], bool]:
        where = "expiration > 0 AND (expiration, sequence) > (%(expiration)s::int8, %(sequence)s::int8) AND expiration <= %(upto)s::int8"
        bare = _BARE if read.sections else _BARE.replace("headers", _WISHING)
        order = "ORDER BY expiration, sequence LIMIT %(limit)s::int8"
        rows = self._union(bare, self._tables(0, read.segments), where, order, twins=self._tables(VOLATILE, read.segments))
        expiration, sequence = read.after
        keys: Keys = {"expiration": expiration, "sequence": sequence, "upto": read.upto, "limit": read.limit, "shard": self._shard, "asked": read.segments}
        return await self._sections(rows, "expiration, sequence", keys | {"bytes_max": read.bytes_max}, read)

    def _keys(self, read: PageWanted | PositionsWanted) -> Keys:
        return {"destination": read.destination, "priority": read.lane % PRIORITIES, "shard": self._shard, "asked": read.segments}

    def _needed(self, read: PageWanted) -> list[int]:
        """The segments without those that the page cannot reach: a closed segment holds every position of its range of a stored lane.
        A scan reaches them all, as it leaves out most rows."""
        if read.wanted is not None:
            return read.segments
        needed, rows = [], 0
        for segment in read.segments:
            known = self._segments.known.get(segment)
            needed.append(segment)
            if known is not None and known.closed is not None and read.lane < VOLATILE:
                first, last = known.closed.lanes.get((read.destination, read.lane), (0, -1))
                rows += max(0, min(last, read.upto) - max(first, read.after + 1) + 1)
                if rows >= read.limit:
                    break
        return needed

    def _tables(self, lane: int, segments: list[int]) -> list[str]:
        """Names of the tables to ask. Raises SegmentMissing."""
        known = [self._segments.known[segment] for segment in segments if segment != RETAINED and self._segments.may_read(segment)]
        if lane >= VOLATILE:
            return [spill_table(self._shard, segment.segment) for segment in known if segment.spill]
        retained = [_RETAINED] if RETAINED in segments else []
        return retained + [message_table(self._shard, segment.segment) for segment in known]

    @staticmethod
    def _union(row: str, tables: list[str], where: str, order: str, within: str = "", condition: str = "", twins: Sequence[str] = ()) -> str:
        """One SELECT over all the tables: each is read in the order of its index and merged, so that a limit stops all of them early.
        `within`: first this of each, for a `condition` over it. `twins`: of these, too, and whole rows."""
        # Survivors of a compaction under way are in both places; the segment speaks for itself while it is asked.
        conditions = {_RETAINED: f"shard = %(shard)s::int2 AND {where} AND segment <> ALL(%(asked)s::int4[])"}
        if within:
            sources = [f"({within} FROM {table} WHERE {conditions.get(table, where)} ORDER BY position OFFSET 0) AS row WHERE {condition}" for table in tables]
        else:
            sources = [f"{table} WHERE {conditions.get(table, where)}" for table in tables]
        selects = [f"(SELECT {row} FROM {source} {order})" for source in sources]
        selects += [f"(SELECT {_ROW} FROM {twin} WHERE {where} {order})" for twin in twins]
        if not selects:
            selects.append(f"(SELECT {row} FROM {_RETAINED} WHERE false)")
        return f"SELECT * FROM ({' UNION ALL '.join(selects)}) AS rows {order}"

    async def _messages(self, statement: str, keys: Keys, constants: Mapping[str, Constant] | None = None) -> list[Message]:
        messages, headers = [], self._headers
        # Always int8: a type chosen by the value's size would be a prepared statement of its own.
        sized: dict[str, Any] = {name: list(map(Int8, key)) if isinstance(key, list) else Int8(key) for name, key in keys.items()}
        if constants:
            sized.update({name: Int8(value) if isinstance(value, int) else value for name, value in constants.items()})
        for row in await (await self._cursor.execute(statement.encode(), sized, prepare=True)).fetchall():
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


def _cut(read: PageWanted | ScheduledWanted | ExpiredWanted, messages: list[Message], weights: list[int]) -> bool:
    """Take away the row that overflowed; whether there may be more than these."""
    octets = sum(weights)
    if octets > read.bytes_max and len(messages) > 1:
        messages.pop()
    return octets >= read.bytes_max or len(messages) == read.limit
