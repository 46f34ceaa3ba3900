"""Foreign destinations between two really running brokers, whose link is cut, stalled and outlived."""

from __future__ import annotations

import hashlib
import signal
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.acceptance import levels
from tests.acceptance.foreign import LINK, Brokers, await_link, define_link, links, two_brokers
from tests.acceptance.levels_table import Row, broken
from tests.acceptance.operators import ask
from tests.acceptance.reading import read_all
from tests.support.clients import Connection, ConnectionLost, ErrorReceived, Frame, reconnect
from tests.support.service import Service, await_true

ARRIVED_SECONDS_MAX = 60
LARGE = 3 << 20


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    with two_brokers() as both:
        yield both


@pytest.fixture
def mended(brokers: Brokers) -> Iterator[Brokers]:
    brokers.wire.mend()
    yield brokers
    brokers.wire.mend()


def send(port: int, queue: str, *bodies: bytes, **headers: str) -> None:
    """Each with a receipt that came."""
    with reconnect(port) as connection:
        for number, body in enumerate(bodies):
            connection.send(f"/queue/{queue}", body, {**headers, "receipt": str(number)})
        for _ in bodies:
            connection.expect("RECEIPT", 30)


def arrived(port: int, queue: str, count: int, seconds: float = ARRIVED_SECONDS_MAX) -> list[Frame]:
    """So many messages, acknowledged, in order. What does not come in time is missed."""
    frames: list[Frame] = []
    with reconnect(port) as connection:
        connection.subscribe(f"/queue/{queue}")
        while len(frames) < count:
            frame = connection.receive(seconds)
            assert frame is not None, f"{len(frames)} of {count} messages came"
            connection.confirmed("ACK", {"id": frame.headers["ack"]})
            frames.append(frame)
    return frames


def test_a_message_comes_to_the_other_broker_with_all_it_says(mended: Brokers) -> None:
    mended.forward("told")
    told = {"correlation-id": "c:1", "priority": "7", "type": "t", "reply-to": "/queue/answers", "colour": "r\ned"}
    send(mended.near.stomp_port, "told", b"\0\xff\nbody", **told)
    (frame,) = arrived(mended.far.stomp_port, "told", 1)
    assert frame.body == b"\0\xff\nbody"
    assert told | {"persistent": "true", "destination": "/queue/told"} == {name: frame.headers[name] for name in (*told, "persistent", "destination")}
    assert frame.headers["foreign-message-id"] == frame.headers["_AMQ_DUPL_ID"] != frame.headers["message-id"]
    assert await_link(mended.near, "connected")["error"] == ""


@pytest.mark.parametrize(("level", "persistent"), [("assured", "true"), ("reliable", "true"), ("reliable-np", None), ("express", None), ("best-effort", None)])
def test_the_persistent_levels_arrive_as_persistent_and_the_others_do_not(mended: Brokers, level: str, persistent: str | None) -> None:
    mended.forward(f"level.{level}")
    send(mended.near.stomp_port, f"level.{level}", b"x", reliability=level)
    (frame,) = arrived(mended.far.stomp_port, f"level.{level}", 1)
    assert frame.headers.get("persistent") == persistent
    assert frame.headers.get("reliability") is None


def test_nobody_consumes_from_a_foreign_queue_and_whoever_likes_browses_it(mended: Brokers) -> None:
    mended.wire.cut()
    mended.forward("browsed")
    send(mended.near.stomp_port, "browsed", b"seen")
    with Connection(mended.near.stomp_port) as connection, pytest.raises(ErrorReceived, match="foreign destination") as told:
        connection.subscribe("/queue/browsed")
    assert f"queue/browsed is forwarded over link {LINK} to /queue/browsed: consume there".encode() in told.value.frame.body
    with Connection(mended.near.stomp_port) as connection:
        connection.command("SUBSCRIBE", {"id": "0", "destination": "/queue/browsed", "browser": "true", "ack": "auto"})
        assert connection.expect("MESSAGE").body == b"seen"
    mended.wire.mend()
    assert [frame.body for frame in arrived(mended.far.stomp_port, "browsed", 1)] == [b"seen"]


def test_more_than_its_maximum_is_refused_where_it_is_sent(mended: Brokers) -> None:
    mended.forward("modest", maximum_reliability="express")
    with Connection(mended.near.stomp_port) as connection, pytest.raises(ErrorReceived, match="reliability too high"):
        connection.confirmed("SEND", {"destination": "/queue/modest", "persistent": "true"}, b"x")


def test_large_bodies_pass_octet_for_octet(mended: Brokers) -> None:
    mended.forward("large")
    bodies = [bytes([number]) * (LARGE + number) for number in range(3)]
    send(mended.near.stomp_port, "large", *bodies)
    frames = arrived(mended.far.stomp_port, "large", 3)
    assert [hashlib.sha256(frame.body).digest() for frame in frames] == [hashlib.sha256(body).digest() for body in bodies]


