"""`/metrics`: who may read it, that it parses, that types and units are right, and that what is unknown is left out."""

import math
import re

import pytest
from django.test import override_settings
from prometheus_client.parser import text_string_to_metric_families

from broker_core.control import CAUSES, WAITED_MS
from tests.console import facts

COUNTERS = {"depth": 10, "octets": 1000, "consumers": 2, "unsettled": 3, "accepted": 100, "settled": 90, "scheduled": 4, "oldest_at": 1}
_SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')
_LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')


def _parse(text):
    """{(name, labels): value} and {name: type}; fails on whatever is not the text format, for Prometheus' own parser as well."""
    read = {family.name: family for family in text_string_to_metric_families(text)}
    assert all(family.documentation and family.type != "unknown" for family in read.values())
    samples, types, helps = {}, {}, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helps.add(line.split(" ", 3)[2])
            assert line.split(" ", 3)[3]
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"{name} twice"
            types[name] = kind
        elif not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            assert match, line
            key = match[1], tuple((name, value) for name, value in _LABEL.findall(match[2] or ""))
            assert key not in samples
            samples[key] = float(match[3])
    assert helps == set(types)
    for name, _ in samples:
        family = name if name in types else re.sub("_(bucket|sum|count)$", "", name)
        assert family in types, name
        assert types[family] != "counter" or family.endswith("_total")
        assert types[family] != "gauge" or not family.endswith("_total")
    return samples, types


def _value(samples, name, **labels):
    return samples[name, tuple(labels.items())]


# -- who ----------------------------------------------------------------------------------------------------------------------------
def test_a_stranger_from_elsewhere_reads_nothing(stranger):
    assert stranger.get("/metrics", REMOTE_ADDR="192.0.2.1").status_code == 403
    assert stranger.get("/metrics", REMOTE_ADDR="").status_code == 403


def test_without_a_token_none_is_right(stranger):
    assert stranger.get("/metrics", REMOTE_ADDR="192.0.2.1", headers={"Authorization": "Bearer "}).status_code == 403


