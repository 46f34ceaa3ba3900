"""What operators set up takes hold of clients and of operators at a service that runs: rules of access over both protocols, single sign-on, metrics, alerts."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import urlencode

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.browser import Browser
from tests.support.clients import Connection, ErrorReceived
from tests.support.oidc import Provider
from tests.support.service import Service, await_true

TAKES_HOLD_SECONDS_MAX = 3
"""It is promised within one; the machine does other things as well."""
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def administrator(service: Service) -> Browser:
    browser = Browser(service.http_port)
    browser.log_in("operator", "of-the-acceptance-tests")
    return browser


@pytest.fixture
def rule(administrator: Browser) -> Iterator[Any]:
    """Makes a rule of access; all are gone after the test."""
    made: list[int] = []

    def make(resource: str, operation: str, *, allow: bool, principal: str) -> None:
        body = {"resource": resource, "operation": operation, "allow": allow, "principal": principal}
        answer = administrator.ask("POST", "access", body)
        assert answer.status_code == 201, answer.text
        made.append(int(answer.headers["Location"].rpartition("/")[2]))

    yield make
    for number in made:
        administrator.does("DELETE", f"access/{number}")


def is_refused(service: Service, command: str, **headers: str) -> bool:
    """Whether a new connection gets ERROR for it."""
    with Connection(service.stomp_port) as connection:
        try:
            connection.confirmed(command, headers, b"x" if command == "SEND" else b"")
        except ErrorReceived as error:
            return "access denied" in error.frame.headers["message"]
    return False


def sends(service: Service, queue: str) -> bool:
    return not is_refused(service, "SEND", destination=f"/queue/{queue}")


def noted(administrator: Browser, what: str, address: str) -> dict[str, Any]:
    """The audit's only entry of it, as soon as it is there."""

    def entries() -> list[dict[str, Any]]:
        return list(administrator.ask("GET", f"audit?{urlencode({'what': what, 'address': address})}").json()["items"])

    await_true(entries, TAKES_HOLD_SECONDS_MAX, f"the audit knows of no {what} {address}")
    [entry] = entries()
    return entry


def test_a_login_of_a_client_that_is_refused_is_in_the_audit_and_so_is_the_start_of_the_node(service: Service, administrator: Browser) -> None:
    name = f"mallory.{time.time_ns()}"
    for _ in range(2):
        with pytest.raises(ErrorReceived):
            Connection(service.stomp_port, login=name, passcode="guess")
    entry = noted(administrator, "client login", name)
    assert (entry["who"], entry["origin"]) == ("a stranger", "127.0.0.1")
    assert administrator.ask("GET", "audit?what=node%20start").json()["items"]


def consumes(service: Service, queue: str, **more: str) -> bool:
    return not is_refused(service, "SUBSCRIBE", destination=f"/queue/{queue}", id="0", **more)


# -- rules of access --------------------------------------------------------------------------------------------------------------------
def test_a_rule_that_forbids_consuming_ends_who_consumes_by_either_protocol_and_the_audit_says_so_once(
    service: Service, queue: str, rule: Any, administrator: Browser
) -> None:
    from tests.acceptance import proton_client

    with Connection(service.stomp_port) as stomp, proton_client.connected(service) as amqp:
        stomp.subscribe(f"/queue/{queue}")
        assert sends(service, queue)
        receiver = amqp.create_receiver(f"queue://{queue}")
        began = time.monotonic()
        rule(f"queue/{queue}", "consume", allow=False, principal="*")
        assert stomp.expect("MESSAGE").body == b"x"
        with pytest.raises(ErrorReceived) as told:
            stomp.receive(TAKES_HOLD_SECONDS_MAX)
        assert time.monotonic() - began < TAKES_HOLD_SECONDS_MAX
        assert "access denied" in told.value.frame.headers["message"]
        with pytest.raises(proton_client.proton.utils.LinkDetached, match="unauthorized-access"):
            receiver.receive(timeout=TAKES_HOLD_SECONDS_MAX)
        with pytest.raises(proton_client.proton.utils.LinkDetached, match="unauthorized-access"):
            amqp.create_receiver(f"queue://{queue}")
        assert sends(service, queue), "what is not forbidden goes on"
    entry = noted(administrator, "client access", f"queue/{queue}")
    assert (entry["who"], entry["origin"]) == ("client guest", "127.0.0.1")
    assert entry["result"]["refused"].startswith("consume: the account may not do this there")


def test_of_rules_that_contradict_each_other_the_more_particular_one_counts(service: Service, queue: str, rule: Any) -> None:
    assert sends(service, queue)
    rule("queue/own.*", "produce", allow=False, principal="*")
    await_true(lambda: not sends(service, queue), TAKES_HOLD_SECONDS_MAX, "the rule does not hold")
    rule(f"queue/{queue}", "produce", allow=True, principal="guest")
    await_true(lambda: sends(service, queue), TAKES_HOLD_SECONDS_MAX, "the more particular resource does not count")
    rule(f"queue/{queue}", "produce", allow=False, principal="*")
    rule(f"queue/{queue}", "browse", allow=False, principal="guest")
    await_true(lambda: not consumes(service, queue, browser="true"), TAKES_HOLD_SECONDS_MAX, "the rule does not hold")
    assert sends(service, queue), "who is named counts more than everybody"
    assert consumes(service, queue), "who may not browse may consume"
    rule(f"queue/{queue}", "produce", allow=False, principal="guest")
    await_true(lambda: not sends(service, queue), TAKES_HOLD_SECONDS_MAX, "of two that contradict each other the refusal counts")


