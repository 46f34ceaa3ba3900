"""Where a connection sends to, as it is told to operators: known by header sections, without a look at each message."""

from __future__ import annotations

import pytest

from broker_core.stomp.sections import SectionMemory
from tests.stomp.conversation import Client, Cut, connected


def sends(destination: bytes, headers: bytes = b"", body: bytes = b"x") -> bytes:
    return b"SEND\ndestination:%b\n%b\n%b\0" % (destination, headers, body)


def known(client: Client) -> list[str]:
    return [producer.address for producer in client.machine.producers]


def test_who_has_sent_nothing_produces_nothing(cut: Cut) -> None:
    client = connected(cut)
    client.says(b"SUBSCRIBE\nid:0\ndestination:/queue/a\n\n\0")
    assert known(client) == []


@pytest.mark.parametrize("headers", [b"", b"receipt:%d\n", b"receipt:a-%d\n", b"content-length:1\n", b"number:%d\n", b"transaction:t%d\n", b"x:\\c\n"])
def test_each_destination_is_known_once_however_its_frames_are_read(cut: Cut, headers: bytes) -> None:
    client = connected(cut)
    for number in range(6):
        if b"transaction" in headers:
            client.says(b"BEGIN\ntransaction:t%d\n\n\0" % number)
        told = headers % number if b"%d" in headers else headers
        client.says(sends(b"/queue/a", told) + sends(b"/queue/a", told) + sends(b"/topic/b" if number % 2 else b"/queue/c", told))
    assert sorted(known(client)) == ["queue/a", "queue/c", "topic/b"]


def test_what_others_have_sent_to_is_not_this_ones() -> None:
    memory = SectionMemory()
    one, other = Client(memory=memory), Client(memory=memory)
    for client in (one, other):
        client.connects()
    for _ in range(3):
        one.says(sends(b"/queue/a") * 3 + sends(b"/queue/b"))
        other.says(sends(b"/queue/b") * 3)
    assert (known(one), known(other)) == (["queue/a", "queue/b"], ["queue/b"])


def test_it_is_known_since_its_first_message_and_a_large_one_counts(cut: Cut) -> None:
    client = connected(cut)
    client.now += 5
    client.says(sends(b"/queue/a", b"content-length:300000\n", b"x" * 300_000))
    client.now += 5
    client.says(sends(b"/queue/a"))
    (producer,) = client.machine.producers
    assert (producer.address, producer.since, producer.link, producer.sent) == ("queue/a", 1_000_005, None, None)
