"""Finding what selective consumers of a queue want (R8): in memory, in the store, and as it arrives. selection.py says what a scan is.

Everything is bounded. A flush looks at so many messages (`looks`) and leaves the rest to the next one; an arrival for which there is no look left,
or no room among the candidates, is come across later. scan_reading.py goes on where memory ends.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush
from itertools import islice

from .cursor import Cursor
from .link import Link
from .message import Message, weight_as_read
from .properties import Properties, takes
from .selection import Scan, Selection
from .shard import Shard
from .subscription import Filter


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
    count(shard, scan, -scan.octets)
    scan.found.clear()
    scan.lowest.clear()
    scan.unseen.clear()
    scan.at = scan.end = scan.cursor.lane.tail


# -- looking --------------------------------------------------------------------------------------------------------------------------
def arrive(shard: Shard, cursor: Cursor, message: Message) -> None:
    """A message joined the lane: scans that have nothing before it left to look at look at it now. Of a copy the store knows more."""
    at_hand = message.body is not None
    for scan in cursor.scans:
        if scan.end is None:
            continue
        if at_hand and shard.batch.looks > 0 and (not matches(shard, scan.selection, message) or _add(shard, scan, message)):
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
    grouped = cursor.subscription.owners is not None  # then nothing leaves before it (group_dispatch.py); it is in memory anyway
    while unseen and shard.batch.looks > 0:
        message = unseen[0]
        if cursor.holds(message) and matches(shard, scan.selection, message) and not make_room(shard, scan, message):
            if not grouped:
                return
            _add(shard, scan, message, anyway=True)
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
            if position not in cursor.gone and matches(shard, scan.selection, message) and not make_room(shard, scan, message):
                return
        scan.at = upto
    if scan.end is None and scan.at >= cursor.lane.tail:
        scan.end = scan.at


def _position(message: Message) -> int:
    return message.position


def matches(shard: Shard, selection: Selection, message: Message) -> bool:
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
def _add(shard: Shard, scan: Scan, message: Message, *, anyway: bool = False) -> bool:
    """A candidate more, if there is room, or `anyway`."""
    limits = shard.limits
    octets = weight_as_read(message)
    known = scan.found.get(message.position)
    if known is not None:
        count(shard, scan, -known[1])
    elif not anyway and (
        len(scan.found) >= limits.page_rows
        or (scan.found and (scan.octets + octets > limits.page_octets or shard.memory + octets > limits.memory_octets))
    ):
        return False
    else:
        heappush(scan.lowest, message.position)
    scan.found[message.position] = (message, octets)
    count(shard, scan, octets)
    return True


def make_room(shard: Shard, scan: Scan, message: Message) -> bool:
    """The same for one that comes before all later arrivals: if there are no candidates but these, they are come across again."""
    if _add(shard, scan, message):
        return True
    if head(shard, scan) is not None:
        return False
    for position in [position for position in scan.found if not scan.is_in_turn(position)]:
        remove(shard, scan, position)
    scan.end = None
    return _add(shard, scan, message)


def count(shard: Shard, scan: Scan, octets: int) -> None:
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
    count(shard, scan, -scan.found.pop(position)[1])


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
