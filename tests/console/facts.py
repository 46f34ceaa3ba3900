"""What a node leaves in the database, written by hand: how old, how well."""

import json
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from broker_core.store.lease import LOCK
from tests.console.engine_node import tell_statistics

_holders: list[psycopg.Connection] = []
"""Sessions that hold the lock, until `release`."""
_sessions: dict[str, psycopg.Connection] = {}
"""By dsn; one at most, unless a test has a database of its own."""


def release() -> None:
    """End the sessions of whoever held a lease, and that of `execute` and `rows`."""
    while _holders:
        _holders.pop().close()
    for session in _sessions.values():
        session.close()
    _sessions.clear()


def lease(dsn: str, *, heartbeat_seconds: float = 0, acquired_seconds: float = 60, held: bool = True) -> None:
    """node-1 acquired the lease so many seconds ago, was last heard of so many seconds ago, and still has the lock if it is held."""
    if held:
        holder = psycopg.connect(dsn, autocommit=True)
        _holders.append(holder)
        holder.execute(f"SELECT pg_advisory_lock({LOCK}, 0)")
    execute(
        dsn,
        """UPDATE surety.lease SET epoch = 7, node = 'node-1', holder_pid = %s, acquired_at = clock_timestamp() - make_interval(secs => %s),
                                   heartbeat_at = clock_timestamp() - make_interval(secs => %s)""",
        [_holders[-1].info.backend_pid if held else None, acquired_seconds, heartbeat_seconds],
    )


def status(
    dsn: str,
    *,
    node: str = "node-1",
    epoch: int = 7,
    seconds: float = 0,
    listeners: dict[str, Any] | None = None,
    metrics: dict[str, Any] | None = None,
) -> None:
    """The node told this about itself so many seconds ago, in a term of that epoch."""
    execute(
        dsn,
        """INSERT INTO surety.node_status (shard, node, epoch, role, started_at, at, listeners, metrics)
           VALUES (0, %s, %s, 'active', clock_timestamp(), clock_timestamp() - make_interval(secs => %s), %s, %s)""",
        [node, epoch, seconds, json.dumps({"stomp": True} if listeners is None else listeners), json.dumps(metrics or {"space_low": False})],
    )


def well(dsn: str) -> None:
    """A node that is alive and ready."""
    lease(dsn)
    status(dsn)


def destination(dsn: str, number: int, address: str, *, state: int = 0, destroyed: bool = False, **counters: Any) -> None:
    """A destination, and if any counter is given the node's row about it, written now."""
    execute(
        dsn,
        """INSERT INTO surety.destination (shard, destination, address, created_at, automatic, state, settings, destroyed_at)
           VALUES (0, %s, %s, 0, false, %s, '{}', CASE WHEN %s THEN clock_timestamp() END)""",
        [number, address, state, destroyed],
    )
    if counters:
        tell_statistics(_session(dsn), number, address, state=state, **counters)


def rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    return _session(dsn).execute(query).fetchall()


def one_of_each(dsn: str) -> None:
    """What operators name: the pattern and the alias queue/a, the object, the link and the account a; branch 1, operation 1, undo 1, request 1."""
    for statement in (
        "INSERT INTO surety.policy VALUES (0, 'queue/a', '{}')",
        "INSERT INTO surety.alias VALUES (0, 'queue/a', 'queue/b', 'inherit', 'inherit', true)",
        "INSERT INTO surety.administered (name, kind) VALUES ('a', 'factory')",
        "INSERT INTO surety.foreign_link (name, attributes) VALUES ('a', '{}')",
        "INSERT INTO surety.prepared VALUES (0, 1, '1:aa:bb', 'guest', 4, 2, 1, 10, 1000, NULL)",
        "INSERT INTO surety.operation VALUES (0, 1, 'delete', 'queue/orders', '{}', 'olga', 'running', 9, 4, 1, 0, 9, '{}', 1000, NULL, '')",
        "INSERT INTO surety.subscription (shard, subscription, destination, name, client_id, shared, selector, no_local, account, pattern) "
        "VALUES (0, 1, 1, 's', 'c', false, '', false, 'guest', '')",
        "INSERT INTO surety.undo VALUES (0, 1, 'purge', 'queue/orders', 1, 'olga', 1000, 2000, 0, 4, 40, NULL, NULL)",
        "INSERT INTO surety.account (name, salt, iterations, stored_key, server_key) VALUES ('a', decode(repeat('00', 16), 'hex'), 4096, '', '')",
        "INSERT INTO surety.pipeline_run (shard, kind, state, requested_by, process) VALUES (0, 'ingest', 'done', 'olga', 'host:1')",
        "INSERT INTO surety.control_request (verb, requested_by, answered_at, done, result) VALUES ('expire', 'scheduler', now(), true, '{}')",
        """INSERT INTO console_alertrule (name, metric, pattern, comparator, threshold, for_seconds, webhook, secret, enabled, memory)
           VALUES ('a', 'depth', 'queue/a', '>', 5, 0, 'http://127.0.0.1:9/', '', true, '[]')""",
        "INSERT INTO surety.pipeline_run (shard, kind, state, requested_by, process) VALUES (0, 'audit', 'done', 'olga', 'host:1')",
        "INSERT INTO surety.pipeline_audit (shard, run, from_number, to_number, complete, proven, unproven, violations, fates, discards, gaps, state, "
        "milliseconds) "
        "VALUES (0, 1, 1, 9, true, 5, 0, 1, "
        "'[{\"destination\": 1, \"address\": \"queue/orders\", \"fate\": \"acknowledged\", \"messages\": 5}]', '[]', '[]', 'audit/slot=0', 80)",
        "INSERT INTO surety.pipeline_replay (shard, requested_by, address, \"into\", rate) VALUES (0, 'olga', 'queue/orders', 'queue/a', 9)",
        "INSERT INTO surety.pipeline_violation (audit, kind, reason, first, last, messages, evidence) VALUES (1, 'lost', 'its row is gone', 3, 3, 1, '[]')",
        "INSERT INTO surety.pipeline_rollup VALUES (0, 'hour', now() - interval '1 hour', 1, 0, '{\"offered\": 5, \"delivered\": 3, \"wait/8\": 3}')",
    ):
        execute(dsn, statement)


def empty_audit(dsn: str) -> None:
    """By the only way around its triggers: that of a superuser who says so."""
    execute(
        dsn,
        "BEGIN; SET LOCAL session_replication_role = replica; DELETE FROM surety.audit; SELECT setval('surety.audit_entry_seq', 1, false); COMMIT",
    )


def execute(dsn: str, statement: str, parameters: list[Any] | None = None) -> None:
    _session(dsn).execute(statement, parameters)


def _session(dsn: str) -> psycopg.Connection:
    """The one of this test that writes and reads all facts: to connect takes longer than what they say."""
    known = _sessions.get(dsn)
    if known is not None and known.info.transaction_status == TransactionStatus.IDLE:
        return known
    if known is not None:
        known.close()  # cut off, or amid a transaction that failed
    known = _sessions[dsn] = psycopg.connect(dsn, autocommit=True)
    return known
