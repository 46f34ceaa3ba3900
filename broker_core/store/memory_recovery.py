"""What the memory store tells at recovery, by looking at everything it has: slow and plain, so that the other store's bookkeeping has a witness."""

from __future__ import annotations

from dataclasses import replace

from broker_core.engine.definitions import SegmentClosed
from broker_core.engine.message import VOLATILE
from broker_core.engine.recovered import Recovered
from broker_core.engine.writes import Checkpoint

from .memory_tables import Tables


def recovered(tables: Tables, epoch: int, clock_ms: int, instance: str) -> Recovered:
    """What a term finds: the checkpoint, the ledger after it, definitions, segments."""
    checkpoint = Checkpoint(tables.number, tables.at, tables.sequence)
    checkpoint.lanes = [(*key, tail) for key, tail in tables.lanes.items() if key[0] in tables.destinations]
    known = tables.subscriptions.keys() | {-destination for destination in tables.destinations}
    checkpoint.cursors = [(*key, *marks) for key, marks in tables.cursors.items() if key[0] in known]
    checkpoint.blocks = [(*key, bits) for key, bits in tables.blocks.items() if key[0] in known]
    checkpoint.failures = [(*key, count) for key, count in tables.failures.items() if key[0] in tables.subscriptions]
    checkpoint.counters = [(key, *counts) for key, counts in tables.counters.items() if key in tables.destinations]  # type: ignore[misc]
    found = Recovered(epoch, clock_ms, checkpoint, instance=instance)
    found.ledger = [row for row in tables.ledger if row.number > tables.number]
    found.destinations = [replace(known, settings=dict(known.settings)) for _, known in sorted(tables.destinations.items())]
    found.aliases = [replace(known) for _, known in sorted(tables.aliases.items())]
    found.policies = [replace(known, settings=dict(known.settings)) for _, known in sorted(tables.policies.items())]
    found.subscriptions = [replace(known) for _, known in sorted(tables.subscriptions.items())]
    found.last_destination, found.last_subscription = tables.last_destination, tables.last_subscription
    found.segments = [_stored_lanes(s.closed) for _, s in sorted(tables.segments.items()) if s.closed is not None]
    _describe_open(tables, found)
    for number in sorted({row.destination for row in tables.scheduled.values()}):
        sizes = [row.size for row in tables.scheduled.values() if row.destination == number]
        found.scheduled.append((number, len(sizes), sum(sizes)))
    found.prepared = [branch.recovered() for _, branch in sorted(tables.prepared.items())]
    found.operations = [replace(row) for _, row in sorted(tables.operations.items()) if row.ended_at is None]
    found.undo = [replace(kept, ranges=list(kept.ranges)) for _, kept in sorted(tables.undo.items())]
    for number in sorted({destination for destination, _, _ in tables.duplicates}):
        kept = [(at, one) for (destination, at, _), identifiers in sorted(tables.duplicates.items()) if destination == number for one in identifiers]
        found.duplicates.append((number, [at for at, _ in kept], [one for _, one in kept]))
    for destination, lane, position in tables.retained:
        low, high = found.retained.get((destination, lane), (position, position))
        found.retained[destination, lane] = (min(low, position), max(high, position))
    return found


def _describe_open(tables: Tables, found: Recovered) -> None:
    """The open segment is the one last written, or the next if that is closed or gone."""
    found.open_segment = tables.ledger[-1].segment if tables.ledger else 1
    while (segment := tables.segments.get(found.open_segment)) is None or segment.closed is not None:
        if segment is None and found.open_segment > tables.highest_segment:
            return
        found.open_segment += 1
    for key, rows in segment.lanes.items():
        if rows:
            found.open_lanes[key] = (rows[0].position, rows[-1].position)
            found.open_rows += len(rows)
            found.open_octets += sum(row.size for row in rows)


def _stored_lanes(closed: SegmentClosed) -> SegmentClosed:
    lanes = {key: ends for key, ends in closed.lanes.items() if key[1] < VOLATILE}
    return SegmentClosed(closed.segment, closed.last_sequence, lanes)
