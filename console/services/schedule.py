"""What the service does by itself, again and again: how often, when it was last done and what came of it. Administrators change how often, and may have it
done now. What each task does is in services.scheduled: all of it may be lost, repeated, run twice at once or cut off, and the next run does what is left."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils import timezone
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from broker_core.pipeline.surroundings import SparkMissing
from console.models import TaskRun
from console.permissions import MANAGE_SCHEDULE

from . import alert_delivery, alerts, history, scheduled
from .audit import Actor, record, require
from .refusals import NotThere

log = logging.getLogger("surety.schedule")

PREFIX = "console."
"""Of the names by which the worker knows them."""
SECONDS_MIN, SECONDS_MAX = 5, 7 * 86_400
PROBLEM_CHARACTERS_MAX = 500


@dataclass(slots=True, frozen=True)
class Task:
    seconds: int
    """How often, unless an administrator says otherwise."""
    words: str
    work: Callable[[], int | None]
    """Its result is a number of rows, or of the request that it has filed; None: there was nothing to do."""
    result: str
    """What the number is."""
    enabled: bool = True
    """Unless an administrator says otherwise."""


def _asks(seconds: int, verb: str, words: str) -> Task:
    return Task(seconds, words, partial(scheduled.file_request, verb), "request")


def _alerts() -> int:
    """What was found is told even if looking fails, and the other way round."""
    try:
        return alerts.evaluate()
    finally:
        alert_delivery.deliver()


TASKS = {
    # A stored message that no consumer reaches leaves at most this long after its expiration (consumers never see it at all).
    "expire": _asks(10, "expire", "Messages whose time has passed are taken out of where nobody consumes."),
    # A quarter of the shortest wait that an unused destination has by default.
    "reap": _asks(30, "reap", "Destinations that clients created and nobody uses any more are removed."),
    # Days are counted in minutes: once a minute is often enough.
    "retain": _asks(60, "retain", "Dead messages that were kept long enough, and subscriptions that nobody uses, are ended."),
    "ledger": _asks(60, "ledger", "Ledger segments beyond their age or size are dropped."),
    # As often as beat can; a chart of 15 minutes has 180 points.
    "sample": Task(5, "What the node counts is noted for the charts, and old samples are deleted.", history.sample, "rows"),
    # An alert is told so long after it began, at most.
    "alerts": Task(15, "Alerts are looked for, and their webhooks told.", _alerts, "events"),
    "purge_spent": Task(60, "Delivered messages of the scheduler's own transport are deleted.", scheduled.purge_spent, "rows"),
    # A table is scanned for it.
    "forget": Task(
        3600,
        "Old entries of the audit, answered requests and answers to repeated calls, resets of what is no more, and old reports are deleted.",
        lambda: scheduled.forget(settings.BROKER.audit_retention_days) + scheduled.forget_reports(settings.BROKER),
        "rows",
    ),
    # Off: it wants Java, and Spark, which the first `manage.py pipeline run` fetches; and who runs it once has the ledger wait for it.
    "pipeline": Task(
        3600,
        "The data pipeline brings the lake up to date and audits what is new, in a process of its own (docs/pipeline.md).",
        lambda: scheduled.begin_pipeline(settings.BROKER.home / "log" / "pipeline.log"),
        "process",
        enabled=False,
    ),
}


class InvalidSchedule(ValueError):
    """The schedule cannot be like this; the message is a sentence that says why."""


class NoTask(InvalidSchedule, NotThere):
    """None has the name."""


def establish() -> None:
    """Every task is on the schedule; what an administrator has changed stays. At every start."""
    with transaction.atomic():
        for name, task in TASKS.items():
            made = {"task": PREFIX + name, "interval": _every(task.seconds), "expire_seconds": task.seconds, "description": task.words, "enabled": task.enabled}
            PeriodicTask.objects.get_or_create(name=name, defaults=made)
        for gone in PeriodicTask.objects.filter(task__startswith=PREFIX).exclude(name__in=TASKS):
            gone.delete()


def run(name: str, by: str = scheduled.SCHEDULER) -> TaskRun:
    """Do it, and note what came of it. Raises what the work raises, after that was noted."""
    TaskRun.objects.update_or_create(name=name, defaults={"started_at": timezone.now(), "ended_at": None, "by": by, "result": None, "problem": ""})
    began = time.monotonic()
    result, problem = None, ""
    try:
        result = TASKS[name].work()
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"[:PROBLEM_CHARACTERS_MAX]
        raise
    finally:
        duration = int((time.monotonic() - began) * 1000)
        ended = {"ended_at": timezone.now(), "duration_ms": duration, "result": result, "problem": problem.replace("\x00", "")}
        TaskRun.objects.filter(name=name).update(**ended)
    return TaskRun.objects.get(name=name)


def run_now(actor: Actor, name: str) -> TaskRun:
    """Beside its schedule. A failure is in the answer, as it is in the list. Raises PermissionDenied, NoTask."""
    require(actor, MANAGE_SCHEDULE, "task run", name)
    _check(name)
    record(actor.name, actor.origin, "task run", name)
    try:
        return run(name, actor.name)
    except (DatabaseError, SparkMissing):
        log.exception("Task %s failed", name)
        return TaskRun.objects.get(name=name)


def update(actor: Actor, name: str, *, seconds: int | None = None, enabled: bool | None = None) -> None:
    """Of the schedule from now on; beat reads it every five seconds. Raises PermissionDenied, InvalidSchedule."""
    require(actor, MANAGE_SCHEDULE, "task update", name)
    _check(name)
    if seconds is not None and not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise InvalidSchedule(f"A task runs every {SECONDS_MIN} to {SECONDS_MAX} seconds.")
    told: dict[str, Any] = {}
    with transaction.atomic():
        task = PeriodicTask.objects.select_for_update().get(name=name)
        if seconds is not None:
            task.interval, task.expire_seconds = _every(seconds), seconds
            told["seconds"] = seconds
        if enabled is not None:
            task.enabled = told["enabled"] = enabled
        task.save()
        record(actor.name, actor.origin, "task update", name, told)


def _every(seconds: int) -> IntervalSchedule:
    return IntervalSchedule.objects.get_or_create(every=seconds, period=IntervalSchedule.SECONDS)[0]


def _check(name: str) -> None:
    if name not in TASKS:
        raise NoTask(f"There is no task {name}; there are {', '.join(TASKS)}.")
