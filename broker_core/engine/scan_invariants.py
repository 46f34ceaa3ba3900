"""What must hold of selections and their scans after every flush; called by invariants.py."""

from __future__ import annotations

from .commands import Direction
from .eligibility import open_turns
from .cursor import Cursor
from .group_invariants import waits_for_owner
from .link_invariants import is_served_later
from .message import Message
from .properties import Properties, takes
from .selection import Scan, Selection
from .shard import Shard
from .subscription import Subscription


def check_selections(shard: Shard, subscription: Subscription) -> int:
    """Raises AssertionError; returns the octets that candidates are said to hold."""
    address = subscription.destination.address
    octets = 0
    for wanted, selection in subscription.selections.items():
        assert selection.wanted == wanted, f"a selection of {address} is known by another filter"
        assert selection.links, f"a selection of {address} has no links"
        for number, link in selection.links.items():
            assert subscription.links.get(number) is link and link.source is selection, f"link {number} is not one of {address}'s selections"
        assert [scan.cursor for scan in selection.order] == subscription.order, f"a selection of {address} has not one scan a lane"
        for scan in selection.order:
            assert scan in scan.cursor.scans, f"a scan of {address} does not hear of arrivals"
            _check_candidates(shard, scan)
            _check_completeness(shard, scan)
            octets += scan.octets
    for tier in open_turns(subscription):
        if tier and isinstance(tier.source, Selection):
            _check_progress(shard, tier.source)
    for cursor in subscription.order:
        assert len(cursor.scans) == len(subscription.selections), f"lane {cursor.index} of {address} has scans that belong to nobody"
    return octets


def _name(scan: Scan) -> str:
    return f"the scan of lane {scan.cursor.index} of {scan.cursor.subscription.destination.address} for {scan.selection.wanted}"


def _takes(shard: Shard, scan: Scan, message: Message) -> bool:
    return takes(scan.selection.wanted, Properties(shard, message))


def _check_candidates(shard: Shard, scan: Scan) -> None:
    name = _name(scan)
    assert set(scan.found) <= set(scan.lowest), f"{name} would not find {set(scan.found) - set(scan.lowest)} of its candidates"
    if scan.cursor.subscription.owners is None:  # else what came back is a candidate however many there are
        assert len(scan.found) <= shard.limits.page_rows, f"{name} has {len(scan.found)} candidates"
        largest = max((octets for _, octets in scan.found.values()), default=0)
        assert scan.octets - largest <= shard.limits.page_octets, f"candidates of {name} hold {scan.octets} octets"
    octets = sum(octets for _, octets in scan.found.values())
    assert scan.octets == octets, f"candidates of {name} are said to hold {scan.octets} octets, it is {octets}"
    assert 0 <= scan.at <= scan.horizon or not scan.is_behind, f"{name} is at {scan.at} of {scan.horizon}"
    for position, (message, _) in scan.found.items():
        assert message.position == position, f"{name} has {message.position} as its candidate {position}"
        assert not scan.cursor.holds(message) or _takes(shard, scan, message), f"{name} has a candidate that does not match: {position}"


def _in_memory(cursor: Cursor) -> list[Message]:
    """All that waits for whoever comes first and is not on disk only."""
    waiting = [message for message in cursor.ready if message.position not in cursor.gone]
    return [*waiting, *cursor.returned.values(), *cursor.missing.values()]


def _check_completeness(shard: Shard, scan: Scan) -> None:
    """Whatever waits in memory, has been looked at and matches is a candidate."""
    cursor = scan.cursor
    for message in _in_memory(cursor):
        position = message.position
        assert cursor.holds(message), f"{position} waits in lane {cursor.index} and nobody could take it"
        if position in scan.found or any(unseen.position == position and cursor.holds(unseen) for unseen in scan.unseen):
            continue  # what came back, went to disk and was read again is another object of the same row
        came_back = position in cursor.returned or position in cursor.missing
        looked_at = came_back or position < scan.at or position >= scan.horizon
        assert not looked_at or not _takes(shard, scan, message), f"{_name(scan)} was past {position} and has forgotten it"


def _check_progress(shard: Shard, selection: Selection) -> None:
    """A link that may receive waits for nothing that is there, and what it waits for is on its way."""
    subscription = selection.subscription
    if subscription.destination.state & Direction.CONSUMERS or is_served_later(shard, subscription):
        return
    for scan in selection.order:
        moves = scan.reading or scan.queued or subscription in shard.unfinished
        waiting = [message for _, (message, _) in sorted(scan.found.items()) if scan.cursor.holds(message)]
        if subscription.owners is not None:
            if waiting and waits_for_owner(shard, scan.cursor, waiting[0]):
                continue
            waiting = waiting if not scan.unseen else []  # which may come before it
        if waiting and scan.is_in_turn(waiting[0].position):
            due = subscription in shard.unfinished
            assert waiting[0].body is None or due, f"{_name(scan)} has a candidate that was not delivered: {waiting[0].position}"
            assert scan.reading or due, f"the body of the candidate {waiting[0].position} of {_name(scan)} is missing and nobody reads it"
        assert moves or not (scan.is_behind or scan.unseen), f"{_name(scan)} stands at {scan.at} of {scan.horizon}"
