"""What must hold of patterns and of those who subscribed to them after every flush (see invariants)."""

from __future__ import annotations

from .fan_out import Reminder
from .link_invariants import check_links, deliverable
from .shard import Shard
from .wildcard import WildcardSubscription


def check_patterns(shard: Shard) -> None:
    wildcards = [subscription for subscription in shard.subscriptions.values() if isinstance(subscription, WildcardSubscription)]
    assert wildcards == sorted([s for matches in shard.patterns.values() for s in matches.subscriptions], key=wildcards.index), "patterns have others"
    for address, matches in shard.patterns.items():
        assert matches.subscriptions, f"nobody subscribes to {address}"
        topics = [d for d in shard.destinations.values() if d.is_topic and d.owner is None and matches.pattern.matches(d.address)]
        assert matches.topics.keys() == dict.fromkeys(topics).keys(), f"{address} matches {[d.address for d in topics]}, others are known"
        for subscription in matches.subscriptions:
            assert subscription.destination.address == address, f"subscription {subscription.number} is of another pattern"
            assert subscription.members.keys() == {topic.number for topic in topics}, f"subscription {subscription.number} has not one member a topic"
            check_links(shard, subscription)
            _check_members(shard, subscription)


def _check_members(shard: Shard, subscription: WildcardSubscription) -> None:
    name = f"wildcard subscription {subscription.number}"
    assert not subscription.order, f"{name} has cursors of its own"
    for topic, member in subscription.members.items():
        assert shard.subscriptions.get(member.number) is member and member.wildcard is subscription, f"{name} has a stranger for {topic}"
        topic_of = member.destination
        assert topic_of.number == topic, f"{name} has the member of {member.destination.number} for {topic}"
        assert member.links is subscription.links, f"consumers of {name} are not those of its member for {topic}"
        same = ("name", "client_id", "account", "durable", "shared", "wanted")
        assert all(getattr(member, each) == getattr(subscription, each) for each in same), f"{name} and its member for {topic} differ"
        unserved = member in shard.unserved
        served = member in subscription.supplied or not deliverable(member) or not subscription.links
        assert served or unserved or member in shard.cooling, f"{name} has forgotten its member for {topic}"
        reminded = any(isinstance(work, Reminder) and work.reaches(member) for work in shard.handing)
        told = topic_of.fan_out is None and not unserved and not reminded
        assert not told or member.is_reading == (member in subscription.awaited) or not subscription.links, f"{name} waits for its member for {topic} in vain"
    for member in [*subscription.supplied, *subscription.awaited]:
        assert subscription.members.get(member.destination.number) is member, f"{name} would serve a member that is gone"
