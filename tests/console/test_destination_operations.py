"""What operators do with destinations: asked of the node, recorded, answered."""

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings
from django.urls import reverse

from broker_core.control import InvalidRequest
from console.services import audit, destinations
from console.services.audit import Actor
from tests.console import facts
from tests.console.conftest import OPERATOR
from tests.console.engine_node import EngineNode

SETTINGS = {
    "redelivery_max": 10, "redelivery_delay_ms": 1000, "redelivery_multiplier": 2, "redelivery_delay_max_ms": 60000, "use_dead": "on",
    "duplicate_window_ms": 0, "archive_ms": 0, "default_reliability": "none", "maximum_reliability": "assured", "reliability_override": "on",
    "max_messages": -1, "max_octets": -1, "max_message_octets": -1, "limit_behavior": "FLOW_CONTROL",
    "max_active_consumers": -1, "max_backup_consumers": 0, "consumer_flow_limit": -1,
    "max_producers": -1, "time_to_live_ms": -1, "time_to_live_max_ms": -1, "undo_ms": -1,
}  # fmt: skip


@pytest.fixture
def olga(database):
    return Actor(User.objects.get(username=OPERATOR), "192.0.2.1")


@pytest.fixture
def node(database):
    with EngineNode(database, {"queue/orders": 3}) as node:
        yield node


def _number(database, address):
    [(number,)] = facts.rows(database, f"SELECT destination FROM surety.destination WHERE address = '{address}' AND destroyed_at IS NULL")
    return number


# -- failures -----------------------------------------------------------------------------------------------------------------------
@override_settings(CONTROL_WAIT_SECONDS=0.05)
def test_without_a_node_the_request_waits_and_the_page_says_so(operator, database):
    facts.destination(database, 1, "queue/orders")
    page = operator.post(reverse("operate", args=[1, "pause"]), {"direction": "ALL"}, follow=True).content.decode()
    assert "no node has answered request 1 yet" in page
    assert facts.rows(database, "SELECT verb, answered_at FROM surety.control_request") == [("pause", None)]


def test_what_the_node_refuses_is_shown_with_its_reason(operator, node):
    page = operator.post(reverse("create"), {**SETTINGS, "name": "orders"}, follow=True).content.decode()
    assert "a destination with this name exists already (queue/orders)" in page


def test_request_and_audit_row_are_one_transaction(olga, database, monkeypatch):
    def fails(*args, **kwargs):
        raise psycopg.OperationalError("the audit cannot be written")

    monkeypatch.setattr("console.services.requests.record", fails)
    with pytest.raises(psycopg.OperationalError):
        destinations.pause(olga, "queue/orders", "ALL")
    assert facts.rows(database, "SELECT * FROM surety.control_request") == []


def test_a_malformed_request_leaves_no_trace_in_either_table(olga, database):
    with pytest.raises(InvalidRequest):
        destinations.pause(olga, "queue/orders", "UP")
    assert facts.rows(database, "SELECT * FROM surety.control_request") == []
    assert facts.rows(database, "SELECT * FROM surety.audit") == []


def test_a_request_within_a_transaction_would_never_be_answered(olga):
    from django.db import transaction

    with pytest.raises(AssertionError, match="cannot see"), transaction.atomic():
        destinations.resume(olga, "queue/orders")


def test_nobody_discards_a_number_of_messages_that_nobody_knows(operator, database):
    facts.destination(database, 1, "queue/orders")
    path = reverse("operate", args=[1, "purge"])
    page = operator.get(path).content.decode()
    assert "number of messages is unknown" in page
    assert '<button class="danger">' not in page
    for depth in ("", "many", "-1", "9" * 30):
        assert operator.post(path, {"depth": depth}).status_code == 400
    assert facts.rows(database, "SELECT * FROM surety.control_request") == []


def test_who_destroys_a_destination_sees_how_many_delayed_messages_go_with_it(operator, database):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", depth=5, scheduled=1234)
    assert "1,234 messages</strong> that are delayed" in operator.get(reverse("operate", args=[1, "destroy"])).content.decode()
    assert "1,234" not in operator.get(reverse("operate", args=[1, "purge"])).content.decode()


