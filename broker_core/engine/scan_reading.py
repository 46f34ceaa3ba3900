"""What scans read from the store: pages without bodies, to look at; bodies of what is about to leave (R8).

One scan of a shard reads at a time, in turn. While there is other traffic it rests between its reads: a multiple of what they took, and as long as
others need for what looking at the rows takes. A read goes through the database's memory with all that it covers, so others lose more by it than its
processor time. When the disk is slow a long read is not made longer still.
"""

from __future__ import annotations

from .commands import Direction, PageLoaded
from .eligibility import open_turns
from .link import Tier
from .message import Message
from .message_group import recognize
from .paging import as_placed, found_missing
from .reads import PageWanted, PositionsWanted
from .scanning import count, head, make_room, matches, remove
from .selection import Scan, Selection
from .shard import Shard
from .subscription import Subscription

REST = 5
"""What a scan rests for each millisecond of its reads."""
REST_MS_MAX = 125
"""After one read. A read covers 50,000 positions: the rests of a search through two million come to 5 s at the most."""
ROWS_PER_MS = 50
"""Rows that a scan looks at in the time that it lets others have for each millisecond: one costs 4 us, so a fifth of the node's time at the most."""


def want(shard: Shard, subscription: Subscription) -> None:
    """Ask for what selective links that may be served will need next: the bodies of candidates, else more of them."""
    if not subscription.selections or subscription.destination.state & Direction.CONSUMERS:
        return
    for tier in open_turns(subscription):
        if tier and isinstance(tier.source, Selection):
            _want(shard, tier.source, tier)


def _want(shard: Shard, selection: Selection, tier: Tier) -> None:
    for scan in selection.order:
        message = head(shard, scan)
        if selection.subscription.owners is not None and (scan.unseen or (message is not None and message.body is not None)):
            if scan.unseen:  # which may come before it; else its owner has no room
                shard.unfinished[selection.subscription] = None
        elif message is not None and message.body is not None:  # a later tier took what stood before it
            shard.unfinished[selection.subscription] = None
        elif scan.reading:
            continue
        elif message is not None:
            _want_bodies(shard, scan, sum([link.credit for link in tier]))
        elif scan.unseen or (scan.is_behind and scan.at < scan.cursor.loaded):
            shard.unfinished[selection.subscription] = None
        elif scan.is_behind and not scan.queued:
            scan.queued = True
            shard.scanning.append(scan)


def _want_bodies(shard: Shard, scan: Scan, credit: int) -> None:
    limits, cursor = shard.limits, scan.cursor
    rows = min(limits.page_rows, max(credit, 1))
    octets = max(limits.page_octets - scan.octets, 1)
    positions: list[int] = []
    for position in sorted(scan.found):
        message = scan.found[position][0]
        if octets <= 0 or len(positions) >= rows or message.body is not None or not scan.is_in_turn(position):
            break
        if cursor.holds(message):
            positions.append(position)
            octets -= message.size
    key = (cursor.lane.destination.number, cursor.index)
    segments = shard.segments.overlapping(key, positions[0], positions[-1])
    shard.begin_read(scan, PositionsWanted(shard.next_read(), *key, positions, segments), 0)


def proceed(shard: Shard) -> None:
    """Let the next scan read that still has to."""
    while shard.scanning and not shard.scan_began and shard.now >= shard.scan_at:
        scan = shard.scanning.popleft()
        scan.queued = False
        if not scan.selection.links or scan.reading:
            continue
        if scan.is_behind and scan.at >= scan.cursor.loaded:
            _want_page(shard, scan)
        else:  # what it would read has come into memory
            shard.unfinished[scan.cursor.subscription] = None


def _want_page(shard: Shard, scan: Scan) -> None:
    cursor, limits = scan.cursor, shard.limits
    for first, _ in cursor.progress.unsettled(scan.at, scan.horizon - 1):
        scan.at = first
        break
    else:
        scan.at = scan.horizon
        shard.unfinished[cursor.subscription] = None
        return
    last = min(scan.at + limits.scan_positions, scan.horizon) - 1
    if last == cursor.lane.tail - 1:
        scan.end = last + 1  # from now on arrivals are looked at
    rows, octets = limits.scan_rows, limits.page_octets // 4
    if shard.memory + octets > limits.memory_octets:
        rows, octets = max(rows // 64, 1), max(octets // 64, 1)
    key = (cursor.lane.destination.number, cursor.index)
    segments = shard.segments.overlapping(key, scan.at, last)
    read = PageWanted(shard.next_read(), *key, scan.at - 1, last, rows, octets, segments, scan.selection.wanted)
    shard.scan_began = max(shard.now, 1)
    shard.scan_traffic = shard.accepted + shard.settled
    shard.begin_read(scan, read, octets)


def loaded(shard: Shard, scan: Scan, read: PageWanted | PositionsWanted, command: PageLoaded) -> None:
    """What a scan asked for."""
    if isinstance(read, PageWanted):
        busy = shard.scan_traffic != shard.accepted + shard.settled
        shard.scan_at = shard.now + busy * (min(REST * (shard.now - shard.scan_began), REST_MS_MAX) + len(command.messages) // ROWS_PER_MS)
        shard.scan_began = 0
    if not scan.selection.links:
        return
    if isinstance(read, PageWanted):
        _take_page(shard, scan, read, command)
    else:
        _take_bodies(shard, scan, command.messages)
    shard.mark(scan.cursor.subscription)


def _take_page(shard: Shard, scan: Scan, read: PageWanted, command: PageLoaded) -> None:
    cursor = scan.cursor
    if scan.at <= read.after:  # it went back since: it reads anew
        return
    recognize(shard, command.messages)
    for message in command.messages:
        position = message.position
        if position < scan.at:
            continue
        scan.at = position
        as_placed(cursor, message)
        if message.header.group is not None:
            cursor.subscription.meet_groups()
        if cursor.holds(message) and matches(shard, scan.selection, message) and not make_room(shard, scan, message):
            return
    scan.at = max(scan.at, read.upto + 1 if command.complete else command.messages[-1].position + 1)


def _take_bodies(shard: Shard, scan: Scan, rows: list[Message]) -> None:
    cursor = scan.cursor
    for row in rows:
        if row.position not in scan.found:
            continue
        message = scan.found[row.position][0]
        if message.body is None and cursor.holds(message):
            message.fill(row)
            remove(shard, scan, row.position)
            scan.found[row.position] = (message, message.weight)
            count(shard, scan, message.weight)
            found_missing(shard, cursor, message)
