"""The schedule: each task with its last run and its next; changed and run by administrators; what is cut off is finished by the next run."""

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.utils import timezone
from django_celery_beat.models import PeriodicTask, PeriodicTasks

from console.celery import NAMES
from console.models import TaskRun
from console.services import schedule, scheduled
from tests.console import facts
from tests.console.api import bearer, call, problem, token


@pytest.fixture
def olga(database):
    schedule.establish()
    yield bearer(token(User.objects.get(username="olga")))
    PeriodicTask.objects.filter(task__startswith="console.").delete()
    schedule.establish()


def listed(client):
    return {each["name"]: each for each in call(client, "GET", "schedule").document}


def test_every_task_is_listed_with_what_it_is_for(olga):
    assert tuple(listed(olga)) == NAMES == tuple(schedule.TASKS)
    for task in listed(olga).values():
        assert (task["state"], task["started_at"], task["enabled"]) == ("never", None, task["name"] != "pipeline")
        assert task["description"].endswith(".")
        assert (task["next_at"] is not None) == task["enabled"]


def test_a_run_is_listed_with_result_and_the_next(olga, database):
    done = call(olga, "POST", "schedule/expire/run").document
    [(request,)] = facts.rows(database, "SELECT request FROM surety.control_request")
    assert (done["state"], done["by"], done["result"], done["result_is"], done["problem"]) == ("done", "olga", request, "request", "")
    assert done["duration_ms"] >= 0
    assert datetime.fromisoformat(done["next_at"]) - datetime.fromisoformat(done["started_at"]) == timedelta(seconds=10)
    assert call(olga, "POST", "schedule/expire/run").document["result"] is None, "an earlier request waits still"
    assert [what for (what,) in facts.rows(database, "SELECT what FROM surety.audit WHERE what LIKE 'task%'")] == ["task run"] * 2


def test_an_administrator_changes_the_schedule_and_beat_hears_of_it(olga, database):
    before = PeriodicTasks.last_change()
    told = call(olga, "PATCH", "schedule/reap", {"seconds": 45, "enabled": False}).document
    assert (told["seconds"], told["enabled"], told["next_at"]) == (45, False, None)
    task = PeriodicTask.objects.get(name="reap")
    assert (task.interval.every, task.expire_seconds, task.enabled) == (45, 45, False)
    assert PeriodicTasks.last_change() != before
    assert PeriodicTask.objects.get(name="expire").interval.every == 10
    schedule.establish()
    assert PeriodicTask.objects.get(name="reap").interval.every == 45, "it stays at the next start"
    assert facts.rows(database, "SELECT who, address, arguments FROM surety.audit WHERE what = 'task update'") == [
        ("olga", "reap", {"seconds": 45, "enabled": False})
    ]


def test_what_cannot_be(olga):
    for wrong in ({"seconds": 4}, {"seconds": 7 * 86_400 + 1}, {}, {"enabled": 1}):
        problem(call(olga, "PATCH", "schedule/reap", wrong), 400, "invalid")
    problem(call(olga, "PATCH", "schedule/nothing", {"enabled": True}), 404, "not-found")
    problem(call(olga, "POST", "schedule/nothing/run"), 404, "not-found")


def test_a_run_that_fails_is_listed_with_its_reason_and_tried_again(olga, monkeypatch):
    def fails():
        raise OperationalError("no room, by choice")

    monkeypatch.setitem(schedule.TASKS, "purge_spent", schedule.Task(60, "Fails.", fails, "rows"))
    told = call(olga, "POST", "schedule/purge_spent/run").document
    assert (told["state"], told["problem"], told["result"]) == ("failed", "OperationalError: no room, by choice", None)
    with pytest.raises(OperationalError):
        schedule.run("purge_spent")
    monkeypatch.setitem(schedule.TASKS, "purge_spent", schedule.Task(60, "Works.", lambda: 7, "rows"))
    told = call(olga, "POST", "schedule/purge_spent/run").document
    assert (told["state"], told["problem"], told["result"]) == ("done", "", 7)


def test_what_is_cut_off_is_said_so_and_finished_by_the_next_run(olga, database, monkeypatch):
    facts.execute(
        database, "INSERT INTO surety.audit (at, who, what) SELECT now() - interval '9 years', 'olga', 'old' FROM generate_series(1, 25)"
    )
    monkeypatch.setattr(scheduled, "BATCH_ROWS", 10)
    batches = []

    class Killed(BaseException):
        """As a process that is killed: nothing behind it runs."""

    def dies_after_two(*arguments, **more):
        batches.append(arguments)
        if len(batches) == 2:
            raise Killed

    monkeypatch.setattr(scheduled, "record", dies_after_two)
    with pytest.raises(Killed):
        schedule.run("forget")
    monkeypatch.undo()
    left = "SELECT count(*) FROM surety.audit WHERE what = 'old'"
    assert facts.rows(database, left) == [(15,)], "the batch in which it died is undone"
    TaskRun.objects.filter(name="forget").update(ended_at=None, started_at=timezone.now() - timedelta(hours=1))
    assert listed(olga)["forget"]["state"] == "cut off"
    told = call(olga, "POST", "schedule/forget/run").document
    assert facts.rows(database, left) == [(0,)]
    assert (told["state"], told["result"]) == ("done", 15)


def test_a_task_that_is_no_more_goes_from_the_schedule(olga):
    interval = PeriodicTask.objects.get(name="reap").interval
    PeriodicTask.objects.create(name="former", task="console.former", interval=interval)
    PeriodicTask.objects.create(name="of somebody else", task="theirs.work", interval=interval)
    schedule.establish()
    assert not PeriodicTask.objects.filter(name="former").exists()
    assert PeriodicTask.objects.filter(name="of somebody else").delete()[0] == 1
