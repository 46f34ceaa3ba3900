"""Pages of what the data pipeline has found out."""

import re
from html import unescape

import pytest

from tests.console import facts
from tests.console.api import person


def _page(client, path, status=200):
    response = client.get(f"/{path}")
    assert response.status_code == status, response.content
    return response.content.decode()


@pytest.fixture
def found(database):
    facts.destination(database, 1, "queue/orders")
    facts.one_of_each(database)
    facts.execute(
        database,
        """INSERT INTO surety.pipeline_rollup
           VALUES (0, 'hour', now() - interval '3 hours', 1, 0, '{"accepted": 40}'), (0, 'hour', now() - interval '3 hours', 1, 1, '{"accepted": 30}')""",
    )
    return database


def test_before_the_first_run_nothing_is_known(operator):
    shown = _page(operator, "reports")
    assert "It has never run" in shown
    assert "Nothing was audited yet" in shown
    assert "not enough is known yet" in shown


def test_charts_audits_and_runs_are_shown_and_lead_on(found, operator):
    shown = _page(operator, "reports?span=week")
    assert "accepted 40" in shown
    assert "acknowledged 30" in shown
    assert "broken" in shown
    assert "accepted 40" in _page(operator, "reports?span=week&destination=1")
    number = facts.rows(found, "SELECT audit FROM surety.pipeline_audit")[0][0]
    audit = _page(operator, f"reports/audits/{number}")
    assert "its row is gone" in audit
    assert "acknowledged" in audit
    _page(operator, f"reports/audits/{number + 1}", 404)
    _page(operator, "reports?destination=99", 404)


def test_who_sees_some_destinations_only_sees_what_became_of_theirs(found, viewer):
    from django.test import Client

    client = Client()
    client.force_login(person("rita", role="restricted"))
    assert client.get("/reports?destination=1").status_code == 404
    shown = _page(client, "reports")
    assert "Proof of delivery" not in shown
    number = facts.rows(found, "SELECT audit FROM surety.pipeline_audit")[0][0]
    assert client.get(f"/reports/audits/{number}").status_code == 403
    assert "its row is gone" in _page(viewer, f"reports/audits/{number}")


# -- replays ------------------------------------------------------------------------------------------------------------------------------
ASKED = {"destination": "/queue/orders", "into": "queue/again", "from": "2026-11-22T10:00", "selector": "a = 1", "identifiers": "ID:a-1\n ID:a-2", "rate": "5"}


def test_messages_of_the_archive_are_sent_again_and_seen_to_be(found, operator, replays_begun):
    assert 'value="1000"' in _page(operator, "reports/replays/new")
    where = operator.post("/reports/replays/new", ASKED)["Location"]
    number = int(where.rpartition("/")[2])
    assert replays_begun == [number]
    shown = _page(operator, where[1:])
    for text in ("queue/orders", "queue/again", "2026-11-22 10:00:00", "a = 1", "2 named", "not looked yet"):
        assert text in shown, text
    facts.execute(found, f"UPDATE surety.pipeline_replay SET state = 'failed', sent = 3, total = 40, error = 'no room' WHERE replay = {number}")
    shown = _page(operator, where[1:])
    assert "No room" in shown
    again = dict(re.findall(r'type="hidden" name="([a-z]+)" value="([^"]*)"', shown))
    assert operator.post("/reports/replays/new", {name: unescape(value) for name, value in again.items()})["Location"] == where, "it goes on"
    assert where in _page(operator, "reports/replays")


def test_a_replay_is_cancelled_once(found, operator):
    where = operator.post("/reports/replays/new", ASKED)["Location"]
    assert "0 messages" in _page(operator, f"{where[1:]}/cancel")
    assert operator.post(f"{where}/cancel")["Location"] == where
    assert "cancelled" in _page(operator, where[1:])
    assert f"{where}/cancel" not in _page(operator, where[1:])
    assert "is over" in operator.post(f"{where}/cancel", follow=True).content.decode()
    assert operator.get("/reports/replays/999").status_code == 404


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rate": "many"}, "Rate must be 1 to"), ({"from": "soon"}, "is no date and time"), ({"selector": "a ="}, "expected"),
        ({"destination": "temp-queue/a"}, "queue/NAME"),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_is_said_beside_what_was_typed(change, sentence, found, operator, replays_begun):
    response = operator.post("/reports/replays/new", ASKED | change)
    assert response.status_code == 400
    assert sentence in unescape(response.content.decode())
    assert 'value="queue/again"' in response.content.decode()
    assert replays_begun == []


def test_what_bounded_a_replay_is_still_there_when_it_cannot_go_on(found, operator, replays_begun):
    again = ASKED | {"from": "2026-11-22T12:00:00.250000+02:00", "to": "2026-11-22T11:00:00+00:00", "rate": "0"}
    shown = operator.post("/reports/replays/new", again).content.decode()
    assert 'value="2026-11-22T10:00:00.250"' in shown, "a browser shows nothing of what says its time zone, and would ask for everything"
    assert 'value="2026-11-22T11:00:00"' in shown


def test_a_replay_whose_process_has_died_is_cancelled_by_nobody_else(found, operator, replays_begun):
    where = operator.post("/reports/replays/new", ASKED)["Location"]
    facts.execute(found, f"UPDATE surety.pipeline_replay SET state = 'running' WHERE replay = {where.rpartition('/')[2]}")
    operator.post(f"{where}/cancel")
    shown = _page(operator, where[1:])
    assert "cancelled" in shown
    assert "Go on" not in shown
    assert f"{where}/cancel" not in shown


def test_who_may_not_is_not_offered_a_replay_and_refused(found, operator, viewer, replays_begun):
    where = operator.post("/reports/replays/new", ASKED)["Location"]
    assert "/reports/replays/new" not in _page(viewer, "reports/replays")
    assert "/cancel" not in _page(viewer, where[1:])
    assert viewer.post(f"{where}/cancel").status_code == 403
    assert viewer.post("/reports/replays/new", ASKED).status_code == 403
    assert len(replays_begun) == 1
