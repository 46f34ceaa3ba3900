"""Who is served: exclusive consumers and message groups."""

from __future__ import annotations

import bisect
from typing import Any

from broker_core.engine import eligibility, group_dispatch, grouping, subscribing
from broker_core.engine.link import Link
from broker_core.engine.waiting import put_back

from .plant import Plant


def exclusive_one_of_many(plant: Plant) -> None:
    """Those who stand by are served when the exclusive consumer has no room."""
    right = eligibility._take_turns

    def take_turns(subscription: Any, known: Any) -> None:
        right(subscription, known)
        subscription.turns = [*(link.tier for link in known.exclusives), *known.tiers.values()]

    plant.put(eligibility, "_take_turns", take_turns)


def newest_exclusive_consumer_leads(plant: Plant) -> None:
    """Of exclusive consumers of equal priority the last to register is served."""
    plant.put(eligibility, "insort_right", bisect.insort_left)


def set_aside_for_ever(plant: Plant) -> None:
    """What is set aside for the owner of a message group does not come back when that is gone."""
    right = subscribing.disown

    def disown(shard: Any, subscription: Any, link: Any) -> None:
        if subscription.owners is not None:
            subscription.owners.queues.pop(link, None)
        right(shard, subscription, link)

    plant.put(subscribing, "disown", disown)


def set_aside_and_left(plant: Plant) -> None:
    """What was set aside for the owner of a message group waits for everybody as well, once its owner has it."""
    right = group_dispatch.take_aside

    def take_aside(shard: Any, link: Any, cursor: Any, message: Any) -> None:
        right(shard, link, cursor, message)
        put_back(shard, cursor, message)

    plant.put(group_dispatch, "take_aside", take_aside)


def any_hungry_consumer_is_the_owner(plant: Plant) -> None:
    """A message group goes to whoever has room."""
    right = group_dispatch._assign

    def assign(shard: Any, link: Any, place: Any, message: Any, turn: Any) -> Any:
        return right(shard, link, place, message, turn) if turn.own_only or message.header.group is None else link

    plant.put(group_dispatch, "_assign", assign)


def group_of_two(plant: Plant) -> None:
    """What comes back from an owner that has gone has another owner, which the messages behind it do not know of."""
    right = group_dispatch._assign

    def assign(shard: Any, link: Any, place: Any, message: Any, turn: Any) -> Any:
        comes_back = message.header.group is not None and message.redelivered
        if comes_back and not turn.own_only and grouping.owner_of(shard, link.subscription, message) is None:
            return link
        return right(shard, link, place, message, turn)

    plant.put(group_dispatch, "_assign", assign)


def given_back_twice(plant: Plant) -> None:
    """A consumer that had all its limit and is available again gets more than it has room for."""
    right = Link.regain

    def regain(self: Any, count: int) -> None:
        withheld = self.withheld
        right(self, count)
        if not self.withheld:
            self.credit += withheld

    plant.put(Link, "regain", regain)


BUGS = (
    exclusive_one_of_many,
    newest_exclusive_consumer_leads,
    set_aside_for_ever,
    set_aside_and_left,
    any_hungry_consumer_is_the_owner,
    group_of_two,
    given_back_twice,
)
