"""Reads of the memory store: what an interval holds, by plain search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from broker_core.engine.message import VOLATILE, Encoding, Message, StoredBody, octets_as_read
from broker_core.engine.reads import RETAINED, ExpiredWanted, PageWanted, PositionsWanted, Read, ScheduledWanted
from broker_core.engine.wishes import MARK

from . import SegmentMissing
from .memory_tables import Row, Tables

Found = TypeVar("Found", Row, Message)


def read_rows(tables: Tables, read: Read, *, cut: bool) -> tuple[list[Message], bool]:
    """The rows, and whether they are all. `cut`: end a page after its first row. Raises SegmentMissing."""
    if isinstance(read, ScheduledWanted):
        return _scheduled(tables, read, 1 if cut else read.limit)
    for segment in read.segments:
        if segment != RETAINED:
            may_read(tables, segment)
    if isinstance(read, ExpiredWanted):
        due = sorted(_expired(tables, read), key=lambda message: (message.header.expiration, message.sequence))
        found = _page(due, read.limit, read.bytes_max, octets_as_read)
        ended = len(found) == read.limit or sum(map(octets_as_read, found)) >= read.bytes_max or len(found) < len(due)
        return found, not ended
    if isinstance(read, PositionsWanted):
        wanted = set(read.positions)
        return [_message(row, row.body) for row in _lane(tables, read) if row.position in wanted], True
    rows = [row for row in _lane(tables, read) if read.after < row.position <= read.upto and not _is_left_out(read, row)]
    limit = 1 if cut else read.limit
    weight = _whole if read.wanted is None else _header
    page = _page(rows, limit, read.bytes_max, weight)
    ended = len(page) == limit or sum(weight(row) for row in page) >= read.bytes_max or len(page) < len(rows)
    messages = [_message(row, row.body if read.wanted is None else None) for row in page]
    return messages, not ended or page[-1].position == read.upto


def _scheduled(tables: Tables, read: ScheduledWanted, limit: int) -> tuple[list[Message], bool]:
    rows = sorted(
        [row for row in tables.scheduled.values() if (row.accepted_at, row.sequence) > read.after and row.accepted_at <= read.upto],
        key=lambda row: (row.accepted_at, row.sequence),
    )
    page = _page(rows, limit, read.bytes_max, _whole)
    cut = len(page) == limit or len(page) < len(rows) or sum(row.size for row in page) >= read.bytes_max
    return [_message(row, row.body) for row in page], not cut


def may_read(tables: Tables, segment: int) -> None:
    """A segment that was never made is empty; one that is gone must not be asked for. Raises SegmentMissing."""
    if segment not in tables.segments and segment <= tables.highest_segment:
        raise SegmentMissing(f"segment {segment} is gone")


def _lane(tables: Tables, read: PageWanted | PositionsWanted) -> list[Row]:
    """Rows of the lane in the tables named, in order of position. The volatile lanes of a segment are its twin."""
    key = (read.destination, read.lane)
    rows = [row for number in read.segments if number in tables.segments for row in tables.segments[number].lanes.get(key, ())]
    if RETAINED in read.segments:
        rows += [row for place, (origin, row) in tables.retained.items() if place[:2] == key and origin not in read.segments]
    return sorted(rows, key=lambda row: row.position)


def _expired(tables: Tables, read: ExpiredWanted) -> Iterator[Message]:
    """Spilled ones whole."""
    for number in read.segments:
        if number in tables.segments:
            for (_, lane), rows in tables.segments[number].lanes.items():
                due = [row for row in rows if _is_due(row, read)]
                yield from (_message(row, row.body) if lane >= VOLATILE else _message(_bare(row, read), None) for row in due)
    if RETAINED in read.segments:
        kept = [row for origin, row in tables.retained.values() if origin not in read.segments]
        yield from (_message(_bare(row, read), None) for row in kept if _is_due(row, read))


def _is_due(row: Row, read: ExpiredWanted) -> bool:
    expiration = row.header.expiration
    return expiration > 0 and (expiration, row.sequence) > tuple(read.after) and expiration <= read.upto


def _bare(row: Row, read: ExpiredWanted) -> Row:
    kept = read.sections or MARK.encode() in row.header.octets
    return row if kept else replace(row, header=replace(row.header, octets=b""))


def _whole(row: Row) -> int:
    return row.size


def _header(row: Row) -> int:
    return len(row.header.octets)


def _is_left_out(read: PageWanted, row: Row) -> bool:
    """By a selector that asks for nothing but the sender's own strings; what only a protocol can tell is left to the engine."""
    wanted, header = read.wanted, row.header
    if wanted is None or (wanted.sender and wanted.sender == header.client_id):
        return wanted is not None
    if wanted.selector is None or header.encoding != Encoding.STOMP or header.annotations or b"\\" in header.octets:
        return False
    if any(name.startswith("JMS") for name in wanted.selector.identifiers):
        return False
    properties = dict(line.split(":", 1) for line in header.octets.decode().split("\n") if line)
    return not wanted.selector.matches(properties.get, coerce=True)


def _page(rows: list[Found], limit: int, bytes_max: int, weight: Callable[[Found], int]) -> list[Found]:
    """At most `limit` rows of at most `bytes_max` octets together, but one at least."""
    page: list[Found] = []
    octets = 0
    for row in rows[:limit]:
        before, octets = octets, octets + weight(row)
        if page and (octets > bytes_max or before >= bytes_max):
            break
        page.append(row)
    return page


def _message(row: Row, body: bytes | StoredBody | None) -> Message:
    message = Message(row.header, body, row.size)
    message.destination, message.sequence = row.destination, row.sequence
    message.position, message.accepted_at = row.position, row.accepted_at
    return message
