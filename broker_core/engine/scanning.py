"""Finding what selective consumers of a queue want (R8): in memory, in the store, and as it arrives. selection.py says what a scan is.

Everything is bounded. A flush looks at so many messages (`looks`) and leaves the rest to the next one; an arrival for which there is no look left,
and no room among the candidates, is come across later. One scan of a shard reads at a time, in turn, header sections only, and while
there is other traffic it rests between its reads as long as they took. Bodies are read for what is about to leave.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush
from itertools import islice

from .commands import Direction, PageLoaded
from .effects import PageWanted, PositionsWanted
from .link import Link, Tier
from .message import Message
from .paging import as_placed, found_missing
from .properties import Properties, takes
from .selection import Scan, Selection
from .shard import Shard
from .subscription import Cursor, Filter, Subscription

ROWS_PER_MS = 50
"""Rows that a scan looks at in the time that it lets others have for each millisecond: one costs 4 us, so a fifth of the node's time at the most."""


# -- who scans ------------------------------------------------------------------------------------------------------------------------
def join(link: Link, wanted: Filter) -> None:
    """The link of a queue takes only what the filter lets through."""
    subscription = link.subscription
    selection = subscription.selections.get(wanted)
    if selection is None:
        selection = subscription.selections[wanted] = Selection(subscription, wanted)
    selection.links[link.number] = link
    link.source = selection


def leave(shard: Shard, link: Link) -> None:
    """It is closing. With its last link a selection ends; a read on its way finds nobody."""
    selection = link.source
    if not isinstance(selection, Selection):
        return
    del selection.links[link.number]
    if selection.links:
        return
    subscription = selection.subscription
    del subscription.selections[selection.wanted]
    for scan in selection.order:
        scan.cursor.scans.remove(scan)
        abandon(shard, scan)


def abandon(shard: Shard, scan: Scan) -> None:
    """All it found and has still to look at: nobody wants it, or the queue was purged."""
    _count(shard, scan, -scan.octets)
    scan.found.clear()
    scan.lowest.clear()
    scan.unseen.clear()
    scan.at = scan.end = scan.cursor.lane.tail


# -- looking --------------------------------------------------------------------------------------------------------------------------
def arrive(shard: Shard, cursor: Cursor, message: Message) -> None:
    """A message joined the lane: scans that have nothing before it left to look at look at it now."""
    for scan in cursor.scans:
        if scan.end is None:
            continue
        if shard.batch.looks > 0 and (not _matches(shard, scan.selection, message) or _add(shard, scan, message)):
            continue
        if not scan.is_behind:
            scan.at = message.position
        scan.end = None


def look(shard: Shard, selection: Selection) -> None:
    """At what is in memory and was not looked at yet, as far as this flush allows and candidates are few."""
    for scan in selection.order:
        if scan.unseen:
            _look_again(shard, scan)
        if scan.is_behind:
            _look_through_ready(shard, scan)


def _look_again(shard: Shard, scan: Scan) -> None:
    unseen, cursor = scan.unseen, scan.cursor
    while unseen and shard.batch.looks > 0:
        message = unseen[0]
        if cursor.holds(message) and _matches(shard, scan.selection, message) and not _make_room(shard, scan, message):
            return
        unseen.popleft()


def _look_through_ready(shard: Shard, scan: Scan) -> None:
    """`ready` holds everything between the frontier and `loaded` that still waits there."""
    cursor = scan.cursor
    at = scan.at = max(scan.at, cursor.frontier)
    upto = min(cursor.loaded, scan.horizon)
    if at < upto:
        start = bisect_left(cursor.ready, at, key=_position)
        for message in islice(cursor.ready, start, None):
            position = message.position
            if position >= upto:
                break
            scan.at = position
            if shard.batch.looks <= 0:
                return
            if position not in cursor.gone and _matches(shard, scan.selection, message) and not _make_room(shard, scan, message):
                return
        scan.at = upto
    if scan.end is None and scan.at >= cursor.lane.tail:
        scan.end = scan.at


def _position(message: Message) -> int:
    return message.position


def _matches(shard: Shard, selection: Selection, message: Message) -> bool:
    """Whether the selection takes it; of messages with the same header section this is asked once a batch."""
    batch = shard.batch
    batch.looks -= 1
    if not selection.repeats:
        return takes(selection.wanted, Properties(shard, message))
    key = (selection, message.header)
    verdict = batch.verdicts.get(key)
    if verdict is None:
        verdict = batch.verdicts[key] = takes(selection.wanted, Properties(shard, message))
    return verdict


