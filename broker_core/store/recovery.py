"""Reads back what the ledger amounts to: the last checkpoint, the rows after it, definitions, catalogue. Nothing here is O(stored messages)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from psycopg import AsyncConnection, AsyncCursor

from broker_core.engine.definitions import AliasDefined, DestinationDefined, PolicyDefined, SegmentClosed, SubscriptionDefined
from broker_core.engine.message import VOLATILE
from broker_core.engine.recovered import LedgerRow, Recovered
from broker_core.engine.writes import Checkpoint

from .ledger import SCALARS, arrays_of, ledger_row, takes_all
from .open_segment import OpenSegment
from .operations import unended
from .prepared import prepared_branches
from .queries import QUERIES
from .segments import Segments
from .undo import undoable

Lane = tuple[int, int]


class Recovery:
    """One reading of a shard's state. The catalogue must be loaded, and cleared of what is volatile."""

    def __init__(self, connection: AsyncConnection[Any], shard: int, epoch: int, segments: Segments) -> None:
        self._cursor: AsyncCursor[Any] = connection.cursor(binary=True)
        self._shard, self._epoch, self._segments = shard, epoch, segments
        self.ledger_segment = 1
        """The ledger table that the next commit goes to."""

    async def read(self) -> tuple[Recovered, OpenSegment]:
        """The engine's state, and the store's own of the open segment."""
        ((number, at, sequence, segment, rows, octets),) = await self._all("checkpoint_read")
        checkpoint = Checkpoint(number, at, sequence)
        lanes = await self._all("lanes_read")
        checkpoint.lanes = [(destination, lane, tail) for destination, lane, tail, _, _ in lanes]
        checkpoint.cursors = await self._all("cursors_read")
        checkpoint.blocks = await self._all("blocks_read")
        checkpoint.failures = await self._all("failures_read")
        checkpoint.counters = await self._all("counters_read")
        recovered = Recovered(self._epoch, 0, checkpoint)
        recovered.open_segment, recovered.open_rows, recovered.open_octets = segment, rows, octets
        recovered.open_lanes = {(destination, lane): (first, tail - 1) for destination, lane, tail, where, first in lanes if where == segment}
        for row, weight in await self._ledger_after(number):
            recovered.ledger.append(row)
            _replay(recovered, row, weight)
        recovered.destinations = [DestinationDefined(*row) for row in await self._all("destinations_read")]
        recovered.aliases = [AliasDefined(*row) for row in await self._all("aliases_read")]
        recovered.policies = [PolicyDefined(*row) for row in await self._all("policies_read")]
        recovered.subscriptions = [SubscriptionDefined(*row) for row in await self._all("subscriptions_read")]
        ((recovered.last_destination, recovered.last_subscription),) = await self._all("highest_numbers")
        recovered.segments = [_stored_lanes(known.closed) for known in self._in_order() if known.closed is not None and not known.compacted]
        while self._is_over(recovered):
            _open(recovered, recovered.open_segment + 1)
        recovered.retained = {(destination, lane): (low, high) for destination, lane, low, high in await self._all("retained_ranges")}
        recovered.scheduled = await self._all("scheduled_counts")
        recovered.prepared = await prepared_branches(self._cursor, self._shard)
        recovered.operations = await unended(self._cursor, self._shard)
        recovered.undo = await undoable(self._cursor, self._shard)
        recovered.duplicates = [_identifiers(*row) for row in await self._all("duplicates_read")]
        ((recovered.instance,),) = await self._all("installation_read")
        recovered.clock_ms = (await self._all("clock"))[0][0]
        firsts = {lane: first for lane, (first, _) in recovered.open_lanes.items()}
        last = recovered.ledger[-1].number if recovered.ledger else number
        return recovered, OpenSegment(last, recovered.open_segment, firsts, recovered.open_rows, recovered.open_octets)

    def _is_over(self, recovered: Recovered) -> bool:
        """True if the segment last written takes no more rows: it is closed, or was closed, found empty and dropped since."""
        known = self._segments.known.get(recovered.open_segment)
        if known is None:
            return recovered.open_rows > 0 or recovered.open_segment < max(self._segments.known, default=0)
        return known.closed is not None

    def _in_order(self) -> list[Any]:
        return [self._segments.known[segment] for segment in sorted(self._segments.known)]

    async def _all(self, query: str) -> list[Any]:
        return await (await self._cursor.execute(QUERIES[query], {"shard": self._shard})).fetchall()

    async def _ledger_after(self, number: int) -> list[tuple[LedgerRow, int]]:
        """Rows after the checkpoint, in order; finds the table to go on in on the way. Tables of earlier versions are left behind, not altered: a
        backup may be reading them for hours."""
        rows: list[tuple[LedgerRow, int]] = []
        columns: dict[int, list[str]] = dict(await self._all("ledger_columns"))
        for segment, last_number in await self._all("ledger_segments"):
            if last_number is not None and last_number <= number:
                self.ledger_segment = max(self.ledger_segment, segment)
                continue
            statement = f"SELECT {SCALARS}, {arrays_of(columns[segment])} FROM surety.ledger_{self._shard}_{segment} WHERE number > {number} ORDER BY number"
            found = await (await self._cursor.execute(statement.encode())).fetchall()
            rows.extend(map(ledger_row, found))
            if found or await self._has_rows(segment):
                self.ledger_segment = segment
        narrow = [segment for segment, known in columns.items() if not takes_all(known)]
        self.ledger_segment = max(self.ledger_segment, max(narrow, default=0) + 1)
        return rows

    async def _has_rows(self, segment: int) -> bool:
        statement = f"SELECT EXISTS (SELECT FROM surety.ledger_{self._shard}_{segment})"
        return (await (await self._cursor.execute(statement.encode())).fetchall())[0][0]  # type: ignore[no-any-return]


def _stored_lanes(closed: SegmentClosed) -> SegmentClosed:
    """Without the volatile lanes: their rows are gone."""
    lanes = {key: ends for key, ends in closed.lanes.items() if key[1] < VOLATILE}
    return SegmentClosed(closed.segment, closed.last_sequence, lanes)


def _identifiers(destination: int, instants: str, identifiers: str) -> tuple[int, list[int], list[str]]:
    rows = json.loads(identifiers)
    return destination, [at for at, row in zip(json.loads(instants), rows, strict=True) for _ in row], [one for row in rows for one in row]


def _open(recovered: Recovered, segment: int) -> None:
    recovered.open_segment, recovered.open_rows, recovered.open_octets, recovered.open_lanes = segment, 0, 0, {}


def _replay(recovered: Recovered, row: LedgerRow, octets: int) -> None:
    """What a ledger row did to the open segment."""
    if row.segment != recovered.open_segment:
        _open(recovered, row.segment)
    lanes = recovered.open_lanes
    for destination, lane, first, last in _stored(row.accepted):
        lowest, _ = lanes.get((destination, lane), (first, last))
        lanes[destination, lane] = (lowest, last)
        recovered.open_rows += last - first + 1
    recovered.open_octets += octets


def _stored(accepted: Iterable[tuple[int, int, int, int]]) -> Iterable[tuple[int, int, int, int]]:
    return (range_ for range_ in accepted if range_[1] < VOLATILE)
