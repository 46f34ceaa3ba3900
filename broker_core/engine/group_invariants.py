"""What must hold of message groups after every flush; called by invariants.py."""

from __future__ import annotations

from .commands import Direction
from .cursor import Cursor
from .eligibility import is_eligible
from .link import Link
from .link_invariants import is_served_later, lane_name, may_receive
from .message import BEYOND, Message, weight_of
from .owners import BUCKETS, bucket_of
from .properties import Properties, takes
from .selection import Selection
from .shard import Shard
from .subscription import Subscription


def check_groups(shard: Shard, subscription: Subscription) -> int:
    """Raises AssertionError; returns how many groups have an owner of their own."""
    owners, address = subscription.owners, subscription.destination.address
    if owners is None:
        waiting = [message for cursor in subscription.order for message in (*cursor.ready, *cursor.aside.values()) if message.header.group is not None]
        assert not waiting or not subscription.shared or subscription.wildcard is not None, f"groups of {address} have nobody to own them"
        return 0
    owned = owners.owned()
    names = [key for key in owned if isinstance(key, str)]
    assert owners.names == len(names) <= shard.limits.subscription_groups_max, f"{address} is said to have {owners.names} groups, it has {len(names)}"
    assert len(owned) - len(names) <= BUCKETS, f"{address} has more buckets than there are"
    for key, links in owned.items():
        assert links and len(set(links)) == len(links), f"group {key} of {address} is owned by {[link.number for link in links]}"
        for link in links:
            assert subscription.links.get(link.number) is link, f"group {key} of {address} is owned by link {link.number}, which is gone"
            assert is_eligible(link), f"group {key} of {address} is owned by link {link.number}, which may not be served"
            assert key in owners.owned_by(link), f"link {link.number} does not know that it owns group {key} of {address}"
    assert sum(len(links) for links in owned.values()) == sum(len(owners.owned_by(link)) for link in subscription.links.values())
    _check_aside(subscription)
    if not is_served_later(shard, subscription):
        _check_turns(shard, subscription)
    return len(names)


def _check_aside(subscription: Subscription) -> None:
    """Whatever is set aside is so for one link that is there, within bounds."""
    owners = subscription.owners
    assert owners is not None
    for cursor in subscription.order:
        queued = [position for lanes in owners.queues.values() for position in lanes.get(cursor, ()) if position in cursor.aside]
        assert sorted(queued) == sorted(cursor.aside), f"of {lane_name(cursor)} {sorted(cursor.aside)} are set aside, queued are {queued}"
        octets = sum(weight_of(message) for message in cursor.aside.values())
        assert cursor.aside_octets == octets, f"{lane_name(cursor)} is said to have set aside {cursor.aside_octets} octets, it is {octets}"
    for link, lanes in owners.queues.items():
        assert subscription.links.get(link.number) is link, f"messages are set aside for link {link.number}, which is gone"
        assert lanes and all(lanes.values()), f"nothing is set aside for link {link.number}, and it is thought so"


def _check_turns(shard: Shard, subscription: Subscription) -> None:
    """Nobody who has room waits for what he could have."""
    owners = subscription.owners
    if subscription.destination.state & Direction.CONSUMERS or owners is None:
        return
    links = [link for link in subscription.links.values() if may_receive(shard, link) and is_eligible(link)]
    plain = any(not isinstance(link.source, Selection) for link in links)
    for cursor in subscription.order:
        if cursor.missing:
            return  # what they belong to is being read, whatever it is
        if not subscription.durable and any(twin.priority == cursor.priority and _is_awaited(twin) for twin in subscription.order):
            return  # what comes of one producer and mode may lie in either lane (topics.publish)
        following = cursor.head if cursor.returned or cursor.ready else None
        if plain and following is not None:
            assert waits_for_owner(shard, cursor, following), f"{following.position} of {lane_name(cursor)} could be delivered and was not"
        for link in links:
            if not isinstance(link.source, Selection):
                positions = [position for position in owners.queues.get(link, {}).get(cursor, ()) if position in cursor.aside]
                come = min(cursor.frontier, cursor.horizon if following is None else following.position)
                late = [position for position in positions if position < come]
                assert not late, f"{late} of {lane_name(cursor)} are set aside for link {link.number}, which has room"
        if following is None and cursor.holds_up:
            return


def _is_awaited(cursor: Cursor) -> bool:
    """What it would deliver next is being read."""
    return bool(cursor.missing) or (cursor.holds_up and not (cursor.returned or cursor.ready))


def waits_for_owner(shard: Shard, cursor: Cursor, message: Message) -> bool:
    """Its owner gets nothing now, and nothing more can be set aside in its lane."""
    limits = shard.limits
    aside = len(cursor.aside)
    full = aside >= limits.window_rows or (aside > 0 and cursor.aside_octets + message.weight > limits.window_octets)
    full = full and message.position not in cursor.returned
    owner = _owner_of(shard, cursor.subscription, message)
    return full and owner is not None and (not may_receive(shard, owner) or _waits_for_reads(owner, cursor))


def _waits_for_reads(owner: Link, cursor: Cursor) -> bool:
    """It has room and gets nothing of what is set aside for it there, before what comes first is at hand."""
    if not isinstance(owner.source, Selection):
        return bool(cursor.missing) or any(_is_awaited(other) for other in cursor.subscription.order if other.priority > cursor.priority)
    scan = next(scan for scan in owner.source.order if scan.cursor is cursor)
    found = sorted(position for position, (candidate, _) in scan.found.items() if cursor.holds(candidate))
    if found and scan.is_in_turn(found[0]) and scan.found[found[0]][0].body is not None:
        return bool(scan.unseen)
    come = min([*found, scan.at if scan.is_behind else BEYOND])
    owners = cursor.subscription.owners
    aside = owners.queues.get(owner, {}).get(cursor, ()) if owners is not None else ()
    return bool(scan.unseen) or not any(position < come for position in aside if position in cursor.aside)


def _owner_of(shard: Shard, subscription: Subscription, message: Message) -> Link | None:
    """As grouping.owner_of; comparing costs the batch nothing."""
    group, owners = message.header.group, subscription.owners
    if group is None or owners is None:
        return None
    for link in owners.owned().get(group.name) or owners.owned().get(bucket_of(group.name), ()):
        if not isinstance(link.source, Selection) or takes(link.source.wanted, Properties(shard, message)):
            return link
    return None
