"""What of the service wants somebody's attention, beside its health: counted from what the node tells, never from messages. One query."""

from __future__ import annotations

from dataclasses import dataclass

from .node import HEARTBEAT_SECONDS_MAX
from .rows import rows

DEAD_QUEUE = "queue/mq.sys.dmq"
UNREAD_SECONDS = 60
"""A queue that nobody consumes is worth a word when its oldest message has waited so long."""
FIRING_SHOWN = 5
"""Alerts by name; that there are more is said."""
TOLD_OF = frozenset(("in_doubt", "tasks"))
"""Of `warnings.warnings`: what is here, too."""


@dataclass(slots=True, frozen=True)
class Attention:
    dead: int
    """On the dead message queue of all."""
    in_doubt: int
    """Prepared branches of distributed transactions that wait for their outcome."""
    in_doubt_ms: int | None
    """Age of the oldest."""
    paused: int
    """Destinations that somebody has paused."""
    full: int
    """Destinations that have reached a limit on messages or octets."""
    unread: int
    """Queues with messages and without a consumer."""
    failed_tasks: tuple[str, ...]
    failed_operations: int
    """Of the last day."""


def attention() -> Attention:
    """Zeros where no node tells; that it does not is said by health. What is paused its definition says: of a quiet destination nothing is told anew."""
    [row] = rows(
        """
        WITH holder AS (
            SELECT acquired_at, (extract(epoch FROM clock_timestamp()) * 1000)::int8 - %(unread_ms)s AS unread_before FROM surety.lease
             WHERE shard = 0 AND holder_pid IS NOT NULL
               AND heartbeat_at >= clock_timestamp() - make_interval(secs => %(heartbeat_seconds_max)s)),
        counted AS (
            SELECT statistics.*, destination.state <> 0 AS paused, settings, unread_before
              FROM holder CROSS JOIN surety.destination_statistics statistics JOIN surety.destination USING (shard, destination)
             WHERE shard = 0 AND at >= acquired_at AND destroyed_at IS NULL),
        branches AS (SELECT count(*) AS waiting, min(prepared_at) AS oldest FROM surety.prepared WHERE shard = 0 AND ended_at IS NULL)
        SELECT coalesce(sum(depth) FILTER (WHERE address = %(dead_queue)s), 0)::int8 AS dead,
               (SELECT waiting FROM branches) AS in_doubt,
               (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 - oldest FROM branches) AS in_doubt_ms,
               count(*) FILTER (WHERE paused) AS paused,
               count(*) FILTER (WHERE depth > 0 AND settings <> '{}' AND address <> %(dead_queue)s
                   AND ((settings->>'max_messages')::int8 BETWEEN 1 AND depth OR (settings->>'max_octets')::int8 BETWEEN 1 AND octets)) AS full,
               count(*) FILTER (WHERE depth > 0 AND consumers = 0 AND address LIKE 'queue/%%' AND address NOT LIKE 'queue/mq.%%'
                   AND oldest_at < unread_before) AS unread,
               (SELECT coalesce(array_agg(name ORDER BY name), '{}') FROM console_taskrun WHERE problem <> '') AS failed_tasks,
               (SELECT count(*) FROM surety.operation WHERE shard = 0 AND state = 'failed'
                   AND ended_at > extract(epoch FROM clock_timestamp()) * 1000 - 86400000) AS failed_operations
          FROM counted
        """,
        {"heartbeat_seconds_max": HEARTBEAT_SECONDS_MAX, "dead_queue": DEAD_QUEUE, "unread_ms": UNREAD_SECONDS * 1000},
    )
    return Attention(**{**row, "failed_tasks": tuple(row["failed_tasks"])})