def test_what_is_sent_while_the_link_is_cut_waits_and_comes_in_order(mended: Brokers) -> None:
    mended.forward("cut")
    await_link(mended.near, "connected")
    mended.wire.cut()
    bodies = [b"%d" % number for number in range(200)]
    send(mended.near.stomp_port, "cut", *bodies)
    told = await_link(mended.near, "retrying")
    assert told["error"] and told["since"]
    mended.wire.mend()
    assert [frame.body for frame in arrived(mended.far.stomp_port, "cut", 200)] == bodies
    await_link(mended.near, "connected")


def test_each_level_keeps_what_is_promised_of_it_when_the_link_is_cut(mended: Brokers) -> None:
    """The row of the table of levels that tests.acceptance.test_levels_table leaves out (checklist item 114)."""
    found = levels.link_fails(mended)
    assert not [key for key in broken(found) if key[0] is Row.LINK], found


def test_a_link_that_says_nothing_any_more_is_given_up_and_nothing_is_lost(mended: Brokers) -> None:
    mended.forward("stalled")
    send(mended.near.stomp_port, "stalled", b"0")
    arrived(mended.far.stomp_port, "stalled", 1)
    await_link(mended.near, "connected")
    mended.wire.stall()
    send(mended.near.stomp_port, "stalled", b"1", b"2")
    assert "heart-beat" in await_link(mended.near, "retrying")["error"]
    mended.wire.mend()
    assert {frame.body for frame in arrived(mended.far.stomp_port, "stalled", 2)} == {b"1", b"2"}


def test_receipts_that_are_lost_make_no_duplicates_where_the_far_queue_detects_them(mended: Brokers) -> None:
    """The far broker has the messages, and nobody here knows it: they are sent again under their names."""
    ask(mended.far, "create", "queue/once", duplicate_window_ms=600_000)
    mended.forward("once")
    send(mended.near.stomp_port, "once", b"first")
    arrived(mended.far.stomp_port, "once", 1)
    bodies = [b"%d" % number for number in range(300)]
    for octets in (300, 1000, 77):
        mended.wire.stop_after(octets)
        send(mended.near.stomp_port, "once", *bodies)
        await_true(lambda: mended.wire.is_cut, 30, "nothing came back over the wire")
        mended.wire.mend()
        frames = arrived(mended.far.stomp_port, "once", 300)
        assert sorted(int(frame.body) for frame in frames) == list(range(300))
    with Connection(mended.far.stomp_port) as connection:
        assert read_all(connection, "/queue/once") == []


def test_messages_are_conserved_while_the_link_is_cut_again_and_again_and_both_nodes_are_killed(mended: Brokers) -> None:
    ask(mended.far, "create", "queue/conserved", duplicate_window_ms=600_000)
    mended.forward("conserved")
    sent = 1500
    confirmed: list[int] = []

    def produce() -> None:
        number = 0
        while number < sent:
            try:
                with reconnect(mended.near.stomp_port) as connection:
                    while number < sent:
                        connection.confirmed("SEND", {"destination": "/queue/conserved", "persistent": "true", "number": str(number)}, b"%d" % number, 30)
                        confirmed.append(number)
                        number += 1
            except ConnectionLost:
                continue

    producer = threading.Thread(target=produce)
    producer.start()
    for fault in (mended.wire.cut, lambda: mended.near.kill("node"), lambda: mended.far.kill("node"), mended.wire.cut, lambda: mended.near.kill("node")):
        goal = min(len(confirmed) + 100, sent - 1)
        await_true(lambda goal=goal: len(confirmed) > goal, 120, "the producer does not get on")
        fault()
        mended.wire.mend()
    producer.join(120)
    seen: list[int] = []
    with reconnect(mended.far.stomp_port) as connection:
        connection.subscribe("/queue/conserved")
        while set(seen) != set(range(sent)):
            frame = connection.receive(ARRIVED_SECONDS_MAX)
            assert frame is not None, f"{sent - len(set(seen))} messages are missing"
            seen.append(int(frame.body))
            connection.command("ACK", {"id": frame.headers["ack"]})
        seen += [int(frame.body) for frame in connection.receive_all(1) if frame.command == "MESSAGE"]
    again = Counter(seen)
    # What the producer itself sent again, not knowing whether it was taken, has another name.
    assert sum(again.values()) - sent <= 3


def test_what_the_other_broker_will_not_take_is_dead_here_with_its_words(mended: Brokers) -> None:
    ask(mended.far, "create", "queue/strict", maximum_reliability="express")
    mended.forward("strict", redelivery_max=1, redelivery_delay_ms=10)
    send(mended.near.stomp_port, "strict", b"too much")
    send(mended.near.stomp_port, "strict", b"fine", persistent="false")
    (frame,) = arrived(mended.near.stomp_port, "mq.sys.dmq", 1)
    assert (frame.body, frame.headers["original-destination"]) == (b"too much", "queue/strict")
    assert frame.headers["JMS_SUN_DMQ_UNDELIVERED_REASON"] == "UNDELIVERABLE"
    assert "queue/strict takes at most express, the message asks for assured" in frame.headers["JMS_SUN_DMQ_UNDELIVERED_COMMENT"]
    assert [frame.body for frame in arrived(mended.far.stomp_port, "strict", 1)] == [b"fine"]


