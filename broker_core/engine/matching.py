"""Topics and patterns meet: a wildcard subscription gets its members when it begins, and one more whenever a topic is created that it matches, within
the same commit; it loses the one of a topic that is destroyed, and nothing else."""

from __future__ import annotations

from .destination import Destination
from .pattern import Pattern
from .registering import begin, definition, register
from .shard import Shard
from .subscription import Subscription
from .wildcard import Matches, WildcardSubscription

MEMBER_EFFORT = 5
"""Of one topic's subscription, to begin or to end."""


# -- patterns -------------------------------------------------------------------------------------------------------------------------
def matches_of(shard: Shard, address: str) -> Matches:
    """The topics that the pattern matches. Found once, and known as long as somebody subscribes to it."""
    matches = shard.patterns.get(address)
    if matches is None:
        matches = shard.patterns[address] = Matches(Pattern(address))
        shard.effort += len(shard.destinations) // 2
        for destination in shard.destinations.values():
            if destination.is_topic and destination.owner is None and matches.pattern.matches(destination.address):
                matches.topics[destination] = None
    return matches


def forget_unused(shard: Shard, address: str) -> None:
    """The pattern, if nobody subscribes to it."""
    matches = shard.patterns.get(address)
    if matches is not None and not matches.subscriptions:
        del shard.patterns[address]


def would_join(shard: Shard, address: str) -> int:
    """Subscriptions that a new topic would have from its beginning."""
    return sum([len(matches.subscriptions) for matches in shard.patterns.values() if matches.pattern.matches(address)])


# -- topics come and go -----------------------------------------------------------------------------------------------------------------
def topic_created(shard: Shard, destination: Destination) -> None:
    shard.effort += len(shard.patterns)
    for matches in shard.patterns.values():
        if matches.pattern.matches(destination.address):
            matches.topics[destination] = None
            for subscription in matches.subscriptions:
                _add_member(shard, subscription, destination)


def topic_destroyed(shard: Shard, destination: Destination) -> None:
    for matches in shard.patterns.values():
        matches.topics.pop(destination, None)


def part(member: Subscription) -> None:
    """It ends; the others go on."""
    subscription = member.wildcard
    assert subscription is not None
    del subscription.members[member.destination.number]
    subscription.supplied.pop(member, None)
    subscription.awaited.pop(member, None)


# -- subscriptions begin ------------------------------------------------------------------------------------------------------------------
def begin_wildcard(shard: Shard, subscription: WildcardSubscription) -> None:
    """With all topics that there are."""
    if subscription.durable:
        shard.batch.definitions.append(definition(subscription))
    register_wildcard(shard, subscription)
    for topic in shard.patterns[subscription.destination.address].topics:
        _add_member(shard, subscription, topic)


def end_wildcard(shard: Shard, subscription: WildcardSubscription) -> None:
    """Its members have ended."""
    address = subscription.destination.address
    del shard.patterns[address].subscriptions[subscription]
    forget_unused(shard, address)


def register_wildcard(shard: Shard, subscription: WildcardSubscription) -> None:
    register(shard, subscription)
    matches_of(shard, subscription.destination.address).subscriptions[subscription] = None


def _add_member(shard: Shard, subscription: WildcardSubscription, topic: Destination) -> None:
    member = Subscription(
        shard.next_subscription(durable=subscription.durable), topic, subscription.name, subscription.client_id, subscription.account,
        durable=subscription.durable, shared=subscription.shared, wanted=subscription.wanted,
    )  # fmt: skip
    shard.effort += MEMBER_EFFORT
    adopt(subscription, member)
    begin(shard, member)
    if subscription.links:
        topic.routes.activate(member)


def adopt(subscription: WildcardSubscription, member: Subscription) -> None:
    member.wildcard = subscription
    member.shared = subscription.shared  # which its client may have said anew since the row of the member was written
    member.links = subscription.links
    member.idle_since = subscription.idle_since
    subscription.members[member.destination.number] = member
