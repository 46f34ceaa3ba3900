"""Subscriptions become known and cease to be: to their destination, to the shard, and the durable ones to the store."""

from __future__ import annotations

from .definitions import SubscriptionDefined
from .destination import Destination
from .outcome import Outcome
from .shard import Shard
from .subscription import Subscription


def begin(shard: Shard, subscription: Subscription) -> None:
    """From now on: what was sent before is not for it, and the ledger says so."""
    if subscription.durable:
        shard.batch.definitions.append(definition(subscription))
    register(shard, subscription)
    for cursor in subscription.order:
        lane = cursor.lane
        if lane.tail:
            cursor.progress.settle(0, lane.tail - 1)
            cursor.loaded = lane.tail
            shard.change(cursor)
            if cursor.durable:
                shard.batch.settled.append((subscription.number, lane.index, 0, lane.tail - 1, Outcome.EXCLUDED))


def count_selector(shard: Shard, account: str, octets: int) -> None:
    """So many more, or less, of its text are in use."""
    counts = shard.selector_octets
    counts[account] += octets
    if not counts[account]:
        del counts[account]


def definition(subscription: Subscription) -> SubscriptionDefined:
    selector = subscription.wanted.selector
    destination = subscription.destination
    return SubscriptionDefined(
        subscription.number, destination.number, subscription.name, subscription.client_id, subscription.shared,
        selector.text if selector else "", bool(subscription.wanted.sender), subscription.account, pattern="" if destination.number else destination.address,
    )  # fmt: skip


def register(shard: Shard, subscription: Subscription) -> None:
    """Make it known to the shard, and to its destination: a wildcard subscription has none, its members do."""
    destination = subscription.destination
    shard.subscriptions[subscription.number] = subscription
    if destination.number:
        _join(subscription, destination)
    if not destination.is_topic:
        return
    shard.topic_subscriptions += 1
    if subscription.durable:
        shard.durables[subscription.account] += 1
    if subscription.wanted and subscription.wildcard is None:
        count_selector(shard, subscription.account, subscription.wanted.octets)
    if subscription.name and subscription.wildcard is None:
        shard.named[subscription.client_id, subscription.name] = subscription


def _join(subscription: Subscription, destination: Destination) -> None:
    destination.join(subscription)
    for lane in destination.lanes:
        if lane is not None:
            subscription.cursor(lane)
    if not destination.is_topic:
        destination.receivers.append(subscription)
    else:
        destination.routes.join(subscription)


def forget(shard: Shard, subscription: Subscription) -> None:
    """The shard knows it no more."""
    del shard.subscriptions[subscription.number]
    shard.batch.dirty.pop(subscription, None)
    shard.unserved.pop(subscription, None)
    if not subscription.destination.is_topic:
        return
    shard.topic_subscriptions -= 1
    if subscription.durable:
        shard.durables[subscription.account] -= 1
        if not shard.durables[subscription.account]:
            del shard.durables[subscription.account]
    if subscription.wanted and subscription.wildcard is None:
        count_selector(shard, subscription.account, -subscription.wanted.octets)
    if subscription.name and subscription.wildcard is None:
        del shard.named[subscription.client_id, subscription.name]