def test_what_is_at_the_other_broker_is_taken_at_the_levels_that_the_link_maps(mended: Brokers) -> None:
    mended.take("/queue/there", "queue/here", nonpersistent_reliability="reliable-np")
    try:
        with Connection(mended.far.stomp_port) as connection:
            connection.confirmed("SEND", {"destination": "/queue/there", "persistent": "true", "colour": "red"}, b"kept")
            connection.confirmed("SEND", {"destination": "/queue/there"}, b"passing")
            connection.confirmed("SEND", {"destination": "/queue/there", "persistent": "true"}, b"x" * LARGE)
        frames = arrived(mended.near.stomp_port, "here", 3)
        found = {frame.body[:7]: (frame.headers.get("persistent"), frame.headers["reliability"]) for frame in frames}
        assert found == {b"kept": ("true", "assured"), b"passing": (None, "reliable-np"), b"x" * 7: ("true", "assured")}
        assert max(len(frame.body) for frame in frames) == LARGE
        await_true(lambda: links(mended.near).get((LINK, "in"), {}).get("messages") == 3, 10, "three messages were not counted")
    finally:
        define_link(mended.near, port=mended.wire.port)
    await_true(lambda: (LINK, "in") not in links(mended.near), 10, "the link takes on")
    with Connection(mended.far.stomp_port) as connection:
        assert read_all(connection, "/queue/there") == []


def test_what_is_taken_and_may_not_be_here_is_in_the_dead_message_queue(mended: Brokers) -> None:
    ask(mended.near, "create", "queue/humble", maximum_reliability="express")
    mended.take("/queue/proud", "queue/humble")
    try:
        send(mended.far.stomp_port, "proud", b"too much")
        (frame,) = arrived(mended.near.stomp_port, "mq.sys.dmq", 1)
        assert (frame.body, frame.headers["JMS_SUN_DMQ_UNDELIVERED_EXCEPTION"]) == (b"too much", "RELIABILITY_EXCEEDED")
        assert frame.headers["original-destination"] == "queue/humble"
    finally:
        define_link(mended.near, port=mended.wire.port)


def test_the_passcode_is_told_to_nobody(mended: Brokers) -> None:
    secret = "wrong-and-secret"
    try:
        define_link(mended.near, port=mended.wire.port, passcode=secret)
        mended.forward("secret")
        told = await_link(mended.near, "retrying")
        assert "login" in told["error"] or "refused" in told["error"]
        assert secret not in str(links(mended.near)) and secret not in mended.near.evidence()
    finally:
        define_link(mended.near, port=mended.wire.port)
    await_link(mended.near, "connected")


def test_only_the_node_that_serves_forwards_and_the_one_that_takes_over_goes_on(mended: Brokers) -> None:
    ask(mended.far, "create", "queue/taken.over", duplicate_window_ms=600_000)
    mended.forward("taken.over")
    near = mended.near
    with near.standby() as standby:
        await_true(lambda: roles(near) == {"active", "standby"}, 60, "the second node does not stand by")
        send(near.stomp_port, "taken.over", *[b"%d" % number for number in range(50)])
        assert near.process is not None
        near.process.send_signal(signal.SIGSTOP)  # it is the standby, not a restart, that takes over
        try:
            near.kill("node")
            send(standby.stomp_port, "taken.over", *[b"%d" % number for number in range(50, 100)])
            frames = arrived(mended.far.stomp_port, "taken.over", 100)
        finally:
            near.process.send_signal(signal.SIGCONT)
        assert {int(frame.body) for frame in frames} == set(range(100))
        with Connection(mended.far.stomp_port) as connection:
            assert read_all(connection, "/queue/taken.over") == []


def roles(service: Service) -> set[str]:
    with service.database() as connection:
        return {role for (role,) in connection.execute("SELECT role FROM surety.node_status WHERE at > clock_timestamp() - interval '2.5 s'")}


def test_a_link_over_tls_believes_only_the_certificates_it_is_given(mended: Brokers) -> None:
    port = mended.far.stomp_tls_port
    ask(mended.near, "create", "queue/secured", foreign_link="secured")
    define_link(mended.near, "secured", port=port, tls=True)
    try:
        send(mended.near.stomp_port, "secured", b"x")
        assert "CERTIFICATE_VERIFY_FAILED" in await_link(mended.near, "retrying", name="secured")["error"]
        define_link(mended.near, "secured", port=port, tls=True, certificates=mended.certificate.read_text())
        assert [frame.body for frame in arrived(mended.far.stomp_port, "secured", 1)] == [b"x"]
        await_link(mended.near, "connected", name="secured")
    finally:
        with mended.near.database() as connection:
            connection.execute("DELETE FROM surety.foreign_link WHERE name = 'secured'")
