"""Messages that sessions of the database send within their own transactions, by real processes: psycopg here, a STOMP client there (R17)."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.acceptance.reading import read_all
from tests.support.clients import Connection, reconnect
from tests.support.service import Service, await_true

ARRIVES_SECONDS_MAX = 2.0
"""It is looked for every 50 ms."""
ALL_SECONDS_MAX = 60
KILLS = 3


def left(service: Service) -> int:
    with service.database() as session:
        row = session.execute("SELECT count(*) FROM surety.inbox").fetchone()
    assert row is not None
    return row[0]


def all_taken(service: Service) -> None:
    await_true(lambda: left(service) == 0, ALL_SECONDS_MAX, "the inbox is not empty")


def test_what_is_rolled_back_is_not_sent_and_what_is_committed_comes_in_order(service: Service) -> None:
    queue = "/queue/sql.order"
    with Connection(service.stomp_port) as consumer, service.database() as session:
        consumer.subscribe(queue, ack="auto")
        with session.transaction(force_rollback=True):
            session.execute("SELECT surety.send(%s, 'rolled back')", (queue,))
        with session.transaction():
            for number in range(20):
                session.execute("SELECT surety.send(%s, %s)", (queue, str(number)))
            time.sleep(0.3)
            assert consumer.receive(0) is None, "it was seen before it was committed"
        frames = [consumer.receive(ARRIVES_SECONDS_MAX) for _ in range(20)]
        assert [frame and frame.body for frame in frames] == [b"%d" % number for number in range(20)]
        assert consumer.receive(0.3) is None


def test_a_consumer_reads_what_the_sender_said(service: Service) -> None:
    queue = "/queue/sql.headers"
    with Connection(service.stomp_port) as consumer, service.database() as session:
        consumer.subscribe(queue, ack="auto")
        (identifier,) = session.execute(
            "SELECT surety.send(%s, %s, %s, priority => 7, correlation_id => 'c:1', type => 'order', reply_to => '/queue/r')",
            (queue, "Grüße", Jsonb({"colour": "red", "a:b": "c\nd"})),
        ).fetchone() or ("",)
        frame = consumer.receive(ARRIVES_SECONDS_MAX)
        assert frame is not None
        expected = {
            "message-id": identifier, "destination": queue, "priority": "7", "persistent": "true", "correlation-id": "c:1", "type": "order",
            "reply-to": "/queue/r", "colour": "red", "a:b": "c\nd", "content-type": "text/plain;charset=utf-8",
        }  # fmt: skip
        assert {name: frame.headers.get(name) for name in expected} == expected
        assert frame.body == "Grüße".encode()


def test_ten_thousand_by_one_statement_and_a_large_body(service: Service) -> None:
    queue, large = "/queue/sql.batch", bytes(range(256)) * 8_193
    with Connection(service.stomp_port) as consumer, service.database() as session:
        session.execute("SELECT count(surety.send(%s, i::text)) FROM generate_series(1, 10000) AS i", (queue,))
        session.execute("SELECT surety.send(%s, %s)", (queue, large))
        consumer.subscribe(queue, ack="auto", prefetch=1_000)
        frames = [consumer.receive(15) for _ in range(10_001)]
        assert [frame and frame.body for frame in frames] == [*(b"%d" % number for number in range(1, 10_001)), large]
    all_taken(service)


def test_what_nobody_may_send_is_dead_with_its_reason(service: Service) -> None:
    gone = "/temp-queue/no-1-1.replies"
    with Connection(service.stomp_port) as consumer, service.database() as session:
        (identifier,) = session.execute("SELECT surety.send(%s, 'too late')", (gone,)).fetchone() or ("",)
        all_taken(service)
        consumer.subscribe("/queue/mq.sys.dmq", prefetch=1_000)
        while (dead := consumer.expect("MESSAGE")).headers["message-id"] != identifier:
            pass
    assert (dead.body, dead.headers["original-destination"]) == (b"too late", gone[1:])
    assert "has ended" in dead.headers["JMS_SUN_DMQ_UNDELIVERED_COMMENT"]


def test_each_message_is_taken_once_though_the_node_is_killed_again_and_again(mortal: Service) -> None:
    queue, stop = "/queue/sql.killed", threading.Event()
    committed: list[list[str]] = [[], []]

    def sender(number: int) -> None:
        """Transactions of a few; every fifth is rolled back."""
        with psycopg.connect(mortal.dsn()) as session:
            for turn in range(100_000):
                if stop.is_set():
                    return
                bodies = [f"{number}.{turn}.{each}" for each in range(turn % 30)]
                session.execute("SELECT surety.send(%s, body) FROM unnest(%s::text[]) AS body", (queue, bodies))
                if turn % 5:
                    session.commit()
                    committed[number] += bodies
                else:
                    session.rollback()

    senders = [threading.Thread(target=sender, args=(number,)) for number in range(2)]
    for each in senders:
        each.start()
    try:
        for _ in range(KILLS):
            time.sleep(1.0)
            mortal.kill("node")
            reconnect(mortal.stomp_port).close()
    finally:
        stop.set()
        for each in senders:
            each.join()
    all_taken(mortal)
    with reconnect(mortal.stomp_port) as consumer:
        frames = read_all(consumer, queue)
    found = [frame.body.decode() for frame in frames]
    assert min(map(len, committed)) > 100
    for number in range(2):
        assert [body for body in found if body.startswith(f"{number}.")] == committed[number]
    assert not any(frame.headers.get("redelivered") == "true" for frame in frames)


@pytest.mark.parametrize("role", ["allowed", "not_allowed"])
def test_a_role_of_an_application_sends_if_it_was_allowed_to(service: Service, role: str) -> None:
    with psycopg.connect(service.dsn(superuser=True), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE sql_{role} NOLOGIN")
        owner.execute(f"GRANT sql_{role} TO surety")
        if role == "allowed":
            owner.execute(f"GRANT USAGE ON SCHEMA surety TO sql_{role}; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA surety TO sql_{role}")
    with service.database() as session:
        session.execute(f"SET ROLE sql_{role}")
        if role == "allowed":
            session.execute("SELECT surety.send('/topic/sql.nobody', 'm')")
        else:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute("SELECT surety.send('/topic/sql.nobody', 'm')")
