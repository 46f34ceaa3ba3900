"""What must hold of delayed messages after every flush (see invariants)."""

from __future__ import annotations

from collections import Counter

from .schedule import key_of, octets_of
from .shard import Shard


def check_schedule(shard: Shard) -> None:
    """What is due soon is in memory, in order, counted; what lies beyond is being read as soon as it is wanted."""
    schedule, limits = shard.schedule, shard.limits
    end = max(schedule.horizon, schedule.owned or (0, 0))
    for heap in (schedule.near, schedule.unwritten):
        assert heap.octets == sum(map(octets_of, heap.messages())), f"the schedule is said to hold {heap.octets} octets in memory"
        assert heap.octets <= limits.schedule_octets or len(heap) == 1, f"the schedule holds {heap.octets} octets in memory"
    assert len(schedule.near) <= limits.schedule_rows, f"the schedule holds {len(schedule.near)} messages in memory"
    for message in schedule.near.messages():
        assert key_of(message) <= end, f"scheduled message {key_of(message)} is in memory, beyond {end}"
        assert message.body is not None, f"scheduled message {key_of(message)} has no body"
    _check_counts(shard)
    if not (schedule.read or schedule.paused):
        assert schedule.owned is None and not schedule.reserved, "nothing of the schedule is being read, and is said to be"
        began = schedule.horizon > (0, 0)  # the first flush after a recovery asks
        wanted = began and schedule.beyond and not schedule.near and schedule.horizon[0] <= shard.now
        assert not wanted, f"{schedule.beyond} scheduled messages are in the store, some may be due, and nobody reads them"


def _check_counts(shard: Shard) -> None:
    schedule = shard.schedule
    held = Counter(message.destination for heap in (schedule.near, schedule.unwritten) for message in heap.messages())
    assert held.keys() <= shard.numbered.keys(), "the schedule has messages for a destination that is gone"
    for destination in shard.destinations.values():
        waiting, known = destination.scheduled, held[destination.number]
        assert waiting >= known, f"{destination.address} is said to have {waiting} messages scheduled, {known} are in memory"
        assert waiting or not destination.scheduled_octets, f"nothing is scheduled for {destination.address}, of {destination.scheduled_octets} octets"
    total = sum(destination.scheduled for destination in shard.destinations.values())
    assert schedule.rows + len(schedule.unwritten) == total, f"{schedule.rows} rows are scheduled, for destinations {total} messages"
