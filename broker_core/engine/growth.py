"""How the backlogs of durable subscriptions grow: what each held at two instants, a minute apart at least, is noted with the statistics of its topic, and
compared with what it holds when operators look. So it costs nothing message by message, and a topic that is quiet costs nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .destination import Destination
    from .shard import Shard
    from .subscription import Subscription

APART_MS = 60_000
"""Between two notes; what is compared is as old at least."""
Growth = tuple[float, int]
"""Messages a minute, less than 0 if it shrinks; and since when, in ms."""


class Backlogs:
    """Of one topic: what its durable subscriptions held, by number."""

    __slots__ = ("earlier", "latest")

    def __init__(self, at: int, depths: dict[int, int]) -> None:
        self.earlier: tuple[int, dict[int, int]] | None = None
        self.latest = at, depths


def note_depths(destination: Destination, depths: Sequence[int], now: int) -> None:
    """`depths`: of its subscriptions, in order."""
    backlogs = destination.backlogs
    if backlogs is not None and now < backlogs.latest[0] + APART_MS:
        return
    held = {one.number: depth for one, depth in zip(destination.subscriptions, depths, strict=True) if one.durable and one.name}
    if backlogs is not None:
        backlogs.earlier, backlogs.latest = backlogs.latest, (now, held)
    elif held:
        destination.backlogs = Backlogs(now, held)


def growth_of(shard: Shard, subscription: Subscription) -> Growth | None:
    """None: nobody knows, as it was not noted a minute ago or before."""
    grown, since = 0.0, shard.now
    parts = subscription.parts()
    for part in parts:
        found = _of_part(part, shard.now)
        if found is None:
            return None
        grown, since = grown + found[0], min(since, found[1])
    return (round(grown, 1), since) if parts else None


def _of_part(part: Subscription, now: int) -> Growth | None:
    backlogs = part.destination.backlogs
    if backlogs is None:
        return None
    for note in (backlogs.latest, backlogs.earlier):
        if note is not None and now >= note[0] + APART_MS and part.number in note[1]:
            return (part.depth - note[1][part.number]) * 60_000 / (now - note[0]), note[0]
    return None
