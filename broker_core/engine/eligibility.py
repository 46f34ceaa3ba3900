"""Which of a subscription's links may be served now, and in which order. Dispatch serves what `Subscription.turns` names, nothing else.

A hungry link waits for its turn in its `tier`. Most subscriptions have one tier for all their links, and nothing is kept here. Links of different
consumer priority wait in tiers of their own, the highest served first: a lower one gets what no higher one has room for. An exclusive consumer
waits alone, and while there is one it alone is served: of several the one of the highest priority, of equals the one that registered first.
The others stand by. What a consumer holds when it loses its turn stays with it.

Whoever is not to be served, for whatever reason, keeps a tier that no turn names; whoever becomes active is given the tier of its priority.
"""

from __future__ import annotations

from bisect import insort_right
from collections import deque

from .link import Link
from .shard import Shard
from .subscription import Subscription

PRIORITY_MAX = 1_000
"""Consumer priorities lie between -PRIORITY_MAX and this: ActiveMQ knows -128 to 127. So a dispatch looks at 2,001 tiers at the most, some 0.1 ms."""


class Eligibility:
    """Of the links of one subscription that are not all alike."""

    __slots__ = ("exclusives", "members", "tiers")

    def __init__(self, hungry: deque[Link], members: int) -> None:
        self.tiers = {0: hungry}
        """Hungry links that are not exclusive, by priority."""
        self.members = {0: members}
        """How many links belong to each."""
        self.exclusives: list[Link] = []
        """In the order in which they take over."""


def admit(subscription: Subscription, link: Link) -> None:
    """The link has joined."""
    eligibility = subscription.eligibility
    if eligibility is None:
        if not link.exclusive and not link.priority:
            return
        eligibility = subscription.eligibility = Eligibility(subscription.hungry, len(subscription.links) - 1)
    if link.exclusive:
        link.tier = deque()
        insort_right(eligibility.exclusives, link, key=lambda exclusive: -exclusive.priority)
    else:
        link.tier = eligibility.tiers.setdefault(link.priority, deque())
        eligibility.members[link.priority] = eligibility.members.get(link.priority, 0) + 1
    if link.exclusive or eligibility.members[link.priority] == 1:
        _take_turns(subscription, eligibility)


def dismiss(shard: Shard, subscription: Subscription, link: Link) -> None:
    """The link has gone; another one may take over."""
    if link.hungry:
        link.tier.remove(link)
    eligibility = subscription.eligibility
    if eligibility is None:
        return
    if link.exclusive:
        eligibility.exclusives.remove(link)
    else:
        eligibility.members[link.priority] -= 1
        if link.priority and not eligibility.members[link.priority]:
            del eligibility.members[link.priority], eligibility.tiers[link.priority]
    if len(eligibility.tiers) == 1 and not eligibility.exclusives:
        subscription.eligibility = None
    _take_turns(subscription, eligibility)
    shard.mark(subscription)


def _take_turns(subscription: Subscription, eligibility: Eligibility) -> None:
    exclusives, tiers = eligibility.exclusives, eligibility.tiers
    subscription.turns = [exclusives[0].tier] if exclusives else [tiers[priority] for priority in sorted(tiers, reverse=True)]


def is_eligible(link: Link) -> bool:
    """It may be served if it has room, after those of higher priority."""
    eligibility = link.subscription.eligibility
    return eligibility is None or not eligibility.exclusives or eligibility.exclusives[0] is link
