"""Who holds the lease, and what the node tells about itself. What a dead node told is not shown: it is unknown."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .rows import rows

HEARTBEAT_SECONDS_MAX = 5
"""Older than this, nothing is known of the node: it beats every second, and a standby takes over after three."""


@dataclass(slots=True, frozen=True)
class Standby:
    node: str
    started_at: datetime


@dataclass(slots=True, frozen=True)
class NodeStatus:
    alive: bool
    """A node's session holds the lease's lock, and its heartbeat is fresh."""
    holder: str | None
    epoch: int
    since: datetime | None
    """When the lease was acquired."""
    heartbeat_seconds: float | None
    """Age of the last heartbeat; None: there never was one."""
    reporting: bool
    """What it tells about itself is as fresh as its heartbeat."""
    started_at: datetime | None = None
    listeners: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    standbys: tuple[Standby, ...] = ()

    @property
    def connections(self) -> int | None:
        """Clients connected; None: unknown."""
        told = self.metrics.get("connections")
        return told if type(told) is int else None


def node_status() -> NodeStatus:
    """One query. Ages are by the database's clock, which is the heartbeat's."""
    found = rows(
        """
        SELECT lease.epoch, lease.node AS holder, lease.acquired_at AS since,
               extract(epoch FROM clock_timestamp() - lease.heartbeat_at)::float8 AS heartbeat_seconds,
               lease_held.held, status.node, status.epoch AS status_epoch, status.started_at,
               extract(epoch FROM clock_timestamp() - status.at)::float8 AS status_seconds,
               status.listeners::text AS listeners, status.metrics::text AS metrics
          FROM surety.lease JOIN surety.lease_held USING (shard) LEFT JOIN surety.node_status status USING (shard)
         WHERE shard = 0
         ORDER BY status.started_at
        """
    )
    if not found:
        return NodeStatus(alive=False, holder=None, epoch=0, since=None, heartbeat_seconds=None, reporting=False)
    lease = found[0]
    beat = lease["heartbeat_seconds"]
    alive = bool(lease["held"]) and beat is not None and beat <= HEARTBEAT_SECONDS_MAX
    fresh = [row for row in found if row["status_seconds"] is not None and row["status_seconds"] <= HEARTBEAT_SECONDS_MAX]
    # What the same node told in an earlier term is not how it is now: it may have no listener open yet.
    own = next((row for row in fresh if alive and row["node"] == lease["holder"] and row["status_epoch"] == lease["epoch"]), None)
    return NodeStatus(
        alive=alive,
        holder=lease["holder"],
        epoch=lease["epoch"],
        since=lease["since"],
        heartbeat_seconds=beat,
        reporting=own is not None,
        started_at=own["started_at"] if own else None,
        listeners=json.loads(own["listeners"]) if own else {},
        metrics=json.loads(own["metrics"]) if own else {},
        standbys=tuple(Standby(row["node"], row["started_at"]) for row in fresh if row["node"] != lease["holder"]),
    )