def test_what_is_destroyed_has_no_page_any_more(operator, database):
    facts.destination(database, 1, "queue/orders", destroyed=True)
    assert operator.get(reverse("operate", args=[1, "purge"])).status_code == 404


def test_a_direction_that_does_not_exist_is_refused(operator, database):
    facts.destination(database, 1, "queue/orders")
    response = operator.post(reverse("operate", args=[1, "pause"]), {"direction": "UP"})
    assert response.status_code == 400
    assert "one of CONSUMERS, PRODUCERS, ALL" in response.content.decode()


@pytest.mark.parametrize("name", ["", "a*b", "mq.mine", "x" * 256, "bell\x07"])
def test_a_bad_name_is_refused_and_kept_in_the_form(name, operator, database):
    response = operator.post(reverse("create"), {**SETTINGS, "name": name})
    assert response.status_code == 400
    assert "name" in response.content.decode()
    assert facts.rows(database, "SELECT * FROM surety.control_request") == []


def test_a_topic_is_made_without_what_is_for_queues(operator, node, database):
    page = operator.get(reverse("create") + "?kind=topic").content.decode()
    assert "New topic" in page
    assert "max_active_consumers" not in page
    assert "foreign_link" not in page
    queues_only = ("max_active_consumers", "max_backup_consumers", "foreign_link", "foreign_address")
    sent = {name: value for name, value in SETTINGS.items() if name not in queues_only}
    operator.post(reverse("create"), {**sent, "kind": "topic", "name": "prices", "max_messages": 7})
    [(settings,)] = facts.rows(database, "SELECT settings FROM surety.destination WHERE address = 'topic/prices'")
    assert settings["max_messages"] == 7
    number = _number(database, "topic/prices")
    assert "max_active_consumers" not in operator.get(reverse("update", args=[number])).content.decode()
    operator.post(reverse("update", args=[number]), {**sent, "max_messages": 8})
    assert facts.rows(database, "SELECT settings ->> 'max_messages' FROM surety.destination WHERE address = 'topic/prices'") == [("8",)]


def test_what_is_typed_is_checked_for_what_is_made(operator, database):
    facts.destination(database, 1, "topic/prices")

    def told(field, **given):
        return operator.post(reverse("destination_check"), given, headers={"HX-Request": "true", "HX-Trigger-Name": field}).content.decode()

    assert (told("name", name="prices"), told("name", name="prices", kind="topic")) == ("", "There is one of this name.")
    assert told("max_active_consumers", max_active_consumers="3") == ""
    assert "is for queues" in told("max_active_consumers", max_active_consumers="3", kind="topic")
    assert "queue" in told("dead_queue", dead_queue="topic/x")


def test_a_setting_out_of_bounds_is_refused_at_its_field(operator, database):
    response = operator.post(reverse("create"), {**SETTINGS, "name": "a", "redelivery_max": 10**9})
    assert response.status_code == 400
    assert "less than or equal to 10000" in response.content.decode()


def test_an_update_that_changes_nothing_is_refused(operator, node, database):
    response = operator.post(reverse("update", args=[_number(database, "queue/orders")]), SETTINGS)
    assert response.status_code == 400
    assert "at least one setting" in response.content.decode()


# -- successes ----------------------------------------------------------------------------------------------------------------------
def test_every_operation_is_done_and_recorded(olga, node, database):
    asked = [
        destinations.create(olga, "queue/new", {"redelivery_max": 3}),
        destinations.update(olga, "queue/new", {"use_dead": False}),
        destinations.pause(olga, "queue/new", "PRODUCERS"),
        destinations.resume(olga, "queue/new"),
        destinations.purge(olga, "queue/orders", 3),
        destinations.destroy(olga, "queue/new", 0),
    ]
    assert all(outcome.done for outcome in asked)
    assert asked[4].answer.result["purged"] == 3
    recorded = facts.rows(database, "SELECT who, origin, what, address, arguments, request FROM surety.audit ORDER BY entry")
    assert recorded == [
        (OPERATOR, "192.0.2.1", "create", "queue/new", {"redelivery_max": 3}, asked[0].request),
        (OPERATOR, "192.0.2.1", "update", "queue/new", {"use_dead": False}, asked[1].request),
        (OPERATOR, "192.0.2.1", "pause", "queue/new", {"direction": "PRODUCERS"}, asked[2].request),
        (OPERATOR, "192.0.2.1", "resume", "queue/new", {"direction": "ALL"}, asked[3].request),
        (OPERATOR, "192.0.2.1", "purge", "queue/orders", {"depth": 3}, asked[4].request),
        (OPERATOR, "192.0.2.1", "destroy", "queue/new", {"depth": 0}, asked[5].request),
    ]


