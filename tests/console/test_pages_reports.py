"""Pages of what the data pipeline has found out."""

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
