"""STOMP 1.0 acknowledges by message-id and need not name a subscription: which delivery is meant, at a cost that does not grow with the subscriptions."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from broker_core.engine.commands import Settle
from broker_core.engine.message import Message
from broker_core.engine.outcome import Outcome
from tests.stomp.conversation import LINK, PEER, Client, connected, message, subscribed, whole


def ack(sequence: int) -> bytes:
    return b"ACK\nmessage-id:ID:node1-%d\n\n\0" % sequence


def with_subscriptions(count: int, mode: bytes = b"client-individual") -> Client:
    client = connected(whole, "1.0")
    for number in range(count):
        client.subscribes(mode, b"s%d" % number, b"/queue/q%d" % number)
    return client


def calls(client: Client, octets: bytes) -> int:
    """Of Python functions, until that is read."""
    counted = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count)
    try:
        client.says(octets)
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("twice", [False, True])
def test_the_subscription_is_found_however_many_there_are(twice: bool) -> None:
    cost = []
    for subscriptions in (2, 300):
        client = with_subscriptions(subscriptions)
        for link in range(subscriptions):
            client.is_delivered(LINK + link, message(sequence=link + 1))
        last = ack(subscriptions)
        client.says(last * 2 if twice else b"")
        cost.append(calls(client, last))
    assert cost[1] < cost[0] + 20


def test_of_several_subscriptions_with_the_message_the_first_that_got_it_is_meant_and_then_the_next() -> None:
    client = with_subscriptions(3)
    for link in (1, 0, 2):
        client.is_delivered(LINK + link, message(sequence=7))
    assert [event.link for event in client.says(ack(7) * 3)] == [LINK + 1, LINK, LINK + 2]
    assert client.says(ack(7)) == []


def test_what_was_acknowledged_cumulatively_is_not_found_again() -> None:
    client = with_subscriptions(2, b"client")
    client.is_delivered(LINK, *[message(sequence=number) for number in range(1, 5)])
    client.is_delivered(LINK + 1, message(sequence=2))
    assert client.says(ack(3)) == [Settle(PEER, LINK, (), 3, Outcome.ACCEPTED)]
    assert client.says(ack(2)) == [Settle(PEER, LINK + 1, (), 1, Outcome.ACCEPTED)]
    assert client.says(ack(4)) == [Settle(PEER, LINK, (), 4, Outcome.ACCEPTED)]


def test_a_closed_subscription_is_meant_no_more_though_its_deliveries_arrive() -> None:
    client = with_subscriptions(2)
    for link in (0, 1):
        client.is_delivered(LINK + link, message(sequence=7))
    client.says(b"UNSUBSCRIBE\nid:s0\n\n\0")
    client.is_delivered(LINK, message(sequence=8), tag=2)
    client.is_delivered(LINK + 1, message(sequence=9), tag=2)
    assert [event.link for event in client.says(ack(7) + ack(9) + ack(8))] == [LINK + 1]


def test_a_message_that_comes_again_is_acknowledged_once_more() -> None:
    client = with_subscriptions(1)
    client.is_delivered(LINK, message(sequence=7))
    client.says(b"NACK\nmessage-id:ID:node1-7\n\n\0")
    client.is_delivered(LINK, message(sequence=7), tag=2)
    assert client.says(ack(7)) == [Settle(PEER, LINK, [2], 0, Outcome.ACCEPTED)]


def test_who_knows_a_message_is_asked_again_when_the_one_who_did_has_gone() -> None:
    client = with_subscriptions(3)
    client.is_delivered(LINK + 2, message(sequence=9))
    client.is_delivered(LINK + 1, message(sequence=7))
    client.says(ack(9) * 2 + ack(7) * 2)
    client.says(b"UNSUBSCRIBE\nid:s2\n\n\0")
    assert client.says(ack(7)) == []
    assert not client.machine.wants_close
    client.octets()
    client.says(ack(9))
    assert client.error().headers["message"] == "message-id 'ID:node1-9' names no delivery of this connection"


def dead(sequence: int) -> Message:
    """Of a topic's message that died for several subscriptions: each copy has its message-id."""
    return message(sequence=sequence, message_id="ID:node1-3")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_of_two_deliveries_with_one_message_id_the_first_is_meant_and_then_the_second(version: str) -> None:
    client = subscribed(whole, b"client-individual", version)
    client.is_delivered(LINK, dead(10), dead(11), dead(12), tag=6)
    acknowledge = b"ACK\nsubscription:0\nmessage-id:ID%bnode1-3\n\n\0" % (b":" if version == "1.0" else b"\\c")
    assert [client.says(acknowledge) for _ in range(2)] == [[Settle(PEER, LINK, [6])], [Settle(PEER, LINK, [7])]]
    client.is_delivered(LINK, dead(13), tag=9)
    assert [client.says(acknowledge) for _ in range(3)] == [[Settle(PEER, LINK, [8])], [Settle(PEER, LINK, [9])], []]


def test_without_a_subscription_s_name_too_and_a_cumulative_one_settles_what_came_before_it() -> None:
    client = with_subscriptions(2, b"client")
    client.is_delivered(LINK, dead(10), message(sequence=20), dead(11), message(sequence=21), dead(12))
    assert client.says(ack(3)) == [Settle(PEER, LINK, (), 1, Outcome.ACCEPTED)]
    assert client.says(ack(21)) == [Settle(PEER, LINK, (), 4, Outcome.ACCEPTED)]
    assert client.says(ack(3)) == [Settle(PEER, LINK, (), 5, Outcome.ACCEPTED)]
    assert client.says(ack(3)) == []
    client.is_delivered(LINK, dead(13), dead(14), tag=6)
    client.says(b"UNSUBSCRIBE\nid:s0\n\n\0")
    client.is_delivered(LINK + 1, dead(15))
    assert client.says(ack(3)) == [Settle(PEER, LINK + 1, (), 1, Outcome.ACCEPTED)]
