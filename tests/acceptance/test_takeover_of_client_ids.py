"""A client whose network failed comes back under its client identifier within seconds; a living client keeps its own, and nobody else gets it."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator

import pytest

from broker_core.scram import make_verifier
from tests.support.clients import Connection, ConnectionLost, ErrorReceived
from tests.support.namespaces import Cable, NotAllowed, inside
from tests.support.service import Service

TAKEOVER_SECONDS_MAX = 5
PASSWORD = "of the acceptance tests"
TOPIC = "/topic/takeover"


@pytest.fixture
def cable() -> Iterator[Cable]:
    try:
        with Cable() as joined:
            yield joined
    except NotAllowed as error:
        pytest.skip(f"no network of our own whose cable could be pulled: {error}")


@pytest.fixture
def service(cable: Cable) -> Iterator[Service]:
    """Every socket of it, loopback too, is in a namespace where nobody else is."""
    with inside(cable.broker), Service(environment={"SURETY_BIND": "0.0.0.0"}) as running:
        with running.database() as database:
            for account in ("anna", "boris"):
                verifier = make_verifier(PASSWORD, secrets.token_bytes(16))
                database.execute(
                    "INSERT INTO surety.account (name, salt, iterations, stored_key, server_key) VALUES (%s, %s, %s, %s, %s)",
                    [account, verifier.salt, verifier.iterations, verifier.stored_key, verifier.server_key],
                )
        yield running


def connect(service: Service, host: str, account: str = "anna") -> Connection:
    return Connection(service.stomp_port, host=host, login=account, passcode=PASSWORD, headers={"client-id": "till 7"})


def listen(connection: Connection) -> None:
    connection.confirmed("SUBSCRIBE", {"id": "1", "destination": TOPIC, "ack": "client-individual", "durable-subscription-name": "d"})


def publish(service: Service, body: bytes) -> None:
    with Connection(service.stomp_port) as publisher:
        publisher.confirmed("SEND", {"destination": TOPIC, "persistent": "true"}, body)


def refusal(service: Service, host: str, account: str = "anna") -> str:
    with pytest.raises(ErrorReceived) as refused:
        connect(service, host, account)
    return refused.value.frame.headers["message"]


def is_hung_up(connection: Connection) -> bool:
    """The client does not know yet: what it says now is answered by a reset."""
    with contextlib.suppress(ConnectionLost):
        for _ in range(10):
            connection.command("SEND", {"destination": TOPIC}, b"a voice from the past")
            connection.receive(1)
        return False
    return True


def test_only_a_dead_connection_loses_its_client_identifier_and_only_to_its_account(cable: Cable, service: Service) -> None:
    with inside(cable.client):
        first = connect(service, Cable.near)
        listen(first)
        assert "in use by another connection" in refusal(service, Cable.near)
    publish(service, b"to the first")
    assert first.expect("MESSAGE").body == b"to the first"
    cable.pull()
    publish(service, b"into the void")
    assert "in use by another account" in refusal(service, "127.0.0.1", "boris")
    began = time.monotonic()
    with connect(service, "127.0.0.1") as second:
        listen(second)
        took = time.monotonic() - began
        assert took < TAKEOVER_SECONDS_MAX
        frames = [second.expect("MESSAGE"), second.expect("MESSAGE")]
        assert [(frame.body, frame.headers.get("redelivered")) for frame in frames] == [(b"to the first", "true"), (b"into the void", "true")]
        cable.plug()
        assert is_hung_up(first)
        assert second.receive(1) is None
    first.close()
