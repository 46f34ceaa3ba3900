"""Subscriptions of ordinary topics: what is theirs, from when, and until when."""

from __future__ import annotations

from typing import Any

from broker_core.engine import engine, placing, routes, subscribing
from broker_core.engine.commands import Unsubscribe
from broker_core.engine.outputs import Confirmed
from broker_core.engine.registering import register

from .plant import Plant


def volatile_begins_in_the_past(plant: Plant) -> None:
    """A volatile subscription gets what others have not consumed yet, too."""
    right = subscribing.begin
    plant.put(subscribing, "begin", lambda shard, subscription: (right if subscription.durable else register)(shard, subscription))


def own_messages_come(plant: Plant) -> None:
    """Nobody looks at no-local."""
    plant.put(routes, "takes", lambda wanted, of: wanted.selector is None or wanted.selector.matches(of.__getitem__))


def patterns_match_old_topics_only(plant: Plant) -> None:
    """A topic that is created has no wildcard subscriptions."""
    plant.put(placing, "topic_created", lambda _shard, _destination: None)


def selector_stays_as_it_was(plant: Plant) -> None:
    """A durable subscription that is asked for with another selector goes on with the old one."""

    def is_as_asked(known: Any, command: Any) -> bool:
        return known.destination.address == command.address and known.durable == command.durable

    plant.put(subscribing, "_is_as_asked", is_as_asked)


def redefined_and_kept(plant: Plant) -> None:
    """What a durable subscription kept stays when it is redefined."""
    right = subscribing.begin

    def begin(shard: Any, subscription: Any) -> None:
        (register if subscription.durable and subscription.name in kept else right)(shard, subscription)
        kept.add(subscription.name)

    kept: set[str] = set()
    plant.put(subscribing, "begin", begin)


def ended_and_goes_on(plant: Plant) -> None:
    """UNSUBSCRIBE with the name of a durable subscription closes its consumer only."""

    right = engine.unsubscribe

    def unsubscribe(shard: Any, command: Any) -> None:
        peer = shard.peers.get(command.peer)
        if peer is not None and subscribing._why_not_unsubscribe(peer, shard.named.get((peer.client_id, command.name))) is None:
            shard.batch.outputs.append(Confirmed(command.peer, command.token))
        else:
            right(shard, command)

    plant.put(engine, "_HANDLERS", {**engine._HANDLERS, Unsubscribe: unsubscribe})


BUGS = (
    volatile_begins_in_the_past,
    own_messages_come,
    patterns_match_old_topics_only,
    selector_stays_as_it_was,
    redefined_and_kept,
    ended_and_goes_on,
)