# -- candidates -----------------------------------------------------------------------------------------------------------------------
def _add(shard: Shard, scan: Scan, message: Message) -> bool:
    """A candidate more, if there is room."""
    limits = shard.limits
    octets = message.size if message.body is not None else len(message.header.octets)
    known = scan.found.get(message.position)
    if known is not None:
        _count(shard, scan, -known[1])
    elif len(scan.found) >= limits.page_rows or (
        scan.found and (scan.octets + octets > limits.page_octets or shard.memory + octets > limits.memory_octets)
    ):
        return False
    else:
        heappush(scan.lowest, message.position)
    scan.found[message.position] = (message, octets)
    _count(shard, scan, octets)
    return True


def _make_room(shard: Shard, scan: Scan, message: Message) -> bool:
    """The same for one that comes before all later arrivals: if there are no candidates but these, they are come across again."""
    if _add(shard, scan, message):
        return True
    if head(shard, scan) is not None:
        return False
    for position in [position for position in scan.found if not scan.is_in_turn(position)]:
        remove(shard, scan, position)
    scan.end = None
    return _add(shard, scan, message)


def _count(shard: Shard, scan: Scan, octets: int) -> None:
    scan.octets += octets
    shard.memory += octets


def head(shard: Shard, scan: Scan) -> Message | None:
    """The candidate to leave next; what others took meanwhile is forgotten. None: there is none, or something before it is still to be looked at."""
    found, lowest, holds = scan.found, scan.lowest, scan.cursor.holds
    while lowest:
        position = lowest[0]
        if position in found:
            message = found[position][0]
            if holds(message):
                return message if scan.is_in_turn(position) else None
            remove(shard, scan, position)
        heappop(lowest)
    return None


def remove(shard: Shard, scan: Scan, position: int) -> None:
    """It is a candidate no more."""
    _count(shard, scan, -scan.found.pop(position)[1])


def foremost(shard: Shard, selection: Selection) -> Scan | None:
    """The scan to deliver from: of the highest priority that has anything; between stored and volatile the older message."""
    found: Scan | None = None
    oldest = 0
    for scan in selection.order:
        if found is not None and scan.priority < found.priority:
            break
        message = head(shard, scan)
        if message is not None and message.body is not None and (found is None or message.sequence < oldest):
            found, oldest = scan, message.sequence
    return found


# -- reading --------------------------------------------------------------------------------------------------------------------------
def want(shard: Shard, subscription: Subscription) -> None:
    """Ask for what selective links that may be served will need next: the bodies of candidates, else more of them."""
    if not subscription.selections or subscription.destination.state & Direction.CONSUMERS:
        return
    for tier in subscription.turns:
        if tier and isinstance(tier.source, Selection):
            _want(shard, tier.source, tier)


def _want(shard: Shard, selection: Selection, tier: Tier) -> None:
    for scan in selection.order:
        if scan.reading:
            continue
        message = head(shard, scan)
        if message is not None:
            if message.body is None:
                _want_bodies(shard, scan, sum([link.credit for link in tier]))
        elif scan.unseen or (scan.is_behind and scan.at < scan.cursor.loaded):
            shard.unfinished[selection.subscription] = None
        elif scan.is_behind and not scan.queued:
            scan.queued = True
            shard.scanning.append(scan)


def _want_bodies(shard: Shard, scan: Scan, credit: int) -> None:
    limits, cursor = shard.limits, scan.cursor
    rows = min(limits.page_rows, max(credit, 1))
    octets = limits.page_octets
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
        shard.scan_at = shard.now + busy * (shard.now - shard.scan_began + len(command.messages) // ROWS_PER_MS)
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
    for message in command.messages:
        position = message.position
        if position < scan.at:
            continue
        scan.at = position
        as_placed(cursor, message)
        if cursor.holds(message) and _matches(shard, scan.selection, message) and not _make_room(shard, scan, message):
            return
    scan.at = max(scan.at, read.upto + 1 if command.complete else command.messages[-1].position + 1)


def _take_bodies(shard: Shard, scan: Scan, rows: list[Message]) -> None:
    cursor = scan.cursor
    for row in rows:
        if row.position not in scan.found:
            continue
        message = scan.found[row.position][0]
        if message.body is None and cursor.holds(message):
            message.body = row.body
            remove(shard, scan, row.position)
            scan.found[row.position] = (message, message.size)
            _count(shard, scan, message.size)
            found_missing(shard, cursor, message)
