"""A database with a size cap: producers wait above it, health says why, and consumers make the room for them to go on."""

from __future__ import annotations

import time

import pytest

from tests.support.clients import Connection
from tests.support.service import Service, await_true

MIB = 1 << 20
ROOM = {"SURETY_DATABASE_OCTETS_MAX": "40 MiB", "SURETY_SEGMENT_OCTETS_MAX": "1 MiB", "SURETY_DISK_FREE_MIN_OCTETS": "0"}
"""An empty database takes about 10 MiB; segments of 1 MiB give room back soon."""
BODY = b"b" * (200 << 10)
AT_ONCE, PAUSE_SECONDS = 10, 0.2
"""10 MiB a second: the size is asked for every three."""
NOTICE_SECONDS_MAX = 15


@pytest.mark.slow
def test_above_the_cap_producers_wait_and_go_on_when_consumers_made_room() -> None:
    with Service(environment=ROOM) as service, Connection(service.stomp_port) as producer, Connection(service.stomp_port) as consumer:
        sent = confirmed = 0
        while sent == confirmed:
            assert sent < 1_000, "200 MiB went into a database of 40"
            for _ in range(AT_ONCE):
                producer.send("/queue/sized", BODY, {"receipt": str(sent)})
                sent += 1
            time.sleep(PAUSE_SECONDS)
            while confirmed < sent and producer.receive(3) is not None:
                confirmed += 1
        await_true(lambda: not service.is_ready(), NOTICE_SECONDS_MAX, "the service is ready although its producers wait")
        status, text = service.get("/health/ready")
        assert (status, "SURETY_DATABASE_OCTETS_MAX allows 40 MiB" in text) == (503, True), text
        consumer.subscribe("/queue/sized", prefetch=100)
        for number in range(sent):
            message = consumer.expect("MESSAGE", 30)
            assert message.body == BODY
            consumer.confirmed("ACK", {"id": message.headers["ack"]})
            if number == confirmed - 1:
                break
        while confirmed < sent:
            producer.expect("RECEIPT", 30)
            confirmed += 1
        service.await_ready(NOTICE_SECONDS_MAX)