@pytest.mark.parametrize(("direction", "state", "words"), [("PRODUCERS", 2, "producers paused"), ("CONSUMERS", 1, "consumers paused"), ("ALL", 3, "paused")])
def test_a_pause_has_a_direction(direction, state, words, operator, node, database):
    number = _number(database, "queue/orders")
    page = operator.post(reverse("operate", args=[number, "pause"]), {"direction": direction}, follow=True).content.decode()
    assert facts.rows(database, f"SELECT state FROM surety.destination WHERE destination = {number}") == [(state,)]
    assert f">{words}</span>" in page
    operator.post(reverse("operate", args=[number, "resume"]))
    assert facts.rows(database, f"SELECT state FROM surety.destination WHERE destination = {number}") == [(0,)]


def test_a_purge_names_the_number_and_tells_it_to_the_node(operator, node, database):
    path = reverse("operate", args=[_number(database, "queue/orders"), "purge"])
    page = operator.get(path).content.decode()
    assert "Purge 3 messages" in page
    assert '<input type="hidden" name="depth" value="3">' in page
    told = operator.post(path, {"depth": 3}, follow=True).content.decode()
    assert "queue/orders purged: 3 messages discarded." in told
    assert facts.rows(database, "SELECT arguments FROM surety.control_request") == [({"depth": 3},)]


def test_a_queue_is_made_with_the_settings_that_differ(operator, node, database):
    operator.post(reverse("create"), {**SETTINGS, "name": "invoices & more", "redelivery_max": 2})
    [(arguments,)] = facts.rows(database, "SELECT arguments FROM surety.control_request")
    [(settings,)] = facts.rows(database, "SELECT settings FROM surety.destination WHERE address = 'queue/invoices & more'")
    assert arguments == {"redelivery_max": 2}
    assert (settings["redelivery_max"], settings["use_dead"]) == (2, True)


def test_the_form_shows_the_settings_that_hold_and_changes_one(operator, node, database):
    number = _number(database, "queue/orders")
    assert 'name="redelivery_max" value="10"' in operator.get(reverse("update", args=[number])).content.decode()
    changed = {name: value for name, value in SETTINGS.items() if name != "use_dead"}
    operator.post(reverse("update", args=[number]), changed)
    [(settings,)] = facts.rows(database, f"SELECT settings FROM surety.destination WHERE destination = {number}")
    assert settings["use_dead"] is False


def test_the_audit_page_shows_answers_and_refusals(operator, node, database):
    actor = Actor(User.objects.get(username=OPERATOR))
    destinations.create(actor, "queue/orders")
    destinations.purge(actor, "queue/orders", 3)
    audit.record("<script>", "", "purge", "queue/orders", result={"refused": "needs the permission"})
    page = operator.get("/audit").content.decode()
    assert "a destination with this name exists already" in page
    assert "purged 3" in page
    assert "needs the permission" in page
    assert "<script>" not in page


def test_the_audit_is_paged_by_key(operator, database):
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO surety.audit (who, what) SELECT 'olga', 'step-' || n FROM generate_series(1, 250) n")
    first = operator.get("/audit").content.decode()
    assert "step-250" in first
    assert "step-150<" not in first
    assert "step-150<" in operator.get("/audit?after=151").content.decode()
    assert operator.get("/audit?after=nonsense").status_code == 200
