"""Sums over destinations. They read the node's counters, one row a destination; never messages."""

from typing import Any

from .destinations import REPORT_SECONDS_MAX
from .node import HEARTBEAT_SECONDS_MAX
from .rows import rows


def totals() -> dict[str, Any] | None:
    """Sums of what the node counts, and since when they are so (`at`); None: no node is alive. One query.

    Gauges are of destinations that exist and rows of the present lease. Totals are of every row, those of destroyed destinations as well,
    or a destruction would look like a counter that began anew.
    """
    found = rows(
        """
        WITH holder AS (
            SELECT acquired_at FROM surety.lease
             WHERE shard = 0 AND holder_pid IS NOT NULL
               AND heartbeat_at >= clock_timestamp() - make_interval(secs => %(heartbeat_seconds_max)s)),
        counted AS (
            SELECT statistics.*, destination.state <> 0 AS is_paused, at >= acquired_at AND destination.destroyed_at IS NULL AS present
              FROM holder CROSS JOIN surety.destination_statistics statistics JOIN surety.destination USING (shard, destination)
             WHERE shard = 0)
        SELECT (SELECT count(*) FROM surety.destination WHERE shard = 0 AND destroyed_at IS NULL) AS destinations,
               coalesce(sum(depth) FILTER (WHERE present), 0)::int8 AS depth,
               coalesce(sum(octets) FILTER (WHERE present), 0)::int8 AS octets,
               coalesce(sum(unsettled) FILTER (WHERE present), 0)::int8 AS unsettled,
               coalesce(sum(scheduled) FILTER (WHERE present), 0)::int8 AS scheduled,
               coalesce(sum(scheduled_octets) FILTER (WHERE present), 0)::int8 AS scheduled_octets,
               coalesce(sum(consumers) FILTER (WHERE present), 0)::int8 AS consumers,
               count(*) FILTER (WHERE present AND is_paused) AS paused,
               greatest(0, (extract(epoch FROM clock_timestamp()) * 1000)::int8
                           - min(oldest_at) FILTER (WHERE present AND depth > 0)) AS oldest_ms,
               coalesce(sum(waiting) FILTER (WHERE present), 0)::int8 AS waiting,
               greatest(0, (extract(epoch FROM clock_timestamp()) * 1000)::int8
                           - min(oldest_unsettled_at) FILTER (WHERE present AND unsettled > 0)) AS oldest_unsettled_ms,
               greatest(max(at), clock_timestamp() - make_interval(secs => %(report_seconds_max)s)) AS at,
               coalesce(sum(accepted_total), 0)::int8 AS accepted_total,
               coalesce(sum(settled_total), 0)::int8 AS settled_total,
               coalesce(sum(dead_total), 0)::int8 AS dead_total,
               coalesce(sum(expired_total), 0)::int8 AS expired_total,
               coalesce(sum(redelivered_total), 0)::int8 AS redelivered_total
          FROM counted HAVING EXISTS (SELECT FROM holder)
        """,
        {"heartbeat_seconds_max": HEARTBEAT_SECONDS_MAX, "report_seconds_max": REPORT_SECONDS_MAX},
    )
    return found[0] if found else None
