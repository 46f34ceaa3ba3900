"""Live and ready: red for each cause alone, and green only when nothing is unknown."""

import logging
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client, override_settings

from broker_core.store.migrate import migrate
from tests.console import facts
from tests.support import postgres


def _problems(client):
    response = client.get("/health/ready")
    answer = response.json()
    assert response.status_code == (503 if answer["problems"] else 200)
    assert answer["ready"] is not bool(answer["problems"])
    return answer["problems"]


def test_no_node_has_ever_held_the_lease(stranger):
    problems = _problems(stranger)
    assert list(problems) == ["node"]
    assert problems["node"].startswith("no node holds the lease: where `manage.py run` is to run")


def test_the_holder_is_silent(stranger, database):
    facts.lease(database, heartbeat_seconds=6)
    facts.status(database)
    assert "node-1 was last heard of 6 s ago" in _problems(stranger)["node"]


def test_the_holder_gave_the_lease_up(stranger, database):
    facts.lease(database, held=False)
    facts.status(database)
    assert list(_problems(stranger)) == ["node"]


@pytest.mark.parametrize(
    "status",
    [None, {"seconds": 6}, {"node": "node-2"}, {"epoch": 6}],
    ids=["never told", "told long ago", "another node told", "in an earlier term"],
)
def test_the_holder_tells_nothing_about_itself(status, stranger, database):
    facts.lease(database)
    if status is not None:
        facts.status(database, **status)
    assert "node-1 holds the lease, but tells nothing about itself" in _problems(stranger)["node"]


@pytest.mark.parametrize(
    ("listeners", "says"),
    [
        ({}, "no listener"),
        ({"stomp": False}, "stomp is down"),
        ({"stomp": True, "stomp+tls": False}, "stomp+tls is down"),
        ({"stomp": {"up": False, "problem": "port taken"}}, r"stomp is down \(port taken\)"),
        ({"stomp": "yes"}, "stomp is down"),
    ],
)
def test_a_listener_is_down(listeners, says, stranger, database):
    facts.lease(database)
    facts.status(database, listeners=listeners)
    problems = _problems(stranger)
    assert list(problems) == ["listeners"]
    assert says.replace("\\", "") in problems["listeners"]


def test_space_is_low(stranger, database):
    facts.lease(database)
    facts.status(database, metrics={"space_low": True, "space_reason": "200 MiB are free"})
    assert _problems(stranger)["space"].startswith("producers wait for disk space: 200 MiB are free. Purge what nobody needs")


def test_nobody_knows_whether_there_is_space(stranger, database):
    facts.lease(database)
    facts.status(database, metrics={"connections": 1})
    assert "the node does not say whether the database has room" in _problems(stranger)["space"]


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_the_server_does_not_write_safely(setting, stranger, migrated, monkeypatch):
    monkeypatch.setitem(postgres.SETTINGS, setting, "off")
    careless = postgres.Server()
    careless.start()
    try:
        dsn = careless.dsn("postgres")
        migrate(dsn)
        facts.well(dsn)
        with _console_on(str(careless.sockets), "postgres"):
            problems = _problems(stranger)
    finally:
        careless.stop()
    assert list(problems) == [setting]
    assert f"{setting} = off" in problems[setting]


def test_the_database_cannot_be_asked(stranger, migrated):
    with _console_on("/nonexistent", "console"):
        problems = _problems(stranger)
        alive = stranger.get("/health/live").json()
    assert list(problems) == ["database"]
    assert "nonexistent" not in str(problems), "whoever asks learns no paths"
    assert alive == {"live": True}


@contextmanager
def _console_on(sockets, database):
    reached = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict |= {"HOST": sockets, "NAME": database}
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict |= reached


def test_ready_when_all_is_well(stranger, database):
    facts.well(database)
    response = stranger.get("/health/ready")
    assert response.status_code == 200
    assert response.json() == {"ready": True, "problems": {}, "node": "node-1", "epoch": 7}


def test_a_standby_changes_nothing(stranger, database):
    facts.well(database)
    facts.status(database, node="node-2", listeners={})
    assert _problems(stranger) == {}


def test_alive_without_a_database_and_without_a_login():
    assert Client().get("/health/live").json() == {"live": True}


def test_probes_are_asked_and_not_told(stranger):
    for path in ("/health/live", "/health/ready", "/metrics"):
        assert stranger.post(path).status_code == 405


