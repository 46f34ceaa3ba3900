"""The schedule: each task with how often it runs, what came of its last run, and when the next is due. Two queries."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from console.models import TaskRun
from console.services.schedule import TASKS

NEVER, RUNNING, DONE, FAILED, CUT_OFF = STATES = ("never", "running", "done", "failed", "cut off")
"""Cut off: it has begun and not ended, and nothing takes so long; the next run does what it left."""
RUN_SECONDS_MAX = 300


@dataclass(slots=True, frozen=True)
class ScheduledTask:
    name: str
    description: str
    seconds: int
    enabled: bool
    state: str
    """Of its last run."""
    by: str
    started_at: datetime | None
    duration_ms: int | None
    result: int | None
    result_is: str
    problem: str
    next_at: datetime | None
    """None: it is not enabled."""


def tasks() -> list[ScheduledTask]:
    runs = {run.name: run for run in TaskRun.objects.filter(name__in=list(TASKS))}
    planned = {task.name: task for task in PeriodicTask.objects.select_related("interval").filter(name__in=list(TASKS))}
    return [_task(planned[name], runs.get(name)) for name in TASKS if name in planned]


def by_name(name: str) -> ScheduledTask | None:
    return next((task for task in tasks() if task.name == name), None)


def _task(planned: PeriodicTask, run: TaskRun | None) -> ScheduledTask:
    seconds, task, now = planned.interval.every, TASKS[planned.name], timezone.now()
    state = NEVER
    if run is not None and run.ended_at is None:
        state = RUNNING if now - run.started_at < timedelta(seconds=RUN_SECONDS_MAX) else CUT_OFF
    elif run is not None:
        state = FAILED if run.problem else DONE
    following = max(run.started_at + timedelta(seconds=seconds), now) if run is not None else now
    told = (state, run.by, run.started_at, run.duration_ms, run.result) if run is not None else (state, "", None, None, None)
    problem = run.problem if run is not None else ""
    return ScheduledTask(
        planned.name, task.words, seconds, planned.enabled, *told, task.result, problem, following if planned.enabled else None
    )  # fmt: skip
