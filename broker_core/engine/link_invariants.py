"""What must hold of links after every flush: who waits for a turn, who holds what, and that nobody who may be served waits in vain (see invariants)."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from .browser import Doing
from .commands import Direction
from .cursor import Cursor
from .eligibility import is_eligible, most_active
from .link import Link, Tier
from .message import VOLATILE
from .settings import UNLIMITED
from .shard import Shard
from .subscription import Subscription


def lane_name(cursor: Cursor) -> str:
    return f"lane {cursor.index} of {cursor.subscription.destination.address}"


def may_receive(shard: Shard, link: Link) -> bool:
    limits = shard.limits
    full = link.octets >= limits.link_octets or len(link.unsettled) >= limits.link_unsettled
    return link.credit > 0 and not full and not link.peer.stopped


def check_links(shard: Shard, subscription: Subscription) -> None:
    _check_turns(subscription)
    queued = [link for tier in _tiers(subscription) for link in tier]
    hungry = Counter(link.number for link in queued)
    for link in queued:
        assert shard.links.get(link.number) is link, f"link {link.number} is gone and still to be served"
        assert link in link.tier, f"link {link.number} waits in a tier that is not its own"
    for link in subscription.links.values():
        number = link.number
        assert shard.links.get(number) is link, f"link {number} is not registered"
        assert link.hungry == bool(hungry[number]), f"link {number} is marked hungry={link.hungry} and queued {hungry[number]} times"
        assert hungry[number] <= 1, f"link {number} is queued {hungry[number]} times"
        assert link.hungry or not may_receive(shard, link), f"link {number} may receive and is not queued"
        octets = sum(message.size for message in link.unsettled.values())
        assert link.octets == octets, f"link {number} is said to hold {link.octets} octets, it holds {octets}"
        assert link.credit >= 0, f"link {number} has {link.credit} credit"
        assert not link.withheld or (not link.credit and len(link.unsettled) > link.resumes_at), f"link {number} is kept from credit for nothing"
        assert len(link.unsettled) <= shard.limits.link_unsettled, f"link {number} holds {len(link.unsettled)} deliveries"
        assert list(link.unsettled) == sorted(link.unsettled), f"deliveries of link {number} are out of order"
        for message in link.unsettled.values():
            cursor = subscription.cursor_of(message)
            assert cursor is not None, f"link {number} holds a message of a topic that is gone"
            assert not cursor.durable or cursor.may_have_left(message.position), f"{message.position} of {lane_name(cursor)} left and was not offered"
    if is_served_later(shard, subscription) or subscription.owners is not None:  # of groups see group_invariants.py
        return
    if any(may_receive(shard, link) and is_eligible(link) for link in subscription.links.values() if link.source is subscription):
        waiting = [lane_name(cursor) for part in subscription.parts() if not is_served_later(shard, part) for cursor in deliverable(part)]
        assert not waiting, f"{waiting} could be delivered and were not"


def is_served_later(shard: Shard, subscription: Subscription) -> bool:
    """It waits for a flush with room, for memory, or for what is coming back to it."""
    return subscription in shard.unserved or subscription in shard.cooling or bool(subscription.returning)


def deliverable(subscription: Subscription) -> list[Cursor]:
    """Where something waits for nothing but a link with room."""
    if subscription.destination.state & Direction.CONSUMERS:
        return []
    held_up = [cursor for cursor in subscription.order if cursor.holds_up]
    read = max((cursor.priority for cursor in held_up if not cursor.deliverable), default=-1)
    least = read if subscription.durable else read + 1
    return [cursor for cursor in subscription.order if cursor.deliverable and cursor.priority >= least]


def _tiers(subscription: Subscription) -> list[Tier]:
    eligibility = subscription.eligibility
    if eligibility is None:
        return [subscription.hungry]
    return [*eligibility.tiers.values(), *(link.tier for link in [*eligibility.exclusives, *eligibility.backups])]


def _check_turns(subscription: Subscription) -> None:
    """Turns are given by the links that there are, and to nobody else."""
    links, eligibility, name = list(subscription.links.values()), subscription.eligibility, f"the links of {subscription.destination.address}"
    active = most_active(subscription)
    active = len(links) if active == UNLIMITED else active
    backups = links[active:]
    assert (list(eligibility.backups) if eligibility is not None else []) == backups, f"of {name} others stand by than those who registered last"
    links = links[:active]
    alike = not backups and not any(link.exclusive or link.priority or link.source is not subscription for link in links)
    assert (eligibility is None) == alike, f"{name} are {'' if alike else 'not '}alike, and it is thought otherwise"
    if eligibility is None:
        turns = [subscription.hungry]
    else:
        exclusives = sorted((link for link in links if link.exclusive), key=lambda link: -link.priority)  # of equals the first registered
        assert eligibility.exclusives == exclusives, f"the exclusive ones of {name} are out of order"
        members = Counter((link.priority, link.source) for link in links if not link.exclusive)
        assert +Counter(eligibility.members) == members, f"of {name} {eligibility.members} are said to be in each tier, it is {members}"
        assert eligibility.tiers.keys() == members.keys() | {(0, subscription)}, f"the tiers of {name} are {list(eligibility.tiers)}"
        assert all(key == (tier.priority, tier.source) for key, tier in eligibility.tiers.items()), f"tiers of {name} serve others"
        turns = [exclusives[0].tier] if exclusives else list(eligibility.tiers.values())
    given = subscription.turns
    assert len(given) == len(turns) and all(any(tier is turn for turn in turns) for tier in given), f"turns of {name} are given to others"
    assert all(a.priority >= b.priority for a, b in pairwise(given)), f"turns of {name} are out of order"


def check_peers(shard: Shard) -> None:
    held = {number for peer in shard.peers.values() for number in peer.links}
    assert held == set(shard.links), f"links of peers {held}, of the shard {set(shard.links)}"
    for link in shard.links.values():
        assert shard.peers.get(link.peer.number) is link.peer, f"the peer of link {link.number} is gone"
        assert link.subscription.links.get(link.number) is link, f"link {link.number} is not its subscription's"
        assert link.subscription.number in shard.subscriptions, f"link {link.number} is of a subscription that is gone"


# -- browsers -------------------------------------------------------------------------------------------------------------------------
def check_browsers(shard: Shard) -> None:
    """Each waits for one thing, and that will come; what is on its way to them is pinned."""
    browsing = shard.browsing
    browsers = browsing.browsers
    held = {number for peer in shard.peers.values() for number in peer.browsers}
    assert held == set(browsers), f"links of browsers of peers {held}, of the shard {set(browsers)}"
    assert not browsing.sending, "the flush left browsers that got something"
    assert (browsing.read is None) == (browsing.reader is None), f"a page is read for {browsing.reader}"
    releasing = {browser for _, browsers in shard.unreleased for browser in browsers}
    for number, browser in browsers.items():
        assert shard.peers.get(browser.peer.number) is browser.peer, f"the peer of browsing link {number} is gone"
        waits = {
            Doing.TURN: browser in browsing.turns,
            Doing.READER: browser in browsing.readers and browsing.read is not None,
            Doing.PAGE: browser is browsing.reader,
            Doing.RELEASE: browser in releasing,
            Doing.START: browser.peer.stopped,
            Doing.CREDIT: browser.credit == 0 and not browser.drain,
            Doing.NOTHING: not browser.walk.lanes,
        }
        assert waits[browser.doing], f"browsing link {number} waits in vain for {browser.doing.value}"
        queued = browsing.turns.count(browser) + browsing.readers.count(browser)
        assert queued == (browser.doing in (Doing.TURN, Doing.READER)), f"browsing link {number} is queued {queued} times"
        assert browser.doing is Doing.TURN or browser.page is None, f"browsing link {number} forgot its page"
        holding = browser.doing is Doing.PAGE or browser.page is not None or browser in releasing
        assert holding or not browser.octets, f"browsing link {number} holds {browser.octets} octets for nothing"
    pinned: dict[tuple[int, int], dict[int, int]] = {}
    for message in [message for peer in shard.peers.values() for message in peer.pins.values()]:
        if message.header.lane < VOLATILE:
            lane = pinned.setdefault((message.destination, message.header.lane), {})
            lane[message.position] = lane.get(message.position, 0) + 1
    assert shard.pinned == pinned, f"bodies of {shard.pinned} are said to be pinned, it is {pinned}"
