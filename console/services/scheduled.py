"""What the schedule does. Like an operator it asks the node through control requests (R22); only what no node keeps it removes itself.

Everything here may be lost, repeated or run twice at once without harm.
"""

from pathlib import Path

from django.db import connection, transaction

from broker_core import control
from broker_core.config import BrokerConfig
from broker_core.pipeline.surroundings import SparkMissing
from console.launch import spark
from console.selectors import pipeline

from . import idempotency, resets
from .audit import record

SCHEDULER = "scheduler"
"""Who asks, in the request's row."""
REQUESTS_KEPT_DAYS = 1
"""Answered requests of the schedule are of no interest afterwards; about 15,000 rows. Those of operators stay as long as the audit does."""
BATCH_ROWS, BATCHES_MAX = 1_000, 100
"""Some ms each, so that no transaction is long; 100,000 rows an hour are more than operators and the schedule write in it."""
COUNTS_ROWS = 10_000
"""Of what the data pipeline has counted: a million rows an hour, eight times what it writes of 1,000 busy queues."""


def file_request(verb: str) -> int | None:
    """Ask the node for `verb`; the request's number. None: an earlier one still waits, so that none pile up while no node serves."""
    with transaction.atomic(), connection.cursor() as cursor:
        if control.pending(cursor, verb):
            return None
        return control.request(cursor, verb, requested_by=SCHEDULER)


def begin_pipeline(log: Path) -> int | None:
    """Begin an audit of the data pipeline, which brings the lake up to date first, in a process of its own, which says in `log` what it does; the process's
    number. None: a run goes on. Raises SparkMissing, with the cure."""
    if problem := pipeline.problem():
        raise SparkMissing(problem)
    runs, _ = pipeline.page(limit=1)
    if runs and runs[0].state == "running":
        return None
    return spark.begin_run(log, SCHEDULER)


def purge_spent() -> int:
    """Delete what Celery's transport has delivered (it only marks rows invisible); the number of rows. By the index that its table has."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM kombu_message WHERE NOT visible")
        return int(cursor.rowcount)


def forget(audit_retention_days: int) -> int:
    """Delete audit entries that are older, answered or lapsed requests and answers to repeated calls that are too old, looks whose answer nobody took, and
    resets of what is no more; the number of rows.

    Requests belong to the broker, but once they are answered only the audit's page reads them, and no node looks at them again. They are
    found by one scan of the table in an hour: it holds a day of the schedule and what operators asked for, and an index would cost more.
    """
    old = "now() - make_interval(days => %(days)s)"  # not clock_timestamp(), which no index can be searched for
    lapsed = "(answered_at IS NOT NULL OR deadline < extract(epoch FROM clock_timestamp()) * 1000)"
    untaken = "verb = ANY (%(looks)s::text[]) AND created_at < now() - interval '1 minute'"  # whoever looked died in the few seconds before the answer
    of_schedule = f"requested_by = %(scheduler)s AND created_at < {old} AND {lapsed}"
    of_operators = f"requested_by <> %(scheduler)s AND created_at < {old} AND {lapsed}"
    return (
        _delete("surety.control_request", "request", untaken, 0)
        + _delete("surety.control_request", "request", of_schedule, REQUESTS_KEPT_DAYS)
        + _forget_audit(audit_retention_days)
        + _delete("surety.control_request", "request", of_operators, audit_retention_days)
        + _delete("console_idempotentcall", "id", f"at < {old}", idempotency.KEPT_DAYS)
        + resets.forget()
    )


def forget_reports(config: BrokerConfig) -> int:
    """Delete what the data pipeline has found long ago; the number of rows. The last audit stays, as the next one goes on from it."""
    old = "now() - make_interval(days => %(days)s)"
    kept = {"minute": config.report_minutes_days, "hour": config.report_hours_days, "day": config.report_days_days}
    last = "(SELECT coalesce(max(audit), 0) FROM surety.pipeline_audit WHERE state <> '')"
    return sum(
        _delete("surety.pipeline_rollup", "ctid", f"shard = 0 AND grain = '{grain}' AND start < {old}", days, rows=COUNTS_ROWS) for grain, days in kept.items()
    ) + _delete("surety.pipeline_audit", "audit", f"at < {old} AND audit <> {last}", config.report_audits_days)


def _forget_audit(days: int) -> int:
    """In batches, as below; by the one way that the table allows, and what it takes is noted there."""
    forgotten = 0
    for _ in range(BATCHES_MAX):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT surety.forget_audit(%(days)s, %(most)s)", {"days": days, "most": BATCH_ROWS})
            gone = int(cursor.fetchone()[0])
            if gone:
                record(SCHEDULER, "", "audit forget", arguments={"older_than_days": days}, result={"entries": gone})
        forgotten += gone
        if gone < BATCH_ROWS:
            break
    return forgotten


def _delete(table: str, key: str, which: str, days: int, rows: int = BATCH_ROWS) -> int:
    """In batches, each a transaction of its own; what is left after BATCHES_MAX goes the next time."""
    deleted = 0
    for _ in range(BATCHES_MAX):
        with transaction.atomic(), connection.cursor() as cursor:
            # ANY of an array: one scan finds the batch, and its rows are then found by the primary key.
            statement = f"DELETE FROM {table} WHERE {key} = ANY (ARRAY(SELECT {key} FROM {table} WHERE {which} LIMIT {rows}))"
            cursor.execute(statement, {"days": days, "scheduler": SCHEDULER, "looks": list(control.LOOKS)})
            deleted += cursor.rowcount
            if cursor.rowcount < rows:
                break
    return deleted
