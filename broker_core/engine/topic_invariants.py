"""What must hold of topics: their subscriptions, the groups that these form, what their lanes keep (see invariants.py)."""

from __future__ import annotations

from collections import Counter

from .destination import Destination
from .message import BEYOND, weight_of
from .shard import Shard
from .subscription import Subscription


def check_subscriptions(shard: Shard) -> None:
    on_topics = [s for s in shard.subscriptions.values() if s.destination.is_topic]
    assert shard.topic_subscriptions == len(on_topics), f"{len(on_topics)} subscriptions of topics, said to be {shard.topic_subscriptions}"
    owned = Counter(s.account for s in on_topics if s.durable)
    assert dict(shard.durables) == dict(owned), f"accounts own {owned} durable subscriptions, said to be {shard.durables}"
    _check_selectors(shard, on_topics)
    for subscription in on_topics:
        key = subscription.client_id, subscription.name
        assert not subscription.name or shard.named.get(key) is (subscription.wildcard or subscription), f"subscription {key} is not known by its name"
        assert bool(subscription.links) == (not subscription.idle_since), f"subscription {key} is idle since {subscription.idle_since}"


def _check_selectors(shard: Shard, on_topics: list[Subscription]) -> None:
    octets: Counter[str] = Counter()
    for subscription in on_topics:
        octets[subscription.account] += subscription.wanted.octets if subscription.wildcard is None else 0
    for link in shard.links.values():
        octets[link.peer.account] += link.selector_octets
    counted = {account: count for account, count in octets.items() if count}
    assert dict(shard.selector_octets) == counted, f"selectors have {counted} octets, said to be {shard.selector_octets}"


def check_lanes(shard: Shard) -> int:
    """The octets that lanes keep for subscriptions that are behind."""
    lanes = {**shard.keeping, **{lane: None for d in shard.destinations.values() for lane in d.lanes if lane is not None}}
    for lane in lanes:
        name = f"lane {lane.index} of {lane.destination.address}"
        octets = sum(weight_of(message) for message in lane.kept.values())
        assert lane.kept_octets == octets, f"{name} is said to keep {lane.kept_octets} octets, it keeps {octets}"
        assert all(lane.keeps(position) for position in lane.kept), f"{name} keeps {list(lane.kept)}, not {lane.kept_first} to {lane.kept_end}"
        for positions in (list(lane.kept), list(lane.bodies)):
            assert positions == sorted(positions), f"{name} keeps positions out of order: {positions}"
        assert lane in shard.keeping or not (lane.kept or lane.bodies or lane.buried.ahead), f"nobody tends {name}"
    return sum(lane.kept_octets for lane in lanes)


def check_routes(shard: Shard, destination: Destination) -> None:
    address, routes = destination.address, destination.routes
    handing = [lane.handed for lane in destination.lanes if lane is not None and lane.handed != BEYOND]
    assert (destination.fan_out is not None) == (destination.fan_out in shard.handing), f"{address} hands out nothing and never ends"
    assert bool(handing) == (destination.fan_out is not None), f"lanes of {address} wait to be handed out from {handing}"
    members = {number: group for group in routes.groups.values() for number in group.members}
    on_topic = [subscription for subscription in destination.subscriptions if destination.is_topic]
    assert len(on_topic) == len(members) == sum(len(group.members) for group in routes.groups.values()), f"groups of {address} hold {list(members)}"
    assert routes.active == sum(bool(subscription.links) for subscription in on_topic), f"{routes.active} of {address} are said to be active"
    for subscription in on_topic:
        group = members[subscription.number]
        assert group.wanted == subscription.wanted, f"subscription {subscription.number} of {address} is in another's group"
        assert bool(subscription.links) == (subscription.number in group.active), f"subscription {subscription.number} of {address} is mistaken for active"
    for group in routes.groups.values():
        assert group.durables == sum(subscription.durable for subscription in group.members.values()), f"{group.durables} durables in {address}"
        assert not any(group.taken.values()), f"what filters of {address} left out is not settled"
