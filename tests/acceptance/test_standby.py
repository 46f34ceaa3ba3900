"""A second node takes over within 5 s when the first is killed; a node that was only stopped does not speak when it wakes up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.commands import done
from tests.acceptance.operators import ask
from tests.acceptance.test_distributed import LARGE, LEVELS, prepare, recovered
from tests.acceptance.reading import read_all
from tests.support.clients import Connection, ConnectionLost, ErrorReceived, reconnect
from tests.support.service import Service, await_true

pytestmark = pytest.mark.alone

TAKEOVER_SECONDS_MAX = 5.0
STARTED_SECONDS_MAX = 60
STALE_SECONDS_MAX = 10
"""A stopped holder of the lease is given up when its heartbeat is 3 s old (R11); then the standby recovers."""
QUEUE = "/queue/standby"
BACKLOG = 2_000


@pytest.fixture
def alone(mortal: Service) -> Service:
    """It serves, and nobody stands by."""
    await_true(lambda: nodes(mortal) == 1, STARTED_SECONDS_MAX, "another node is still there")
    return mortal


def fill(port: int) -> None:
    with Connection(port) as connection:
        for number in range(BACKLOG):
            connection.send(QUEUE, b"%d" % number, {"receipt": str(number)})
        for _ in range(BACKLOG):
            connection.expect("RECEIPT")


def nodes(service: Service) -> int:
    """That tell operators about themselves, once a second; one holds the lease."""
    with service.database() as connection:
        row = connection.execute("SELECT count(*) FROM surety.node_status WHERE at > clock_timestamp() - interval '2.5 s'").fetchone()
    assert row is not None
    return row[0]


def seconds_to_confirm(port: int, began: float) -> float:
    """From `began` until a new connection to `port` got a persistent message confirmed."""
    while True:
        with contextlib.suppress(ConnectionLost), reconnect(port, STARTED_SECONDS_MAX) as connection:
            connection.confirmed("SEND", {"destination": QUEUE, "persistent": "true"}, b"%d" % BACKLOG)
            return time.monotonic() - began


def find_all(port: int) -> None:
    with Connection(port) as connection:
        assert sorted(int(frame.body) for frame in read_all(connection, QUEUE)) == list(range(BACKLOG + 1))


@contextlib.contextmanager
def nobody_restarts_it(service: Service) -> Iterator[None]:
    """The supervisor is held still, so that it is the standby and not a restart that takes over."""
    assert service.process is not None
    service.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        service.process.send_signal(signal.SIGCONT)


def test_the_standby_takes_over_within_five_seconds_of_a_kill(alone: Service) -> None:
    service = alone
    with service.standby() as standby:
        fill(service.stomp_port)
        await_true(lambda: nodes(service) == 2, STARTED_SECONDS_MAX, "the second node does not stand by")
        with nobody_restarts_it(service):
            began = time.monotonic()
            service.kill("node")
            took = seconds_to_confirm(standby.stomp_port, began)
        print(f"takeover in {took:.2f} s")
        assert took < TAKEOVER_SECONDS_MAX
        find_all(standby.stomp_port)


def test_a_prepared_branch_is_taken_over_with_all_that_it_holds_and_committed_at_the_standby(alone: Service) -> None:
    xid, taken, sent = "1.7374616e646279.00", "/queue/standby.taken", "/queue/standby.sent"
    with alone.standby() as standby:
        await_true(lambda: nodes(alone) == 2, STARTED_SECONDS_MAX, "the second node does not stand by")
        with Connection(alone.stomp_port) as client, nobody_restarts_it(alone):
            prepare(client, xid, taken, sent)
            alone.kill("node")
            with reconnect(standby.stomp_port, STARTED_SECONDS_MAX) as manager:
                assert f"{xid} prepared" in recovered(manager)
                assert [frame.body for frame in read_all(manager, taken)] == [b"1", b"2"], "what it acknowledged is reserved"
                assert read_all(manager, sent) == []
                manager.confirmed("COMMIT", {"xid": xid, "phase": "two"})
                assert sorted(frame.body for frame in read_all(manager, sent)) == sorted([*(level.encode() for level in LEVELS), LARGE])
                assert f"{xid} prepared" not in recovered(manager)


def test_a_stopped_node_is_replaced_and_falls_silent(alone: Service) -> None:
    """Its old clients hear nothing more when it wakes up: another has the lease."""
    service = alone
    with service.standby() as standby:
        fill(service.stomp_port)
        await_true(lambda: nodes(service) == 2, STARTED_SECONDS_MAX, "the second node does not stand by")
        with Connection(service.stomp_port) as old:
            old.subscribe(QUEUE, prefetch=10)
            assert len([old.expect("MESSAGE") for _ in range(10)]) == 10
            began = time.monotonic()
            pid = service.signal("node", signal.SIGSTOP)
            try:
                took = seconds_to_confirm(standby.stomp_port, began)
                assert took < STALE_SECONDS_MAX
                old.command("SEND", {"destination": QUEUE, "persistent": "true", "receipt": "too late"}, b"-1")
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            old.expect_closed(15)
        find_all(standby.stomp_port)


def test_after_a_kill_one_exclusive_consumer_leads_again_and_the_next_follows_in_order(alone: Service) -> None:
    """What was not acknowledged comes to whoever subscribes first after the failure, in order; when that one goes, to the other."""
    exclusive = {"id": "0", "destination": "/queue/exclusive", "ack": "client-individual", "exclusive": "true"}
    leader, follower = Connection(alone.stomp_port), Connection(alone.stomp_port)
    for connection in (leader, follower):
        connection.confirmed("SUBSCRIBE", exclusive)
    for number in range(20):
        leader.confirmed("SEND", {"destination": exclusive["destination"], "persistent": "true"}, b"%d" % number)
    for frame in [leader.expect("MESSAGE") for _ in range(20)][:5]:
        leader.confirmed("ACK", {"id": frame.headers["ack"]})
    alone.kill("node")
    for connection in (leader, follower):
        connection.close()
    follower, leader = (reconnect(alone.stomp_port, STARTED_SECONDS_MAX) for _ in range(2))
    for connection in (follower, leader):
        connection.confirmed("SUBSCRIBE", exclusive)
    again = [follower.expect("MESSAGE") for _ in range(15)]
    assert [(int(frame.body), frame.headers["redelivered"]) for frame in again] == [(number, "true") for number in range(5, 20)]
    follower.confirmed("ACK", {"id": again[0].headers["ack"]})
    assert leader.receive(0.2) is None
    follower.close()
    assert [int(leader.expect("MESSAGE").body) for _ in range(14)] == list(range(6, 20))
    leader.close()


def states(service: Service) -> dict[str, str]:
    """Of each node that tells of itself."""
    with service.database() as connection:
        found = connection.execute(
            "SELECT node, coalesce(about ->> 'state', role) FROM surety.node_status WHERE at > clock_timestamp() - interval '2.5 s'"
        ).fetchall()
    return dict(found)


def test_an_operator_closes_a_listener_drains_and_has_the_standby_take_over(alone: Service) -> None:
    """Nobody is let in, who holds something is waited for, the other node serves, and the first stands by. The listener stays as it was."""

    def mq(*words: str) -> Any:
        return json.loads(done(alone, "mq", "--json", "--force", *words))

    with alone.standby() as standby:
        await_true(lambda: sorted(states(alone).values()) == ["serving", "standby"], STARTED_SECONDS_MAX, "none stands by")
        first, second = sorted(states(alone), key=states(alone).__getitem__)
        epoch = mq("query", "bkr")["epoch"]
        ask(alone, "pause_listener", "", epoch=epoch, listener="amqp")
        idle, consumer = Connection(alone.stomp_port), Connection(alone.stomp_port)
        consumer.subscribe(QUEUE, prefetch=1)
        for body in (b"held", b"kept"):
            idle.confirmed("SEND", {"destination": QUEUE, "persistent": "true"}, body)
        held = consumer.expect("MESSAGE")
        assert mq("drain", "bkr", "--no-wait")["result"]["state"] == "draining"
        with pytest.raises(ErrorReceived, match="drained by an operator"):
            idle.expect("MESSAGE")
        consumer.confirmed("ACK", {"id": held.headers["ack"]})
        with pytest.raises(ErrorReceived, match="drained by an operator"):
            consumer.expect("MESSAGE")
        for connection in (idle, consumer):
            connection.close()
        await_true(lambda: states(alone)[first] == "drained", 10, "it is never drained")
        problems = {each["name"]: each["problem"] for each in mq("query", "health")["problems"]}
        assert problems == {"quiesced": f"{first} takes no new connections: it is drained", "listeners": "amqp is paused by an operator, who may resume it"}
        mq("takeover", "bkr", second)
        with reconnect(standby.stomp_port, STARTED_SECONDS_MAX) as again:
            again.subscribe(QUEUE)
            assert again.expect("MESSAGE").body == b"kept"
        await_true(lambda: states(alone) == {first: "standby", second: "serving"}, STARTED_SECONDS_MAX, "they have not changed places")
        assert ask(alone, "resume_listener", "", epoch=epoch + 1, listener="stomp")["listeners"]["amqp"]["paused"], "whichever node serves"
        ask(alone, "resume_listener", "", epoch=epoch + 1, listener="amqp")
