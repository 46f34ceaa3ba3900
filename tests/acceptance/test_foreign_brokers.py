"""Links to brokers that nobody here wrote, both ways: persistence, headers and bodies as they arrive there, and what a restart of theirs leaves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from tests.acceptance.foreign import LINK, await_link, define_link, links
from tests.acceptance.operators import ask
from tests.bench import peer
from tests.bench.peer import RabbitMQ
from tests.support import activemq
from tests.support.activemq import ActiveMQ
from tests.support.clients import Connection, Frame, reconnect
from tests.support.service import Service, await_true

pytestmark = pytest.mark.slow
LARGE = (2 << 20) + 7
SECONDS_MAX = 60


@pytest.fixture(scope="module", params=["RabbitMQ", "ActiveMQ"])
def far(request: pytest.FixtureRequest) -> Iterator[RabbitMQ | ActiveMQ]:
    if request.param == "RabbitMQ":
        if not peer.is_installed():
            pytest.skip("RabbitMQ is not installed: apt-get install rabbitmq-server to see links to it")
        with RabbitMQ() as running:
            yield running
    else:
        if not activemq.is_installed():
            pytest.skip(activemq.NOT_INSTALLED)
        with ActiveMQ() as running:
            yield running


@pytest.fixture(scope="module")
def near(far: RabbitMQ | ActiveMQ) -> Iterator[Service]:
    with Service() as service:
        define_link(service, port=far.stomp_port, kind=far.kind)
        yield service


def take(port: int, queue: str, count: int) -> list[Frame]:
    """So many, acknowledged."""
    with reconnect(port) as connection:
        connection.command("SUBSCRIBE", {"id": "0", "destination": f"/queue/{queue}", "ack": "client-individual"})
        frames = []
        for _ in range(count):
            frame = connection.receive(SECONDS_MAX)
            assert frame is not None and frame.command == "MESSAGE", f"{len(frames)} of {count} came"
            connection.confirmed("ACK", {"id": frame.headers["ack"]})
            frames.append(frame)
        return frames


def send(port: int, queue: str, body: bytes, headers: dict[str, str]) -> None:
    with reconnect(port) as connection:
        connection.confirmed("SEND", {"destination": f"/queue/{queue}", **headers}, body, SECONDS_MAX)


def test_what_is_forwarded_is_persistent_there_if_it_is_here_and_says_what_it_said(near: Service, far: RabbitMQ | ActiveMQ) -> None:
    ask(near, "create", "queue/told", foreign_link=LINK, foreign_address="/queue/there.told")
    application = {"correlation-id": "c-1", "priority": "7", "type": "order", "reply-to": "/queue/answers", "colour": "r\ned: \\"}
    for level in ("assured", "reliable", "reliable-np", "express", "best-effort"):
        send(near.stomp_port, "told", b"\0\xff" + level.encode(), application | {"reliability": level})
    frames = {frame.body: frame.headers for frame in take(far.stomp_port, "there.told", 5)}
    persistent = {body[2:].decode() for body, headers in frames.items() if headers.get("persistent") == "true"}
    assert persistent == {"assured", "reliable"} and len(frames) == 5
    for headers in frames.values():
        assert application.items() <= headers.items()
        assert headers["_AMQ_DUPL_ID"] == headers["foreign-message-id"]


def test_a_large_body_arrives_octet_for_octet(near: Service, far: RabbitMQ | ActiveMQ) -> None:
    ask(near, "create", "queue/large", foreign_link=LINK)
    body = bytes(number * number % 251 for number in range(LARGE))
    send(near.stomp_port, "large", body, {"persistent": "true"})
    (frame,) = take(far.stomp_port, "large", 1)
    assert hashlib.sha256(frame.body).digest() == hashlib.sha256(body).digest()


def test_their_restart_keeps_what_is_persistent_and_the_link_comes_back(near: Service, far: RabbitMQ | ActiveMQ) -> None:
    ask(near, "create", "queue/kept", foreign_link=LINK)
    for number in range(20):
        send(near.stomp_port, "kept", b"%d" % number, {"persistent": "true" if number % 2 else "false"})
    await_true(lambda: near_depth(near, "kept") == 0, SECONDS_MAX, "the messages do not leave")
    far.restart()
    await_true(lambda: links(near).get((LINK, "out"), {}).get("retries", 0) > 0, SECONDS_MAX, "the link did not notice")
    await_link(near, "connected", seconds=SECONDS_MAX)
    send(near.stomp_port, "kept", b"afterwards", {"persistent": "true"})
    assert [frame.body for frame in take(far.stomp_port, "kept", 11)] == [*(b"%d" % number for number in range(1, 20, 2)), b"afterwards"]


def near_depth(near: Service, queue: str) -> int:
    with near.database() as connection:
        row = connection.execute("SELECT depth FROM surety.destination_statistics WHERE address = %s", [f"queue/{queue}"]).fetchone()
    return row[0] if row is not None else -1


def test_what_expires_there_expires_at_the_instant_that_was_said_here(near: Service, far: RabbitMQ | ActiveMQ) -> None:
    ask(near, "create", "queue/brief", foreign_link=LINK)
    with near.database() as connection:
        (now,) = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8").fetchone()  # type: ignore[misc]
    send(near.stomp_port, "brief", b"soon over", {"persistent": "true", "expires": str(now + 3000)})
    send(near.stomp_port, "brief", b"for long", {"persistent": "true", "expires": str(now + 3_600_000)})
    await_true(lambda: near_depth(near, "brief") == 0, SECONDS_MAX, "the messages do not leave")
    with pytest.raises(AssertionError, match="never"):
        await_true(lambda: False, 4, "never")
    (frame,) = take(far.stomp_port, "brief", 1)
    assert frame.body == b"for long"


def test_what_is_taken_from_there_has_the_level_that_the_link_maps_and_is_gone_there(near: Service, far: RabbitMQ | ActiveMQ) -> None:
    with Connection(far.stomp_port) as connection:  # their queues come into being when somebody subscribes, or sends
        for number in range(10):
            headers = {"destination": "/queue/theirs", "number": str(number), "correlation-id": f"c{number}"} | ({"persistent": "true"} if number % 2 else {})
            connection.confirmed("SEND", headers, b"\0%d" % number, SECONDS_MAX)
        connection.confirmed("SEND", {"destination": "/queue/theirs", "persistent": "true"}, bytes(LARGE), SECONDS_MAX)
    define_link(near, port=far.stomp_port, kind=far.kind, takes={"/queue/theirs": "queue/ours"}, nonpersistent_reliability="reliable-np")
    try:
        frames = take(near.stomp_port, "ours", 11)
        small = {int(frame.headers["number"]): frame for frame in frames if len(frame.body) < LARGE}
        assert sorted(small) == list(range(10)) and any(frame.body == bytes(LARGE) for frame in frames)
        for number, frame in small.items():
            assert frame.headers["reliability"] == ("assured" if number % 2 else "reliable-np")
            assert (frame.body, frame.headers["correlation-id"]) == (b"\0%d" % number, f"c{number}")
        await_true(lambda: links(near).get((LINK, "in"), {}).get("messages") == 11, SECONDS_MAX, "eleven messages were not confirmed")
    finally:
        define_link(near, port=far.stomp_port, kind=far.kind)
    await_true(lambda: (LINK, "in") not in links(near), 10, "the link takes on")
    with Connection(far.stomp_port) as connection:
        connection.command("SUBSCRIBE", {"id": "0", "destination": "/queue/theirs", "ack": "client-individual"})
        assert connection.receive(2) is None
