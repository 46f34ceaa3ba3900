"""Segments that an operator has compacted while node and database are killed: what is kept is kept once, and what was acknowledged does not come back."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.acceptance.compacting import SEGMENT_ROWS, Compactor
from tests.acceptance.reading import read_all
from tests.support.clients import Connection, reconnect
from tests.support.service import Service

QUEUE = "/queue/compacted"
COUNT, KEPT_EVERY = 10_000, 10
SEED = 20261123
KILLS = ("node", "node", "postgres", "node", "postgres", "node")
CALM_SECONDS = (0.5, 5.0)
UP_SECONDS_MAX = 60

pytestmark = pytest.mark.slow


@pytest.fixture
def segmented() -> Iterator[Service]:
    with Service(environment={"SURETY_SEGMENT_ROWS_MAX": str(SEGMENT_ROWS)}) as running:
        yield running


def fill_and_take_most(service: Service) -> None:
    """Of every segment a tenth is left, bodies of 300 kB among it."""
    with Connection(service.stomp_port) as connection:
        for number in range(COUNT):
            kept = number % KEPT_EVERY == 0
            body = b"%d " % number
            connection.send(QUEUE, body.ljust(300_000, b".") if number % 500 == 0 else body, {"kept": str(kept).lower()})
        connection.confirmed("SUBSCRIBE", {"id": "0", "destination": QUEUE, "ack": "auto", "selector": "kept = 'false'"}, timeout=UP_SECONDS_MAX)
        for _ in range(COUNT - COUNT // KEPT_EVERY):
            connection.expect("MESSAGE", UP_SECONDS_MAX)
        connection.confirmed("UNSUBSCRIBE", {"id": "0"})


def test_what_is_left_of_segments_survives_kills_amid_their_compaction(segmented: Service) -> None:
    chance = random.Random(SEED)
    fill_and_take_most(segmented)
    compactor = Compactor(segmented, SEED)
    compactor.start()
    for role in KILLS:
        time.sleep(chance.uniform(*CALM_SECONDS))  # of compaction, real time
        segmented.kill_and_await_another(role)
        segmented.await_ready()
    time.sleep(CALM_SECONDS[1])
    compactor.stop()
    compactor.join(UP_SECONDS_MAX)
    assert compactor.failure is None
    segments, rows = compactor.compacted
    assert segments > 3, "kills and compactions met"
    assert rows >= segments * SEGMENT_ROWS // KEPT_EVERY // 2
    with reconnect(segmented.stomp_port, UP_SECONDS_MAX) as connection:
        left = Counter(int(frame.body.split()[0]) for frame in read_all(connection, QUEUE))
    assert left == Counter(range(0, COUNT, KEPT_EVERY))
