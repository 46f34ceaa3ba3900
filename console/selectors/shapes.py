"""Of each list that pages show something that is another whenever the list is: what comes, goes or changes its state, never how much there is of it. One
query each, by index or over a table that is bounded; a page that watches costs one a second, and a hundred pages cost the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import destinations
from .node import HEARTBEAT_SECONDS_MAX, nodes
from .rows import rows

Shape = tuple[Any, ...]

_OPERATIONS = """
    SELECT (SELECT max(operation) FROM surety.operation WHERE shard = 0) AS latest,
           (SELECT max(ended_at) FROM surety.operation WHERE shard = 0 AND ended_at IS NOT NULL) AS ended,
           ARRAY(SELECT (operation, state)::text FROM surety.operation WHERE shard = 0 AND ended_at IS NULL ORDER BY operation) AS going_on"""
_TRANSACTIONS = "SELECT count(*), max(branch) AS latest, max(ended_at) AS ended, sum(state::int8 * branch) AS states FROM surety.prepared WHERE shard = 0"
_UNDO = """
    SELECT (SELECT max(undo) FROM surety.undo WHERE shard = 0) AS latest,
           (SELECT max(ended_at) FROM surety.undo WHERE shard = 0 AND ended_at IS NOT NULL) AS ended,
           (SELECT count(*) FROM surety.undo WHERE shard = 0 AND ended_at IS NULL) AS going_on"""
_SUBSCRIPTIONS = """
    SELECT count(*) FILTER (WHERE destroyed_at IS NULL), count(*) FILTER (WHERE idle_since > 0) AS idle, max(subscription) AS latest,
           max(idle_since) AS since FROM surety.subscription WHERE shard = 0 AND name <> ''"""
_ALERTS = """
    SELECT ARRAY(SELECT (id, delivery, attempts)::text FROM console_alertevent ORDER BY id DESC LIMIT 100) AS latest,
           ARRAY(SELECT (rule_id, subject, value, fired_at)::text FROM console_alert ORDER BY id) AS firing,
           ARRAY(SELECT (name, metric, pattern, comparator, threshold, for_seconds, enabled)::text FROM console_alertrule ORDER BY id) AS rules"""
_REPLAYS = """
    SELECT ARRAY(SELECT (replay, state, cancels, sent, total)::text FROM surety.pipeline_replay WHERE shard = 0 ORDER BY replay DESC LIMIT 100) AS latest"""
_TASKS = "SELECT ARRAY(SELECT (name, started_at, ended_at)::text FROM console_taskrun ORDER BY name) AS runs"
_AUDIT = """
    SELECT (SELECT max(entry) FROM surety.audit) AS latest,
           ARRAY(SELECT request FROM surety.control_request WHERE shard = 0 AND answered_at IS NULL ORDER BY request LIMIT 100) AS unanswered"""
# Of who is connected only what the node tells about itself anyway: those who have come, those who are there, and what they consume by.
_CLIENTS = """
    SELECT node, epoch, metrics ->> 'connections' AS connections, metrics ->> 'connections_total' AS come, metrics ->> 'links' AS links
      FROM surety.node_status
     WHERE shard = 0 AND role <> 'standby' AND at > clock_timestamp() - make_interval(secs => %(heartbeat_seconds_max)s) ORDER BY node"""
_SCHEDULED = "SELECT count(*), sum(scheduled) AS messages FROM surety.destination_statistics WHERE shard = 0 AND scheduled > 0"


def _of(query: str) -> Callable[[], Shape]:
    return lambda: tuple(tuple(row.values()) for row in rows(query, {"heartbeat_seconds_max": HEARTBEAT_SECONDS_MAX}))


def _nodes() -> Shape:
    return tuple((it.node, it.state, it.epoch, sorted((name, str(told)) for name, told in it.listeners.items())) for it in nodes())


SHAPES: dict[str, Callable[[], Shape]] = {
    "alerts": _of(_ALERTS),
    "audit": _of(_AUDIT),
    "clients": _of(_CLIENTS),
    "destinations": destinations.shape,
    "nodes": _nodes,
    "operations": _of(_OPERATIONS),
    "replays": _of(_REPLAYS),
    "scheduled": _of(_SCHEDULED),
    "subscriptions": _of(_SUBSCRIPTIONS),
    "tasks": _of(_TASKS),
    "transactions": _of(_TRANSACTIONS),
    "undo": _of(_UNDO),
}
"""By the list's name."""
