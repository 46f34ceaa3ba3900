"""Subscriptions of topics: whose they are, what they leave out, what is kept for them, given to them in portions, and expires for them."""

from __future__ import annotations

from typing import Any

from broker_core.engine import dispatch, engine, expiring, fan_out, keeping, recovery, topics
from broker_core.engine.outcome import Outcome
from broker_core.engine.progress import Progress

from tests.simulation import term
from .plant import Plant


def excluded_not_in_the_ledger(plant: Plant) -> None:
    """What a selector left out is settled in memory only: after a recovery it is delivered."""
    right = topics.leave_out

    def leave_out(shard: Any) -> None:
        right(shard)
        shard.batch.settled = [row for row in shard.batch.settled if row[4] is not Outcome.EXCLUDED]

    plant.put(engine, "leave_out", leave_out)


def accounts_forgotten(plant: Plant) -> None:
    """Everybody is taken for the owner of every subscription."""
    right = engine.Peer

    def peer(number: int, _account: str, *rest: Any, **how: Any) -> Any:
        return right(number, "guest", *rest, **how)

    plant.put(engine, "Peer", peer)


def burials_forgotten(plant: Plant) -> None:
    """What expired for one subscription before a crash is buried again when it expires for another after it."""
    right = recovery.recover

    def recover(*found: Any) -> Any:
        recovered = right(*found)
        for destination in recovered.shard.destinations.values():
            for lane in destination.lanes:
                if lane is not None:
                    lane.buried = Progress()
        return recovered

    plant.put(term, "recover", recover)


def portions_pass_what_is_on_disk(plant: Plant) -> None:
    """Who is behind when his portion comes goes on from there."""
    right = fan_out.give

    def give(shard: Any, subscription: Any, work: Any) -> None:
        for lane, message in work:
            cursor = subscription.cursors[lane.index]
            cursor.loaded = max(cursor.loaded, message.position)
        right(shard, subscription, work)

    plant.put(fan_out, "give", give)


def expiry_ends_with_the_flush(plant: Plant) -> None:
    """What one flush has no steps left for is taken for ended."""
    right = expiring._end

    def end(shard: Any, run: Any, steps: int) -> int:
        left = right(shard, run, steps)
        for subscription in run.rest:
            cursor = subscription.cursors[run.lane.index]
            cursor.progress.settle(run.first, run.last)
        return max(left, 1)

    plant.put(expiring, "_end", end)


def kept_for_one_only(plant: Plant) -> None:
    """What a lane keeps for all subscriptions that are behind goes when the first has taken it."""
    right = keeping.refill

    def refill(shard: Any, subscription: Any) -> bool:
        filled = right(shard, subscription)
        for cursor in subscription.order:
            keeping.release(shard, cursor.lane, [position for position in cursor.lane.kept if position < cursor.loaded])
        return filled

    plant.put(dispatch, "refill", refill)


BUGS = (
    excluded_not_in_the_ledger,
    accounts_forgotten,
    burials_forgotten,
    portions_pass_what_is_on_disk,
    expiry_ends_with_the_flush,
    kept_for_one_only,
)
