"""A second node takes over within 5 s when the first is killed; a node that was only stopped does not speak when it wakes up."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from tests.support.clients import Connection, ConnectionLost, reconnect
from tests.support.service import Service, await_true

TAKEOVER_SECONDS_MAX = 5.0
STARTED_SECONDS_MAX = 60
STALE_SECONDS_MAX = 10
"""A stopped holder of the lease is given up when its heartbeat is 3 s old (R11); then the standby recovers."""
QUEUE = "/queue/standby"
BACKLOG = 2_000


def fill(port: int) -> None:
    with Connection(port) as connection:
        for number in range(BACKLOG):
            connection.send(QUEUE, b"%d" % number, {"receipt": str(number)})
        for _ in range(BACKLOG):
            connection.expect("RECEIPT")


def stands_by(service: Service) -> bool:
    """Two nodes tell operators about themselves; one holds the lease."""
    with service.database() as connection:
        row = connection.execute("SELECT count(*) FROM surety.node_status WHERE at > clock_timestamp() - interval '5 s'").fetchone()
    return row == (2,)


def seconds_to_confirm(port: int, began: float) -> float:
    """From `began` until a new connection to `port` got a persistent message confirmed."""
    while True:
        with contextlib.suppress(ConnectionLost), reconnect(port, STARTED_SECONDS_MAX) as connection:
            connection.confirmed("SEND", {"destination": QUEUE, "persistent": "true"}, b"%d" % BACKLOG)
            return time.monotonic() - began


def find_all(port: int) -> None:
    with Connection(port) as connection:
        connection.subscribe(QUEUE, ack="auto", prefetch=1_000)
        assert sorted(int(frame.body) for frame in connection.receive_all(quiet=2)) == list(range(BACKLOG + 1))


def test_the_standby_takes_over_within_five_seconds_of_a_kill() -> None:
    """The supervisor is held still, so that it is the standby and not a restart that takes over."""
    with Service() as service, service.standby() as standby:
        fill(service.stomp_port)
        await_true(lambda: stands_by(service), STARTED_SECONDS_MAX, "the second node does not stand by")
        assert service.process is not None
        service.process.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            service.kill("node")
            took = seconds_to_confirm(standby.stomp_port, began)
        finally:
            service.process.send_signal(signal.SIGCONT)
        print(f"takeover in {took:.2f} s")
        assert took < TAKEOVER_SECONDS_MAX
        find_all(standby.stomp_port)


def test_a_stopped_node_is_replaced_and_falls_silent() -> None:
    """Its old clients hear nothing more when it wakes up: another has the lease."""
    with Service() as service, service.standby() as standby:
        fill(service.stomp_port)
        await_true(lambda: stands_by(service), STARTED_SECONDS_MAX, "the second node does not stand by")
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
