"""What does not keep the service from its promises, and should not stay so: each as a sentence that says what to do."""

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.utils import timezone

from . import database, schedule
from .node import NodeStatus

XMIN_AGE_MAX = 50_000_000
"""Transactions; at 200 million PostgreSQL begins to freeze tables by force."""
IN_DOUBT_SECONDS_MAX, LAG_SECONDS_MAX = 300, 1.0
ORANGE = 2
"""Of memory_level."""
LATE_RUNS = 6
"""A task of the schedule that has missed so many runs is not being run."""
LATE_SECONDS_MIN = 60
DAY_SECONDS = 86_400


def warnings(status: NodeStatus) -> dict[str, str]:
    """What is well enough to serve, and should not stay so. Four queries."""
    told, waits, server, tasks = status.metrics, database.in_doubt(), database.database(), schedule.tasks()
    late = ", ".join(task.name for task in tasks if task.enabled and _is_late(task))
    failed = ", ".join(task.name for task in tasks if task.state == schedule.FAILED)
    links = ", ".join(sorted({each["link"] for each in told.get("foreign") or () if each.get("state") != "connected"}))
    doubt, horizon, lag = waits["oldest_seconds"] or 0, server["xmin_horizon_age"] or 0, told.get("event_loop_lag_seconds") or 0
    found = {
        "schedule": late and f"tasks are not being run ({late}): see whether worker and beat run, and log/worker.log and log/beat.log",
        "tasks": failed and f"the last run of {failed} failed: `mq list task` says why",
        "in_doubt": doubt > IN_DOUBT_SECONDS_MAX
        and f"prepared branches wait for their outcome: {waits['branches']}, the oldest for {doubt:.0f} s. Restart their coordinator, or end them by hand",
        "xmin": horizon > XMIN_AGE_MAX
        and f"the database's oldest snapshot is {horizon:,} transactions old and holds up VACUUM: end that session, prepared transaction or slot",
        "memory": (told.get("memory_level") or 0) >= ORANGE
        and "the memory for messages is nearly full: have what waits consumed, or raise SURETY_BODY_MEMORY_OCTETS_MAX",
        "lag": lag > LAG_SECONDS_MAX and f"the node's event loop is {lag:.1f} s late: the machine has too little processor time for it",
        "certificate": _certificate(told.get("certificate_end_timestamp_seconds")),
        "links": links and f"links to other brokers are not connected ({links}): `mq query bkr` has their last errors",
    }
    return {name: sentence for name, sentence in found.items() if sentence}


def _certificate(ends: float | None) -> str:
    """Of the TLS listeners. None: they show none, or nobody knows."""
    if ends is None or (left := (ends - timezone.now().timestamp()) / DAY_SECONDS) > settings.BROKER.tls_warning_days:
        return ""
    day = datetime.fromtimestamp(ends, UTC).date()
    when = f"has ended ({day}), and clients that check it are not connected any more" if left <= 0 else f"ends in {_days(left)} ({day})"
    return f"the certificate of the TLS listeners of STOMP and AMQP {when}: put a renewed one into the file of SURETY_TLS_CERT, which is read again by itself"


def _days(left: float) -> str:
    return "less than a day" if left < 1 else "1 day" if left < 2 else f"{int(left)} days"


def _is_late(task: schedule.ScheduledTask) -> bool:
    """One that has never run is not: it may be new."""
    if task.started_at is None:
        return False
    return timezone.now() - task.started_at > timedelta(seconds=max(LATE_RUNS * task.seconds, LATE_SECONDS_MIN))
