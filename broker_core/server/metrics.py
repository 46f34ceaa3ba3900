"""What the node counts about itself. Cheap: per commit, not per message."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from broker_core.engine.memory import memory_level
from broker_core.engine.observing import CAUSES, WAITED_MS
from broker_core.engine.shard import Shard
from broker_core.engine.writes import Commit

COMMIT_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
"""Upper bounds of the commit latency histogram's buckets."""


class Metrics:
    def __init__(self) -> None:
        self.commits = 0
        self.synchronous_commits = 0
        self.messages = 0
        self.connections = 0
        self.connections_total = 0
        self.refused_logins = 0
        self.commit_seconds = 0.0
        self.commit_buckets = [0] * (len(COMMIT_SECONDS) + 1)
        self.loop_lag_seconds = 0.0

    def committed(self, commit: Commit, seconds: float) -> None:
        self.commits += 1
        self.synchronous_commits += commit.synchronous
        self.messages += len(commit.messages)
        self.commit_seconds += seconds
        self.commit_buckets[bisect_left(COMMIT_SECONDS, seconds)] += 1

    def as_dict(self) -> dict[str, Any]:
        """For node_status.metrics; names end in their unit, totals in _total."""
        return {
            "commits_total": self.commits,
            "synchronous_commits_total": self.synchronous_commits,
            "messages_stored_total": self.messages,
            "connections": self.connections,
            "connections_total": self.connections_total,
            "logins_refused_total": self.refused_logins,
            "commit_seconds_sum": self.commit_seconds,
            "commit_seconds_bounds": COMMIT_SECONDS,
            "commit_seconds_buckets": self.commit_buckets,
            "event_loop_lag_seconds": self.loop_lag_seconds,
        }


def gauges(shard: Shard) -> dict[str, Any]:
    """What the engine counts, by the same rules of names."""
    return {
        "destinations": len(shard.destinations),
        "temporary_destinations": sum(len(peer.temporaries) for peer in shard.peers.values()),
        "sends_to_ended_temporary_destinations_total": shard.sends_to_the_gone,
        "messages_dropped_at_limits_total": shard.turned_away,
        "sends_waiting_for_room_octets": shard.waiting_octets,
        "duplicates_dropped_total": shard.duplicates.dropped,
        "duplicate_ids_remembered": shard.duplicates.ids,
        "prepared_branches": shard.branches.prepared,
        "prepared_octets": shard.branches.octets,
        "undo_records": len(shard.records.known),
        "undo_octets": shard.records.octets,
        "links": len(shard.links),
        "body_memory_octets": shard.memory,
        "body_memory_octets_max": shard.limits.memory_octets,
        "memory_level": int(memory_level(shard)),
        "segments": len(shard.segments.closed) + 1,
        "accepted_total": shard.accepted,
        "settled_total": shard.settled,
        "dead_total": shard.dead,
        "expired_total": shard.expired,
        "redelivered_total": shard.redelivered,
        "producers_blocked": sum([1 for peer in shard.peers.values() if peer.blocked]),
        "destinations_blocked": len(shard.blocked),
        "sends_waiting_for_room": sum([len(it.capacity.waiting) for it in shard.blocked if it.capacity is not None]),
        "transactions_open": sum([len(peer.transactions) for peer in shard.peers.values()]),
        "operations_open": len(shard.operations.known),
        "oldest_unsettled_seconds": None if shard.held_since is None else max(shard.now - shard.held_since, 0) / 1000,
        "died": dict(zip(CAUSES, shard.observed.died, strict=True)),
        "waited_seconds_bounds": [bound / 1000 for bound in WAITED_MS],
        "waited_seconds_buckets": shard.observed.waited,
        "waited_seconds_sum": shard.observed.waited_ms / 1000,
    }
