"""What PostgreSQL says of itself that decides how the broker fares: dead rows, and how far back its oldest snapshot holds them."""

from collections.abc import Sequence
from typing import Any

from .rows import rows


def database() -> dict[str, Any]:
    """One query, of statistics only. None: this role may not see other sessions (grant it pg_read_all_stats), so that the oldest is unknown."""
    return rows(
        """
        WITH may AS (SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS see),
        horizon AS (
            SELECT age(backend_xmin) AS transactions FROM pg_stat_activity WHERE backend_xmin IS NOT NULL
            UNION ALL SELECT age(transaction) FROM pg_prepared_xacts
            UNION ALL SELECT greatest(age(xmin), age(catalog_xmin)) FROM pg_replication_slots)
        SELECT (SELECT coalesce(sum(n_dead_tup), 0)::int8 FROM pg_stat_user_tables WHERE schemaname = 'surety') AS dead_tuples,
               (SELECT coalesce(sum(n_live_tup), 0)::int8 FROM pg_stat_user_tables WHERE schemaname = 'surety') AS live_tuples,
               CASE WHEN see THEN (SELECT coalesce(max(transactions), 0)::int8 FROM horizon) END AS xmin_horizon_age,
               CASE WHEN see THEN (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 FROM pg_stat_activity
                                    WHERE backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) END AS oldest_transaction_seconds
          FROM may
        """
    )[0]


def in_doubt() -> dict[str, Any]:
    """Prepared branches that wait for their outcome, and operations that wait or run. Facts of the database, node or not. By their indices."""
    return rows(
        """
        SELECT (SELECT count(*) FROM surety.prepared WHERE shard = 0 AND ended_at IS NULL) AS branches,
               (SELECT greatest(extract(epoch FROM clock_timestamp()) - min(prepared_at) / 1000.0, 0)::float8
                  FROM surety.prepared WHERE shard = 0 AND ended_at IS NULL) AS oldest_seconds,
               (SELECT count(*) FROM surety.operation WHERE shard = 0 AND ended_at IS NULL AND state = 'waiting') AS operations_waiting,
               (SELECT count(*) FROM surety.operation WHERE shard = 0 AND ended_at IS NULL AND state = 'running') AS operations_running
        """
    )[0]


def size() -> int:
    """Octets of the database's files."""
    return rows("SELECT pg_database_size(current_database()) AS octets")[0]["octets"]


def version() -> str:
    return f"PostgreSQL {rows('SHOW server_version')[0]['server_version'].partition(' ')[0]}"


def segment_octets(numbers: Sequence[int]) -> int:
    """That these segments take on disk, with indexes and what is stored out of line; those that are gone count nothing."""
    tables = [f"surety.{kind}_0_{number}" for number in numbers for kind in ("message", "spill")]
    statement = "SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)::int8 AS octets FROM unnest(%(tables)s::text[]) AS name"
    return int(rows(statement, {"tables": tables})[0]["octets"])