def test_who_may_not_create_uses_what_is_there(service: Service, queue: str, rule: Any) -> None:
    assert sends(service, queue)
    rule("queue/own.>", "create", allow=False, principal="guest")
    new = itertools.count()  # one that is made before the rule holds is there from then on
    await_true(lambda: not sends(service, f"{queue}.new.{next(new)}"), TAKES_HOLD_SECONDS_MAX, "the rule does not hold")
    assert sends(service, queue)
    assert consumes(service, queue)
    assert not consumes(service, f"{queue}.another")


# -- single sign-on ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("group", "role", "creates"), [("staff", "viewer", 403), ("ops", "operator", 200), ("chiefs", "administrator", 200)])
def test_who_comes_from_the_provider_may_what_his_group_may(
    service: Service, provider: Provider, queue: str, group: str, role: str, creates: int
) -> None:
    provider.claims = {"sub": f"id of {group}", "preferred_username": f"of.{group}", "groups": [group, "others"]}
    browser = Browser(service.http_port)
    assert browser.ask("GET", "whoami").status_code == 401
    back = provider.authorize(browser.get("/login/sign-on?next=/audit", follow=False).headers["Location"])
    assert browser.get(back.removeprefix(browser.root), follow=False).headers["Location"] == "/audit"
    known = browser.does("GET", "whoami")
    assert (known["name"], known["role"]) == (f"of.{group}", role)
    made = browser.ask("POST", "destinations", {"address": f"queue/{queue}.{group}"})
    assert made.status_code in (creates, creates + 1)


def test_who_is_in_no_group_that_has_a_role_stays_outside(service: Service, provider: Provider) -> None:
    provider.claims = {"sub": "nobody", "preferred_username": "nobody", "groups": ["others"]}
    browser = Browser(service.http_port)
    back = provider.authorize(browser.get("/login/sign-on", follow=False).headers["Location"])
    assert browser.get(back.removeprefix(browser.root), follow=False).status_code == 403
    assert browser.ask("GET", "whoami").status_code == 401


# -- what is watched --------------------------------------------------------------------------------------------------------------------
def metrics(service: Service, queue: str) -> dict[str, dict[str, float]]:
    """Of the queue, by name, with what tells samples of a name apart."""
    status, text = service.get(f"/metrics?destinations=1&q={queue}")
    assert status == 200
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            if labels.pop("destination", None) in (None, f"queue/{queue}"):
                found.setdefault(sample.name, {})[labels.get("le") or labels.get("reason", "")] = sample.value
    return found


def test_what_clients_do_is_in_the_metrics_and_their_traces_reach_who_consumes(service: Service, queue: str) -> None:
    with Connection(service.stomp_port) as producer, Connection(service.stomp_port) as consumer:
        consumer.subscribe(f"/queue/{queue}", ack="client-individual")
        for number in range(4):
            producer.confirmed("SEND", {"destination": f"/queue/{queue}", "persistent": "true", "traceparent": TRACE}, str(number).encode())
        frames = [consumer.expect("MESSAGE") for _ in range(4)]
        assert {frame.headers["traceparent"] for frame in frames} == {TRACE}
        for frame in frames[:2]:
            consumer.confirmed("ACK", {"id": frame.headers["ack"]})
        consumer.confirmed("NACK", {"id": frames[2].headers["ack"], "requeue": "false"})
        await_true(
            lambda: metrics(service, queue).get("surety_destination_messages_died_total", {}).get("rejected") == 1, 10, "the node does not tell of it"
        )
        await_true(lambda: metrics(service, queue).get("surety_destination_oldest_unsettled_age_seconds", {}).get("", 0) >= 1, 10, "nothing grows old")
        found = metrics(service, queue)
        assert found["surety_destination_time_in_queue_seconds_count"][""] == 2
        assert found["surety_destination_messages_unsettled"][""] == 1
        assert found["surety_database_xmin_horizon_age_transactions"][""] >= 0
        assert found["surety_node_commit_seconds_count"][""] > 0


def test_an_alert_tells_its_webhook_when_it_begins_and_when_it_ends(service: Service, queue: str, administrator: Browser) -> None:
    told: list[dict[str, Any]] = []

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            """Says nothing."""

    receiver = HTTPServer(("127.0.0.1", 0), Webhook)
    thread = threading.Thread(target=receiver.serve_forever, args=(0.02,))
    thread.start()
    try:
        url = f"http://127.0.0.1:{receiver.server_address[1]}/"
        body = {"name": queue, "metric": "depth", "pattern": f"queue/{queue}", "threshold": 2, "webhook": url}
        administrator.does("POST", "alerts", body)
        with Connection(service.stomp_port) as client:
            for _ in range(3):
                client.confirmed("SEND", {"destination": f"/queue/{queue}"}, b"x")
            await_true(lambda: _looks(administrator, told, ["firing"]), 15, "nobody told it that it fires")
            client.subscribe(f"/queue/{queue}", ack="auto")
            await_true(lambda: _looks(administrator, told, ["firing", "resolved"]), 15, "nobody told it that it is over")
        assert {each["destination"] for each in told} == {f"queue/{queue}"}
    finally:
        administrator.does("DELETE", f"alerts/{queue}")
        receiver.shutdown()
        thread.join()
        receiver.server_close()


def _looks(administrator: Browser, told: list[dict[str, Any]], expected: list[str]) -> bool:
    """The task looks by itself, too; who waits has it look now."""
    administrator.does("POST", "schedule/alerts/run")
    return [each["state"] for each in told] == expected
