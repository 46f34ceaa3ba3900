"""Alerts: what fires and what ends, and that a webhook is told of both, at least once, signed, and nothing else than what was written."""

import hashlib
import hmac
import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from console.models import Alert, AlertEvent, AlertRule
from console.selectors import alerts as selectors
from console.selectors.alert_values import METRICS
from console.services import alert_delivery, alerts, webhook
from console.services.audit import Actor
from tests.console import facts
from tests.console.api import call

HIDDEN = "T0/B0/a-secret-path"


class Receiver(ThreadingHTTPServer):
    """A webhook: what it was told, and what it answers."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Answer)
        self.told, self.status, self.headers, self.silence = [], 200, {}, threading.Event()
        self.silence.set()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/{HIDDEN}"

    def handle_error(self, request, client_address):
        """Whoever asked went away."""


class _Answer(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.told.append((self.path, dict(self.headers), body))
        self.server.silence.wait(10)
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *arguments):
        """Not to the terminal."""


@pytest.fixture
def receiver():
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.silence.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def olga(database):
    AlertRule.objects.all().delete()
    return Actor(User.objects.get(username="olga"), "192.0.2.1")


def deep(actor, **more):
    alerts.create(actor, "deep", {"metric": "depth", "pattern": "queue/>", "threshold": 5, **more})


def history():
    return [(event.alert, event.state, event.destination) for event in reversed(selectors.events()[0])]


def becomes(database, depth):
    facts.execute(database, "UPDATE surety.destination_statistics SET depth = %s WHERE destination = 1", [depth])


@pytest.fixture
def orders(database):
    facts.well(database)
    facts.destination(database, 1, "queue/orders", depth=9)
    return database


# -- what cannot be ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"metric": "weather", "threshold": 1}, "The metric is one of"),
        ({"metric": "depth", "threshold": 1}, "say of which by a pattern"),
        ({"metric": "in_doubt", "threshold": 1, "pattern": "queue/a"}, "takes no pattern"),
        ({"metric": "depth", "threshold": 1, "pattern": "a"}, "pattern"),
        ({"metric": "in_doubt", "threshold": float("nan")}, "The threshold is a number"),
        ({"metric": "in_doubt", "threshold": 1, "comparator": "="}, "> or <"),
        ({"metric": "in_doubt", "threshold": 1, "for_seconds": -1}, "for_seconds from 0"),
        ({"metric": "in_doubt", "threshold": 1, "webhook": "ftp://a.example/"}, "A webhook is a URL"),
        ({"metric": "in_doubt", "threshold": 1, "webhook": "https://u:p@a.example/"}, "no user, no password"),
        ({"metric": "in_doubt", "threshold": 1, "webhook": "https://a.example:99999/"}, "A webhook is a URL"),
        ({"metric": "in_doubt", "threshold": 1, "webhook": "https://a.example/\r\nX: y"}, "A webhook is a URL"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(fields, says, olga):
    with pytest.raises(alerts.InvalidAlert, match=says):
        alerts.create(olga, "a", fields)
    assert not AlertRule.objects.exists()


def test_nobody_else_makes_alerts_and_the_attempt_is_in_the_audit(olga, database):
    vera = Actor(User.objects.create_user("vera"))
    for attempt in (lambda: deep(vera), lambda: alerts.delete(vera, "a"), lambda: alerts.update(vera, "a", {}), lambda: alerts.test(vera, "a")):
        with pytest.raises(PermissionDenied):
            attempt()
    assert len(facts.rows(database, "SELECT FROM surety.audit WHERE who = 'vera' AND result ? 'refused'")) == 4


# -- what fires -------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_can_be_looked_at_and_what_is_unknown_begins_nothing(metric, olga, database):
    pattern = ">" if METRICS[metric].of_destinations else ""
    alerts.create(olga, "a", {"metric": metric, "pattern": pattern, "threshold": -1})
    alerts.evaluate()
    known = metric in ("not_ready", "in_doubt", "in_doubt_seconds", "xmin_horizon_age")
    assert bool(history()) is known, "without a node nothing else is known"


def test_it_fires_once_and_is_over_once(olga, orders):
    deep(olga)
    assert [alerts.evaluate() for _ in range(3)] == [1, 0, 0]
    assert [each.alert for each in selectors.firing()] == ["deep"]
    becomes(orders, 5)
    assert [alerts.evaluate() for _ in range(3)] == [1, 0, 0]
    assert history() == [("deep", "firing", "queue/orders"), ("deep", "resolved", "queue/orders")]
    assert selectors.firing() == []
    assert selectors.events()[0][1].message == "deep: the number of messages of queue/orders is 9 (threshold: > 5)."


def test_it_must_have_been_so_for_as_long_as_the_rule_says(olga, orders):
    deep(olga, for_seconds=60)
    assert alerts.evaluate() == 0
    assert (selectors.by_name("deep").firing, selectors.by_name("deep").pending) == (0, 1)
    becomes(orders, 1)
    assert alerts.evaluate() == 0
    becomes(orders, 9)
    alerts.evaluate()
    Alert.objects.update(since=timezone.now() - timedelta(seconds=61))
    assert alerts.evaluate() == 1


def test_when_the_node_is_silent_nothing_begins_and_nothing_ends(olga, orders):
    deep(olga)
    alerts.evaluate()
    facts.execute(orders, "UPDATE surety.lease SET heartbeat_at = clock_timestamp() - interval '1 hour'")
    becomes(orders, 0)
    assert alerts.evaluate() == 0
    assert len(selectors.firing()) == 1


def test_with_its_destination_an_alert_ends(olga, orders):
    deep(olga)
    alerts.evaluate()
    facts.execute(orders, "UPDATE surety.destination SET destroyed_at = clock_timestamp()")
    assert alerts.evaluate() == 1
    assert "queue/orders is gone." in selectors.events()[0][0].message


def test_a_rule_that_looks_for_something_else_begins_anew(olga, orders):
    deep(olga)
    alerts.evaluate()
    alerts.update(olga, "deep", {"threshold": 6})
    assert selectors.firing() == []
    alerts.update(olga, "deep", {"enabled": False})
    assert alerts.evaluate() == 0


def test_what_grows_is_compared_with_what_it_was_and_not_with_what_came_before_the_rule(olga, orders):
    alerts.create(olga, "deaths", {"metric": "died_5m", "pattern": "queue/>", "threshold": 10})
    for dead, events in ((1_000, 0), (1_010, 0), (1_011, 1), (1_012, 0), (5, 0)):
        facts.execute(orders, "UPDATE surety.destination_statistics SET dead_total = %s", [dead])
        assert alerts.evaluate() == events
    AlertRule.objects.update(memory=[[int(timezone.now().timestamp()) - 400, 0], [int(timezone.now().timestamp()) - 200, 5]])
    assert alerts.evaluate() == 1
    assert history()[-1] == ("deaths", "resolved", None)


def test_one_rule_names_a_hundred_destinations_and_no_more(olga, orders):
    facts.execute(
        orders,
        """INSERT INTO surety.destination (shard, destination, address, created_at, automatic, state, settings)
           SELECT 0, n, 'queue/n' || n, 0, true, 0, '{}' FROM generate_series(2, 150) n;
           INSERT INTO surety.destination_statistics (shard, destination, address, depth, octets, consumers, unsettled, accepted_total,
               settled_total, dead_total, expired_total, redelivered_total, state)
           SELECT 0, n, 'queue/n' || n, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM generate_series(2, 150) n""",
    )
    deep(olga)
    assert [alerts.evaluate() for _ in range(2)] == [100, 0]


def test_what_is_not_ready_is_said_with_its_reasons(olga, database):
    alerts.create(olga, "down", {"metric": "not_ready", "threshold": 0})
    alerts.evaluate()
    assert "no node holds the lease" in selectors.events()[0][0].message


def test_rules_at_first_are_there_and_find_nothing_on_a_broker_that_is_well(database):
    facts.lease(database)
    facts.status(database, metrics={"space_low": False, "space_free_octets": 1 << 40})
    assert [rule.name for rule in selectors.page()[0]] == sorted(
        ["node not ready", "no disk space", "disk space is running out", "messages die", "transactions in doubt", "not acknowledged", "nobody consumes"]
    )
    assert (alerts.evaluate(), Alert.objects.count()) == (0, 0)


# -- who is told ------------------------------------------------------------------------------------------------------------------------
def test_a_webhook_is_told_and_can_check_who_says_so(olga, orders, receiver):
    deep(olga, webhook=receiver.url, secret="between us")
    alerts.evaluate()
    assert alert_delivery.deliver() == 1
    ((path, headers, body),) = receiver.told
    told = json.loads(body)
    assert path == f"/{HIDDEN}"
    assert {name: told[name] for name in ("alert", "state", "destination", "metric", "value", "threshold")} == {
        "alert": "deep", "state": "firing", "destination": "queue/orders", "metric": "depth", "value": 9.0, "threshold": 5.0,
    }  # fmt: skip
    assert headers["Surety-Event"] == str(told["event"]) == str(selectors.events()[0][0].number)
    at, _, signature = headers[webhook.SIGNATURE].removeprefix("t=").partition(",v1=")
    assert signature == hmac.new(b"between us", f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    assert alert_delivery.deliver() == 0, "it knows"


def test_trouble_of_the_webhook_is_waited_out_longer_and_longer_for_a_day(olga, orders, receiver):
    deep(olga, webhook=receiver.url)
    alerts.evaluate()
    receiver.status = 500
    waits = []
    for _ in range(9):
        assert alert_delivery.deliver() == 0
        event = AlertEvent.objects.get()
        waits.append(round((event.next_at - timezone.now()).total_seconds()))
        AlertEvent.objects.update(next_at=timezone.now())
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600, 600]
    assert selectors.events(undelivered=True)[0][0].problem == "127.0.0.1 answered 500."
    AlertEvent.objects.update(at=timezone.now() - timedelta(hours=25))
    alert_delivery.deliver()
    assert (AlertEvent.objects.get().delivery, len(receiver.told)) == ("given up", 10)


def test_who_dies_while_telling_has_it_told_again(olga, orders, receiver, monkeypatch):
    deep(olga, webhook=receiver.url)
    alerts.evaluate()
    with monkeypatch.context() as dying:
        dying.setattr(alert_delivery, "_note", lambda event, problem: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            alert_delivery.deliver()
    assert alert_delivery.deliver() == 0, "somebody may be telling it"
    AlertEvent.objects.update(next_at=timezone.now())
    assert alert_delivery.deliver() == 1
    assert len(receiver.told) == 2


def test_a_redirection_is_not_followed(olga, orders, receiver):
    receiver.status, receiver.headers = 307, {"Location": f"{receiver.url}/elsewhere"}
    deep(olga, webhook=receiver.url)
    alerts.evaluate()
    assert alert_delivery.deliver() == 0
    assert len(receiver.told) == 1
    assert "redirections are not followed" in AlertEvent.objects.get().problem


def test_a_webhook_that_does_not_answer_holds_up_nobody(olga, orders, receiver, monkeypatch):
    monkeypatch.setattr(webhook, "SECONDS", 0.2)
    receiver.silence.clear()
    deep(olga, webhook=receiver.url)
    alerts.evaluate()
    assert alert_delivery.deliver() == 0
    assert "could not be told" in AlertEvent.objects.get().problem


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest/meta-data", "http://[fe80::1]/", "http://0.0.0.0/", "http://[::ffff:169.254.169.254]/"])
def test_where_clouds_keep_credentials_nobody_is_asked(url):
    with pytest.raises(webhook.Untold, match="is not asked"):
        webhook.tell(url, "", {})


def test_what_is_secret_is_said_nowhere(olga, orders, receiver, operator):
    deep(olga, webhook=receiver.url, secret="between us")
    alerts.update(olga, "deep", {"webhook": f"{receiver.url}2", "secret": "between us two"})
    event = alerts.test(olga, "deep")
    assert (event.delivery, len(receiver.told)) == ("delivered", 1)
    receiver.status = 404
    assert alerts.test(olga, "deep").delivery == "given up"
    said = [call(operator, "GET", path).getvalue().decode() for path in ("alerts", "alerts/deep", "alert-events", "definitions", "audit")]
    said.append(str(facts.rows(orders, "SELECT arguments, result FROM surety.audit")))
    assert not [text for text in said if HIDDEN in text or "between us" in text]


def test_a_deleted_alert_tells_nobody_and_its_history_stays(olga, orders, receiver):
    deep(olga, webhook=receiver.url)
    alerts.evaluate()
    alerts.delete(olga, "deep")
    assert alert_delivery.deliver() == 0
    assert history() == [("deep", "firing", "queue/orders")]
    assert receiver.told == []


def test_old_history_is_forgotten(olga, orders):
    deep(olga)
    alerts.evaluate()
    AlertEvent.objects.update(at=timezone.now() - timedelta(days=31))
    alerts.evaluate()
    assert history() == []