@override_settings(METRICS_TOKEN="a token")
@pytest.mark.parametrize(("sent", "status"), [("Bearer a token", 200), ("bearer a token", 200), ("Bearer another", 403), ("Basic a token", 403), ("", 403)])
def test_the_token_opens_it_from_anywhere(sent, status, stranger):
    assert stranger.get("/metrics", REMOTE_ADDR="192.0.2.1", headers={"Authorization": sent}).status_code == status


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_needs_no_token(address, stranger):
    response = stranger.get("/metrics", REMOTE_ADDR=address)
    assert response.status_code == 200
    assert response["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"


# -- what ---------------------------------------------------------------------------------------------------------------------------
def test_without_a_node_counters_are_left_out_and_not_0(stranger, database):
    facts.destination(database, 1, "queue/orders", **COUNTERS)
    samples, _ = _parse(stranger.get("/metrics?destinations=1").content.decode())
    assert _value(samples, "surety_ready") == 0
    assert _value(samples, "surety_node_alive") == 0
    assert not [name for name, _ in samples if re.search("message|destination|consumers|sends|time_in_queue", name)]


def test_a_destination_not_told_of_under_this_lease_is_left_out(stranger, database):
    facts.lease(database, acquired_seconds=-60)
    facts.status(database)
    facts.destination(database, 1, "queue/orders", **COUNTERS)
    samples, _ = _parse(stranger.get("/metrics?destinations=1").content.decode())
    assert ("surety_destination_messages", (("destination", "queue/orders"),)) not in samples


def test_sums_over_destinations(stranger, database):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", **COUNTERS)
    facts.destination(database, 2, "queue/mail", state=1, **COUNTERS)
    facts.destination(database, 3, "queue/gone", destroyed=True, **COUNTERS)
    samples, types = _parse(stranger.get("/metrics").content.decode())
    assert [_value(samples, f"surety_{name}") for name in ("messages", "message_bytes", "messages_unsettled", "consumers")] == [20, 2000, 6, 4]
    assert _value(samples, "surety_messages_scheduled") == 8
    assert _value(samples, "surety_destinations") == 2
    assert _value(samples, "surety_destinations_paused") == 1
    assert _value(samples, "surety_messages_accepted_total") == 300, "what a destroyed destination counted stays counted"
    assert _value(samples, "surety_oldest_message_age_seconds") > 1_000_000
    assert types["surety_messages"] == "gauge"
    assert types["surety_messages_accepted_total"] == "counter"
    assert not [labels for _, labels in samples if any(name == "destination" for name, _ in labels)]


def test_each_destination_by_pages_with_names_quoted(stranger, database):
    facts.well(database)
    facts.destination(database, 1, 'queue/a"b\\c', **COUNTERS)
    facts.destination(database, 2, "queue/orders", **COUNTERS)
    first = stranger.get("/metrics?destinations=1&limit=1").content.decode()
    samples, _ = _parse(first)
    assert _value(samples, "surety_destination_messages", destination='queue/a\\"b\\\\c') == 10
    after = first.splitlines()[-1].removeprefix("# next: after=")
    samples, _ = _parse(stranger.get("/metrics", {"destinations": "1", "after": after}).content.decode())
    assert _value(samples, "surety_destination_messages_settled_total", destination="queue/orders") == 90
    assert ("surety_destination_messages", (("destination", 'queue/a\\"b\\\\c'),)) not in samples


def test_the_nodes_own_metrics_have_their_types(stranger, database):
    facts.lease(database)
    told = {
        "space_low": False, "connections": 5, "commits_total": 12, "space_free_octets": 1 << 30, "event_loop_lag_seconds": 0.25,
        "space_reason": "", "Bad Name": 1, "nothing": None,
        "commit_seconds_bounds": [0.001, 0.01], "commit_seconds_buckets": [3, 4, 5], "commit_seconds_sum": 0.5,
    }  # fmt: skip
    facts.status(database, metrics=told, listeners={"stomp": True, "stomp+tls": False})
    samples, types = _parse(stranger.get("/metrics").content.decode())
    assert _value(samples, "surety_node_connections") == 5
    assert types["surety_node_commits_total"] == "counter"
    assert _value(samples, "surety_node_space_free_bytes") == 1 << 30
    assert _value(samples, "surety_node_space_low") == 0
    assert types["surety_node_commit_seconds"] == "histogram"
    buckets = [_value(samples, "surety_node_commit_seconds_bucket", le=bound) for bound in ("0.001", "0.01", "+Inf")]
    assert buckets == [3, 7, 12]
    assert _value(samples, "surety_node_commit_seconds_count") == 12
    assert [_value(samples, "surety_listener_up", listener=name) for name in ("stomp", "stomp+tls")] == [1, 0]
    assert not [name for name, _ in samples if "reason" in name or "nothing" in name or "Bad" in name]
    assert all(math.isfinite(value) for value in samples.values())


# -- how long, why, how far back --------------------------------------------------------------------------------------------------------
def test_how_long_messages_waited_and_why_they_died_is_told_of_each_destination(stranger, database):
    facts.well(database)
    waited = [0] * len(WAITED_MS) + [2, 200_000_000]
    waited[3] = 40
    died = [3, 0, 0, 0, 0, 1]
    facts.destination(database, 1, "queue/orders", **COUNTERS, waiting=7, oldest_unsettled_at=1, waited=waited, died=died)
    facts.destination(database, 2, "queue/quiet", depth=1, waiting=None)
    samples, types = _parse(stranger.get("/metrics?destinations=1").content.decode())
    name = "surety_destination_time_in_queue_seconds"
    assert types[name] == "histogram"
    assert [_value(samples, f"{name}_bucket", destination="queue/orders", le=le) for le in ("0.01", "0.05", "86400.0", "+Inf")] == [0, 40, 40, 42]
    assert _value(samples, f"{name}_sum", destination="queue/orders") == 200_000
    assert _value(samples, "surety_destination_messages_died_total", destination="queue/orders", reason="expired") == 3
    assert _value(samples, "surety_destination_sends_blocked", destination="queue/orders") == 7
    assert _value(samples, "surety_destination_oldest_unsettled_age_seconds", destination="queue/orders") > 1_000_000
    quiet = {name for name, labels in samples if ("destination", "queue/quiet") in labels}
    assert "surety_destination_messages" in quiet
    assert not [name for name in quiet if re.search("time_in_queue|died|sends_blocked|unsettled_age", name)], "what is not known is left out"
    assert _value(samples, "surety_oldest_unsettled_age_seconds") > 1_000_000
    assert _value(samples, "surety_sends_blocked") == 7


def test_the_node_tells_how_long_messages_waited_and_why_they_died_of_all(stranger, database):
    facts.lease(database)
    told = {
        "space_low": False, "waited_seconds_bounds": [0.5], "waited_seconds_buckets": [4, 1], "waited_seconds_sum": 9.5, "producers_blocked": 2,
        "died": dict.fromkeys(CAUSES, 0) | {"rejected": 6}, "oldest_unsettled_seconds": None,
    }  # fmt: skip
    facts.status(database, metrics=told)
    samples, types = _parse(stranger.get("/metrics").content.decode())
    assert types["surety_time_in_queue_seconds"] == "histogram"
    assert _value(samples, "surety_time_in_queue_seconds_bucket", le="0.5") == 4
    assert _value(samples, "surety_messages_died_total", reason="rejected") == 6
    assert _value(samples, "surety_messages_died_total", reason="expired") == 0, "known to be none"
    assert _value(samples, "surety_node_producers_blocked") == 2
    assert not [name for name, _ in samples if "unsettled_seconds" in name]


def test_the_database_says_how_far_back_its_oldest_snapshot_is(stranger, database):
    facts.one_of_each(database)
    samples, _ = _parse(stranger.get("/metrics").content.decode())
    assert _value(samples, "surety_database_dead_tuples") >= 0
    assert _value(samples, "surety_database_xmin_horizon_age_transactions") >= 0
    assert _value(samples, "surety_branches_in_doubt") == 1
    assert _value(samples, "surety_branches_in_doubt_oldest_age_seconds") > 1_000_000
    assert [_value(samples, "surety_operations", state=state) for state in ("waiting", "running")] == [0, 1]
