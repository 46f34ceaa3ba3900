"""Who holds the lease, and what the node tells about itself. What a dead node told is not shown: it is unknown."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from .rows import rows

HEARTBEAT_SECONDS_MAX = 5
"""Older than this, nothing is known of the node: it beats every second, and a standby takes over after three."""


SERVING, QUIESCED, DRAINING, DRAINED, HANDING_OVER, STANDBY, SILENT = STATES = (
    "serving", "quiesced", "draining", "drained", "handing over", "standby", "silent",
)  # fmt: skip
"""What a node is. Silent: it was heard of within the last minute, and not within HEARTBEAT_SECONDS_MAX."""


@dataclass(slots=True, frozen=True)
class Standby:
    node: str
    started_at: datetime


@dataclass(slots=True, frozen=True)
class Drain:
    """How far it is. Instants by the broker's clock."""

    since: datetime
    until: datetime
    """Whoever is connected then is cut off."""
    ended: datetime | None
    cut_off: int
    """Connections that held something at the end, or had something open."""
    connections: int
    unsettled: int
    transactions: int


@dataclass(slots=True, frozen=True)
class Compaction:
    """How far the one is that an operator asked for last: segments, but for `rows` and octets."""

    request: int
    percent: int
    since: datetime
    segments: int
    compacted: int
    left: int
    gone: int
    rows: int
    """That were moved."""
    octets_before: int
    octets_after: int
    ended: datetime | None


@dataclass(slots=True, frozen=True)
class OneNode:
    """As it told operators last. A standby has no term, no listeners and no connections."""

    node: str
    state: str
    epoch: int | None
    since: datetime | None
    """When it acquired the lease."""
    started_at: datetime
    heartbeat_seconds: float
    """Since it was last heard of."""
    version: str
    host: str
    listeners: dict[str, Any]
    connections: int | None


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
    about: dict[str, Any] = field(default_factory=dict)
    standbys: tuple[Standby, ...] = ()

    @property
    def state(self) -> str | None:
        """One of STATES; None: unknown."""
        if not self.reporting:
            return None
        return self.about["state"] if self.about.get("state") in STATES else SERVING

    @property
    def state_since(self) -> datetime | None:
        """Since when it is quiesced."""
        return _instant(self.about.get("state_since"))

    @property
    def version(self) -> str | None:
        told = self.about.get("version")
        return told if isinstance(told, str) else None

    @property
    def drain(self) -> Drain | None:
        told = self.about.get("drain")
        if not isinstance(told, dict):
            return None
        return Drain(**{**told, **{name: _instant(told[name]) for name in ("since", "until", "ended")}})

    @property
    def compaction(self) -> Compaction | None:
        told = self.about.get("compaction")
        if not isinstance(told, dict):
            return None
        return Compaction(**{**told, **{name: _instant(told[name]) for name in ("since", "ended")}})

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
               status.listeners::text AS listeners, status.metrics::text AS metrics, status.about::text AS about
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
        about=json.loads(own["about"]) if own else {},
        standbys=tuple(Standby(row["node"], row["started_at"]) for row in fresh if row["node"] != lease["holder"]),
    )


def instance() -> str:
    """Of this installation, as the identifiers that it gives to messages have it. One query."""
    return str(rows("SELECT instance FROM surety.installation")[0]["instance"])


def nodes() -> list[OneNode]:
    """Those that were heard of within the last minute: the one that serves first, then those that stand by, the longest first. One query."""
    found = rows(
        """
        SELECT status.node, status.epoch, status.role, status.started_at, extract(epoch FROM clock_timestamp() - status.at)::float8 AS heartbeat_seconds,
               status.listeners::text AS listeners, status.metrics -> 'connections' AS connections, status.about::text AS about,
               lease.acquired_at AS since, lease.node = status.node AND lease.epoch = status.epoch AND lease_held.held AS serves
          FROM surety.node_status status JOIN surety.lease USING (shard) JOIN surety.lease_held USING (shard)
         WHERE shard = 0 AND status.at > clock_timestamp() - interval '1 minute'
         ORDER BY status.started_at, status.node
         LIMIT 1000
        """
    )
    return sorted(map(_one, found), key=lambda each: (each.epoch is None, each.state == SILENT))


def _one(row: dict[str, Any]) -> OneNode:
    about, serves, fresh = json.loads(row["about"]), bool(row["serves"]), row["heartbeat_seconds"] <= HEARTBEAT_SECONDS_MAX
    told = about.get("state")
    connections = json.loads(row["connections"] or "null")
    return OneNode(
        node=row["node"],
        state=(told if told in STATES else SERVING) if serves and fresh else STANDBY if row["role"] == "standby" and fresh else SILENT,
        epoch=row["epoch"] if serves else None,
        since=row["since"] if serves else None,
        started_at=row["started_at"],
        heartbeat_seconds=max(row["heartbeat_seconds"], 0.0),
        version=str(about.get("version", "")),
        host=str(about.get("host", "")),
        listeners=json.loads(row["listeners"]) if serves else {},
        connections=connections if serves and type(connections) is int else None,
    )


def _instant(ms: Any) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if type(ms) is int else None
