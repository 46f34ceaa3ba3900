"""Which subscriptions a flush serves. It has room for so many deliveries: what one command may set free, the consumers of a connection whose
socket takes more again, or thousands of subscriptions to a topic, is far more than peers that wait for their turn should wait for.

Those for whom there was no room keep their place for the next flush. What commands have made deliverable since has half of the room before them: so
a queue with little traffic is served at once, whatever waits, and what waits goes on, whatever comes.
"""

from __future__ import annotations

from itertools import islice

from .dispatch import dispatch
from .settlement import settle_accepted
from .shard import Shard
from .subscription import Subscription


def serve(shard: Shard) -> list[Subscription]:
    """Dispatch. Returns whose turn it was."""
    batch = shard.batch
    served: list[Subscription] = []
    batch.room = max(batch.room, shard.limits.deliveries // 2)  # deaths by the thousand take room, but not all of it for ever
    half = batch.room // 2
    while batch.dirty or (shard.unserved and batch.room > 0):
        new, batch.dirty = batch.dirty, {}
        new = _serve(shard, new, half, served)
        if shard.unserved:
            shard.unserved = _serve(shard, shard.unserved, 0, served)
        if new:
            shard.unserved |= _serve(shard, new, 0, served)
        settle_accepted(shard)
    return served


def _serve(shard: Shard, waiting: dict[Subscription, None], least: int, served: list[Subscription]) -> dict[Subscription, None]:
    """Until there is no more room than that. Who still waits."""
    batch = shard.batch
    for turn, subscription in enumerate(waiting):
        if batch.room <= least:
            served += islice(waiting, turn)
            return dict.fromkeys(islice(waiting, turn, None))
        subscription.dirty = False
        batch.room -= 1
        dispatch(shard, subscription)
        if batch.room <= 0:
            shard.mark(subscription)  # it may have been in the middle
    served += waiting
    return {}
