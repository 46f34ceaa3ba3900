"""Which of a subscription's links may be served now, and in which order. Dispatch serves what `Subscription.turns` names, nothing else.

A hungry link waits for its turn in its `tier`. Most subscriptions have one tier for all their links, and nothing is kept here. Links of different
consumer priority wait in tiers of their own, the highest served first: a lower one gets what no higher one has room for. Links of a queue that want
different parts of it (selection.py) wait apart, too; at the same priority whoever got something as the first goes behind his equals, so
that nobody takes from the others whatever several want. An exclusive consumer
waits alone, and while there is one it alone is served: of several the one of the highest priority, of equals the one that registered first.
The others stand by. A queue may have a limit of active consumers: those who registered first are served as said here, the rest are backups, and the first of
them becomes active when an active one goes. What a consumer holds when it loses its turn stays with it.

Whoever is not to be served, for whatever reason, keeps a tier that no turn names; whoever becomes active is given the tier of its priority.
"""

from __future__ import annotations

from bisect import insort_right
from collections.abc import Iterator

from .link import Link, Tier
from .selection import Selection
from .settings import UNLIMITED
from .shard import Shard
from .subscription import Subscription

PRIORITY_MAX = 1_000
"""Consumer priorities lie between -PRIORITY_MAX and this: ActiveMQ knows -128 to 127. So a dispatch looks at 2,001 tiers at the most, some 0.1 ms."""


class Eligibility:
    """Of the links of one subscription that are not all alike."""

    __slots__ = ("backups", "exclusives", "members", "tiers")

    def __init__(self, subscription: Subscription) -> None:
        common: tuple[int, Subscription | Selection] = (0, subscription)
        self.tiers = {common: subscription.hungry}
        """Hungry links that are not exclusive, by priority and by where they are served from. The first is always there."""
        self.members = {common: len(subscription.links) - 1}
        """How many links belong to each."""
        self.exclusives: list[Link] = []
        """In the order in which they take over."""
        self.backups: dict[Link, None] = {}
        """Beyond the limit of active consumers, in order of registration."""


def admit(subscription: Subscription, link: Link) -> None:
    """The link has joined."""
    eligibility = subscription.eligibility
    active = most_active(subscription)
    stands_by = UNLIMITED < active < len(subscription.links)
    if eligibility is None:
        if not (link.exclusive or link.priority or stands_by) and link.source is subscription:
            return
        eligibility = subscription.eligibility = Eligibility(subscription)
    if stands_by:
        eligibility.backups[link] = None
        link.tier = Tier(link.source, link.priority)
    else:
        _join(subscription, eligibility, link)


def most_active(subscription: Subscription) -> int:
    """The limit, which is for queues only."""
    destination = subscription.destination
    return UNLIMITED if destination.is_topic else destination.settings.max_active_consumers


def _join(subscription: Subscription, eligibility: Eligibility, link: Link) -> None:
    """It is active."""
    key = (link.priority, link.source)
    if link.exclusive:
        link.tier = Tier(link.source, link.priority)
        insort_right(eligibility.exclusives, link, key=lambda exclusive: -exclusive.priority)
    else:
        link.tier = eligibility.tiers.setdefault(key, Tier(link.source, link.priority))
        eligibility.members[key] = eligibility.members.get(key, 0) + 1
    if link.exclusive or eligibility.members[key] == 1:
        _take_turns(subscription, eligibility)


def dismiss(shard: Shard, subscription: Subscription, link: Link) -> None:
    """The link has gone; another one may take over."""
    if link.hungry:
        link.tier.remove(link)
    eligibility = subscription.eligibility
    if eligibility is None:
        return
    if link in eligibility.backups:
        del eligibility.backups[link]
    elif link.exclusive:
        eligibility.exclusives.remove(link)
    else:
        key = (link.priority, link.source)
        eligibility.members[key] -= 1
        if not eligibility.members[key] and key != (0, subscription):
            del eligibility.members[key], eligibility.tiers[key]
    _promote(subscription, eligibility)
    if len(eligibility.tiers) == 1 and not eligibility.exclusives and not eligibility.backups:
        subscription.eligibility = None
    _take_turns(subscription, eligibility)
    shard.mark(subscription)


def _promote(subscription: Subscription, eligibility: Eligibility) -> None:
    """Backups become active where there are too few."""
    active = most_active(subscription)
    while eligibility.backups and (active == UNLIMITED or len(subscription.links) - len(eligibility.backups) < active):
        link = next(iter(eligibility.backups))
        del eligibility.backups[link]
        _join(subscription, eligibility, link)
        if link.hungry:
            link.tier.append(link)


def rearrange(shard: Shard, subscription: Subscription) -> None:
    """The limit of active consumers is another: as if all had registered just now, in their order."""
    links = list(subscription.links.values())
    for link in links:
        if link.hungry:
            link.tier.remove(link)
    subscription.eligibility, subscription.turns = None, [subscription.hungry]
    subscription.links.clear()
    for link in links:
        subscription.links[link.number] = link
        link.tier = subscription.hungry
        admit(subscription, link)
        if link.hungry:
            link.tier.append(link)
    shard.mark(subscription)


def _take_turns(subscription: Subscription, eligibility: Eligibility) -> None:
    exclusives, tiers = eligibility.exclusives, eligibility.tiers
    subscription.turns = [exclusives[0].tier] if exclusives else sorted(tiers.values(), key=_rank)


def open_turns(subscription: Subscription) -> Iterator[Tier]:
    """The turns, one after the other, each looked at again when it was taken: where somebody still takes whatever comes next, and that is being read, nobody
    of lower priority takes it meanwhile from among what its scan has found. What a selective consumer of higher priority may still find holds up nobody:
    to search takes seconds."""
    awaited: int | None = None
    for tier in subscription.turns:
        if awaited is not None and tier.priority < awaited:
            return
        yield tier
        if tier and tier.source is subscription and subscription.is_reading:
            awaited = tier.priority


def step_back(subscription: Subscription, tier: Tier) -> None:
    """Behind its equals."""
    subscription.turns = [other for other in subscription.turns if other is not tier]
    insort_right(subscription.turns, tier, key=_rank)


def _rank(tier: Tier) -> int:
    return -tier.priority


def is_eligible(link: Link) -> bool:
    """It may be served if it has room, after those of higher priority."""
    eligibility = link.subscription.eligibility
    if eligibility is None:
        return True
    return link not in eligibility.backups and (not eligibility.exclusives or eligibility.exclusives[0] is link)
