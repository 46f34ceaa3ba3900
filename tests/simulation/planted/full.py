"""Full destinations, and queues with more consumers than are served."""

from __future__ import annotations

from typing import Any

from broker_core.engine import capacity, commit_capacity, eligibility, holding, removing, sending
from broker_core.engine.outputs import Confirmed
from broker_core.stomp.tokens import Unsubscribed

from .plant import Plant
from .redelivery import keeping_no_copy


def confirmed_while_it_waits(plant: Plant) -> None:
    """A send to a full destination has its receipt at once, and is lost with its connection."""
    right = capacity.wait

    def wait(shard: Any, destination: Any, peer: Any, what: Any) -> None:
        right(shard, destination, peer, what)
        if not isinstance(what, capacity.Withheld):
            shard.batch.outputs.append(Confirmed(what.peer, what.token))
            what.token = Unsubscribed(0, None)

    plant.put(capacity, "wait", wait)


def overtaken_while_it_waits(plant: Plant) -> None:
    """What comes when there is room again enters before what waits."""
    right = capacity.admit

    def admit(shard: Any, destination: Any, send: Any) -> bool:
        waiting, destination.capacity.waiting = destination.capacity.waiting, type(destination.capacity.waiting)()
        entered = right(shard, destination, send)
        destination.capacity.waiting = waiting + destination.capacity.waiting
        return entered

    plant.put(sending, "admit", admit)


def let_in_and_forgotten(plant: Plant) -> None:
    """What waited is confirmed when there is room, and placed nowhere."""
    plant.put(holding, "accept", lambda *_: None)


def removed_without_a_trace(plant: Plant) -> None:
    """What makes room is settled, and never is on the dead message queue."""
    plant.put(removing, "bury", keeping_no_copy(removing.bury))


def dropped_from_a_commit(plant: Plant) -> None:
    """Of a commit what does not fit is left out, and the rest is done."""
    right = commit_capacity.Room.admits

    def admits(room: Any, shard: Any, destination: Any, send: Any) -> bool:
        fits = destination.capacity.take(shard, destination, 1, send.message.size)
        return fits and right(room, shard, destination, send)

    plant.put(commit_capacity.Room, "admits", admits)


def backups_are_served(plant: Plant) -> None:
    """Those who stand by get what the active ones have no room for."""
    right = eligibility._take_turns

    def take_turns(subscription: Any, known: Any) -> None:
        right(subscription, known)
        subscription.turns = [*subscription.turns, *(link.tier for link in known.backups)]

    plant.put(eligibility, "_take_turns", take_turns)


def last_backup_takes_over(plant: Plant) -> None:
    """Of those who stand by the last one becomes active."""
    right = eligibility._promote

    def promote(subscription: Any, known: Any) -> None:
        known.backups = dict.fromkeys(reversed(known.backups))
        right(subscription, known)

    plant.put(eligibility, "_promote", promote)


BUGS = (
    confirmed_while_it_waits,
    overtaken_while_it_waits,
    let_in_and_forgotten,
    removed_without_a_trace,
    dropped_from_a_commit,
    backups_are_served,
    last_backup_takes_over,
)
