"""Segments, pages and large bodies."""

from __future__ import annotations

from typing import Any

from broker_core.engine import accounting, discarding, maintenance, paging, segments, settlement
from broker_core.engine.progress import Progress

from .plant import Plant


def page_race(plant: Plant) -> None:
    """The rows of a page win over what was settled while it was read."""

    def is_settled(_self: Progress, _position: int) -> bool:
        return False

    right = paging._take_page

    def take_page(*what: Any, **how: Any) -> None:
        before = Progress.is_settled
        Progress.is_settled = is_settled  # type: ignore[method-assign]
        try:
            right(*what, **how)
        finally:
            Progress.is_settled = before  # type: ignore[method-assign]

    plant.put(paging, "_take_page", take_page)


def floor_raised_too_far(plant: Plant) -> None:
    """The floor steps over one unsettled position when it runs up."""
    right = Progress._raise_floor

    def raise_floor(self: Progress, floor: int) -> None:
        over = floor + 1
        right(self, over if self.ahead and self.is_settled(over) else floor)

    plant.put(Progress, "_raise_floor", raise_floor)


def live_segment_dropped(plant: Plant) -> None:
    """A segment goes although something in it is unsettled: only the lane looked at first counts."""

    def is_live(shard: Any, segment: Any) -> bool:
        return any(maintenance._unsettled(shard, key, *segment.lanes[key], at_most=1, each=1) for key in list(segment.lanes)[:1])

    plant.put(maintenance, "_is_live", is_live)


def survivors_left_behind(plant: Plant) -> None:
    """Compaction copies all survivors but the last."""
    right = maintenance._compact

    def compact(shard: Any) -> Any:
        step = right(shard)
        if step is not None and len(step.survivors) > 1:
            step.survivors.pop()
        return step

    plant.put(maintenance, "_compact", compact)


def asked_of_one_alone(plant: Plant) -> None:
    """Of the retained table goes what is settled for one of those who may need it."""
    plant.put(maintenance, "merge", lambda *needed: iter(needed[0]) if needed else iter(()))


def reader_forgotten(plant: Plant) -> None:
    """A segment is dropped while a read of it is on its way."""

    def begin_read(self: Any, read: int, numbers: Any) -> None:
        self._reads[read] = []

    plant.put(segments.Segments, "begin_read", begin_read)


def purged_messages_stay(plant: Plant) -> None:
    """A purge settles what waits in memory and leaves it there."""
    right = discarding._purge_cursor

    def purge(shard: Any, cursor: Any, *record: Any) -> int:
        ready = list(cursor.ready)
        count = right(shard, cursor, *record)
        cursor.ready.extend(ready)
        return count

    plant.put(discarding, "_purge_cursor", purge)


def bodies_of_the_volatile_kept(plant: Plant) -> None:
    """Large bodies of volatile messages stay in the store after their acknowledgement."""
    plant.put(settlement, "discard_body", lambda _shard, _message: None)


def bodies_on_disk_forgotten(plant: Plant) -> None:
    """A purge discards the large bodies of volatile messages in memory, and not of those that spilled."""
    plant.put(accounting, "bodies_behind", lambda _cursor: [])


BUGS = (
    page_race,
    floor_raised_too_far,
    live_segment_dropped,
    survivors_left_behind,
    asked_of_one_alone,
    reader_forgotten,
    purged_messages_stay,
    bodies_of_the_volatile_kept,
    bodies_on_disk_forgotten,
)
