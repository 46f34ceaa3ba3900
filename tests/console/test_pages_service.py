"""Pages of what the service does: operations on messages, tasks of the schedule."""

import pytest
from django.test import override_settings
from django_celery_beat.models import PeriodicTask

from console.services import schedule
from tests.console import facts

OPERATION = """INSERT INTO surety.operation (shard, operation, verb, address, arguments, requested_by, state, looked_at, done, skipped, failed, total, error,
                                           place, started_at, ended_at)
               VALUES (0, {number}, '{verb}', '{address}', '{arguments}', 'olga', '{state}', 9, 7, 1, 1, 100, '{error}', '[]', 1000, {ended})"""


def _operation(database, number, **told):
    usual = {"verb": "move", "address": "queue/orders", "arguments": '{"destination": "queue/b"}', "state": "running", "error": "", "ended": "NULL"}
    facts.execute(database, OPERATION.format(number=number, **{**usual, **told}))


def _page(client, path, status=200):
    response = client.get(path)
    assert response.status_code == status, response.content
    return response.content.decode()


def test_there_is_no_operation_yet(operator):
    assert "No operation yet" in _page(operator, "/operations")
    assert "Nothing is in progress" in _page(operator, "/operations?open=1")
    _page(operator, "/operations/5", 404)


def test_operations_show_how_far_they_are(database, operator):
    _operation(database, 1)
    _operation(database, 2, verb="delete", arguments='{"filter": {"reason": "EXPIRED"}}', state="failed", error="no room in queue/b", ended="2000")
    listed = _page(operator, "/operations")
    assert listed.index("Delete") < listed.index("Move")
    assert 'max="100" value="7"' in listed
    assert "Delete" not in _page(operator, "/operations?open=1")
    shown = _page(operator, "/operations/2")
    assert "No room in queue/b" in shown
    assert "EXPIRED" in shown
    assert "Cancel" not in shown


def test_a_viewer_is_not_offered_to_cancel(database, viewer):
    _operation(database, 1)
    assert "Cancel" not in _page(viewer, "/operations/1")
    assert viewer.post("/operations/1/cancel").status_code == 403


@override_settings(CONTROL_WAIT_SECONDS=0)
def test_cancelling_is_a_request_to_the_node(database, operator):
    _operation(database, 1)
    assert "7 messages" in _page(operator, "/operations/1/cancel")
    assert "no node has answered" in operator.post("/operations/1/cancel", follow=True).content.decode()
    assert facts.rows(database, "SELECT verb, arguments FROM surety.control_request") == [("cancel", {"operation": 1})]


@pytest.fixture
def planned(database):
    schedule.establish()


def test_tasks_are_listed_with_what_came_of_them(planned, operator):
    schedule.run("forget")
    listed = _page(operator, "/tasks")
    assert "Old entries of the audit" in listed
    assert "rows 0" in listed
    assert "never" in listed


@pytest.mark.parametrize("seconds", ["", "soon", "4", "9" * 30])
def test_how_often_must_be_a_number_within_its_bounds(seconds, planned, operator):
    response = operator.post("/tasks/expire", {"seconds": seconds, "enabled": "on"})
    assert response.status_code == 400
    assert PeriodicTask.objects.get(name="expire").interval.every == 10


def test_an_administrator_changes_how_often_switches_off_and_runs_now(planned, operator):
    operator.post("/tasks/forget", {"seconds": "7200"})
    task = PeriodicTask.objects.get(name="forget")
    assert (task.interval.every, task.enabled) == (7200, False)
    schedule.update(_olga(), "forget", seconds=3600, enabled=True)
    assert "forget has run" in operator.post("/tasks/forget/run", follow=True).content.decode()
    _page(operator, "/tasks/nothing", 404)


def test_a_viewer_changes_nothing(planned, viewer):
    assert "Change or run" not in _page(viewer, "/tasks")
    assert viewer.post("/tasks/forget", {"seconds": "7200"}).status_code == 403
    assert viewer.post("/tasks/forget/run").status_code == 403


def _olga():
    from django.contrib.auth.models import User

    from console.services.audit import Actor

    return Actor(User.objects.get(username="olga"), "192.0.2.1")
