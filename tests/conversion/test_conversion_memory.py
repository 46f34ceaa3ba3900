"""What is remembered of messages is bounded, however large what stands before their bodies is and however many differ."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from broker_core.amqp.arrivals import Arrivals
from broker_core.amqp.mapping import decode
from broker_core.conversion import ToAmqp, to_stomp
from broker_core.engine.message import Header, Message
from broker_core.stomp.escaping import canonical
from tests.amqp.messages import NOW, annotated, message, section, value

TO_AMQP = ToAmqp("here")


def _amqp(number: int, size: int) -> bytes:
    lists = {f"{number}-{each}": [] for each in range(size // 10)}
    return annotated(number=number) + section(0x74, lists) + value("x")


def _arrives(number: int, size: int) -> None:
    sent = message(_amqp(number, size))
    dict(decode(sent.header))
    to_stomp(sent, "/queue/q")


def _leaves(number: int, size: int) -> None:
    lines = canonical({"destination": "/queue/q", **{f"{number}-{each}": "" for each in range(size // 8)}})
    sent = Message(Header(lines), b"x", len(lines))
    sent.sequence, sent.accepted_at = number, NOW
    TO_AMQP(sent)


@pytest.mark.parametrize("work", [_arrives, _leaves], ids=["from AMQP", "to AMQP"])
@pytest.mark.parametrize(("size", "messages", "kept_max"), [(400, 400, 8 << 20), (10_000, 40, 1 << 19)], ids=["small", "large"])
def test_what_is_remembered_of_messages_is_bounded(work: Callable[[int, int], None], size: int, messages: int, kept_max: int) -> None:
    work(0, size)
    tracemalloc.start()
    for number in range(messages):
        work(number, size)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept <= kept_max


def test_a_link_remembers_no_large_opening() -> None:
    arrivals = Arrivals("c")
    for size in (100, 30_000):
        octets = _amqp(1, size)
        again = arrivals.read(octets, NOW) is arrivals.read(octets, NOW)
        assert again == (size == 100)