def test_a_red_service_shows_its_reasons_on_the_page(viewer, database):
    facts.lease(database)
    facts.status(database, listeners={"stomp": False})
    assert "Stomp is down" in viewer.get("/").content.decode()


def test_not_ready_is_told_to_who_asks_and_not_to_the_log(stranger, caplog):
    """A start asks again and again until the node serves; everything else that fails is logged as ever."""
    log = logging.getLogger("django.request")
    assert _problems(stranger)
    assert stranger.post("/login", {}).status_code == 401
    for what, path, status in (("Service Unavailable", "/else", 503), ("Internal Server Error", "/health/ready", 500)):
        log.error("%s: %s", what, path, extra={"status_code": status})
    assert [record.getMessage() for record in caplog.records] == [
        "Unauthorized: /login",
        "Service Unavailable: /else",
        "Internal Server Error: /health/ready",
    ]


# -- what should not stay so --------------------------------------------------------------------------------------------------------------
def _warnings(client):
    answer = client.get("/api/v1/health").json()
    return {each["name"]: each["problem"] for each in answer["warnings"]}


def test_all_is_well(viewer, database):
    facts.well(database)
    assert _warnings(viewer) == {}


@pytest.mark.parametrize(
    ("metrics", "name", "says"),
    [
        ({"memory_level": 2}, "memory", "raise SURETY_BODY_MEMORY_OCTETS_MAX"),
        ({"event_loop_lag_seconds": 1.5}, "lag", "1.5 s late"),
        ({"foreign": [{"link": "far", "state": "retrying"}, {"link": "near", "state": "connected"}]}, "links", "(far)"),
    ],
)
def test_what_the_node_tells_of_itself_may_be_worth_a_warning_and_does_not_make_it_unready(metrics, name, says, viewer, database):
    facts.lease(database)
    facts.status(database, metrics={"space_low": False, **metrics})
    warnings = _warnings(viewer)
    assert list(warnings) == [name]
    assert says in warnings[name]
    assert viewer.get("/health/ready").status_code == 200


@pytest.mark.parametrize(
    ("days", "says"),
    [
        (29.5, "ends in 29 days (2"), (1.5, "ends in 1 day (2"), (0.5, "ends in less than a day (2"), (-2, "has ended (2"),
        (30.5, ""), (None, ""),
    ],
)  # fmt: skip
def test_a_certificate_that_ends_soon_is_named_with_its_day(days, says, viewer, database):
    facts.lease(database)
    ends = None if days is None else time.time() + days * 86_400
    facts.status(database, metrics={"space_low": False, "certificate_end_timestamp_seconds": ends})
    warned = _warnings(viewer)
    assert list(warned) == (["certificate"] if says else [])
    assert says in warned.get("certificate", "")
    told = viewer.get("/metrics").content.decode()
    assert ("\nsurety_node_certificate_end_timestamp_seconds " in told) is (ends is not None), "what nobody knows is left out"


def test_of_a_certificate_one_is_warned_as_early_as_one_likes(viewer, database):
    facts.lease(database)
    facts.status(database, metrics={"space_low": False, "certificate_end_timestamp_seconds": time.time() + 86_400 * 3})
    assert list(_warnings(viewer)) == ["certificate"]
    with override_settings(BROKER=replace(settings.BROKER, tls_warning_days=2)):
        assert _warnings(viewer) == {}


def test_tasks_that_nobody_runs_and_tasks_that_fail_are_named(viewer, database):
    facts.well(database)
    for name, seconds, problem in (("expire", 61, ""), ("reap", 0, "it broke")):
        values = [name, seconds, problem]
        facts.execute(database, "INSERT INTO console_taskrun VALUES (%s, 'scheduler', now() - make_interval(secs => %s), now(), 1, 1, %s)", values)
    warnings = _warnings(viewer)
    assert "(expire)" in warnings["schedule"]
    assert "the last run of reap failed" in warnings["tasks"]


def test_branches_that_nobody_ends_are_named(viewer, database):
    facts.well(database)
    facts.execute(database, "INSERT INTO surety.prepared VALUES (0, 1, '1:aa:bb', 'guest', 4, 2, 1, 10, 1000, NULL)")
    assert "prepared branches wait for their outcome: 1, the oldest" in _warnings(viewer)["in_doubt"]
