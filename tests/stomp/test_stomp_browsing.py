"""SUBSCRIBE with browser:true: copies, their end mark, and acknowledgements that mean nothing."""

from __future__ import annotations

import pytest

from broker_core.engine.commands import Browse, Detach, Sync, Unsubscribe
from broker_core.engine.message import StoredBody
from broker_core.engine.outputs import Browsed, Delivered
from broker_core.engine.subscription import EVERYTHING
from broker_core.stomp.outbox import LargeBody
from tests.stomp.conversation import LINK, PEER, Client, Cut, connected, message

BROWSE = b"SUBSCRIBE\nid:b\ndestination:/queue/a\nbrowser:true\n%b\n\0"


def browsing(cut: Cut, version: str = "1.2", ack: bytes = b"") -> Client:
    client = connected(cut, version)
    client.says(BROWSE % ack)
    return client


def test_a_browser_is_asked_for_by_its_header(cut: Cut) -> None:
    (browse,) = connected(cut).says(BROWSE % b"ack:client\nprefetch-count:5\nexclusive:true\n")
    assert browse == Browse(PEER, LINK, "queue/a", None, EVERYTHING)


def test_a_browser_may_have_a_selector(cut: Cut) -> None:
    (browse,) = connected(cut).says(BROWSE % b"selector:colour = 'red'\n")
    assert browse.wanted.selector.text == "colour = 'red'"


@pytest.mark.parametrize(("headers", "client_id"), [(b"", None), (b"client-id:two\n", "two"), (b"client-id:\n", "")])
@pytest.mark.parametrize("name", [b"durable-subscription-name", b"activemq.subscriptionName", b"durable-subscriber-name"])
def test_a_durable_subscription_is_named_and_whose_it_is_may_be_said(name: bytes, headers: bytes, client_id: str | None, cut: Cut) -> None:
    (browse,) = connected(cut).says(b"SUBSCRIBE\nid:b\ndestination:/topic/a\nbrowser:true\n" + name + b":d\n" + headers + b"\n\0")
    assert browse == Browse(PEER, LINK, "topic/a", None, EVERYTHING, name="d", client_id=client_id)


def test_a_pattern_is_one_subscription(cut: Cut) -> None:
    (browse,) = connected(cut).says(b"SUBSCRIBE\nid:b\ndestination:/topic/a.>\nbrowser:true\ndurable-subscription-name:d\n\n\0")
    assert (browse.address, browse.name) == ("topic/a.>", "d")


def test_the_end_of_the_subscription_closes_its_consumer_and_not_who_looks(cut: Cut) -> None:
    client = connected(cut)
    client.says(b"SUBSCRIBE\nid:b\ndestination:/topic/a\nbrowser:true\ndurable-subscription-name:d\n\n\0")
    (unsubscribe,) = client.says(b"UNSUBSCRIBE\ndurable-subscription-name:d\nid:c\n\n\0")
    assert isinstance(unsubscribe, Unsubscribe) and unsubscribe.name == "d"
    (detach,) = client.says(b"UNSUBSCRIBE\nid:b\n\n\0")
    assert isinstance(detach, Detach) and detach.link == LINK


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_the_end_is_a_message_that_says_so(version: str, cut: Cut) -> None:
    client = browsing(cut, version)
    client.gets(Delivered(PEER, LINK, 1, [message(body=b"x")]), Browsed(PEER, LINK))
    first, end = client.hears()
    assert (first.command, first.body) == ("MESSAGE", b"x")
    assert (end.command, end.body) == ("MESSAGE", b"")
    assert end.headers == {"subscription": "b", "message-id": "0", "browser": "end", "destination": "/queue/a", "content-length": "0"}


def test_after_the_end_the_subscription_stays_until_it_is_closed(cut: Cut) -> None:
    client = browsing(cut)
    client.gets(Browsed(PEER, LINK))
    (detach,) = client.says(b"UNSUBSCRIBE\nid:b\n\n\0")
    assert isinstance(detach, Detach) and detach.link == LINK


@pytest.mark.parametrize("mode", [b"client", b"client-individual"])
@pytest.mark.parametrize("command", [b"ACK", b"NACK"])
def test_an_acknowledgement_of_a_copy_is_ignored_and_its_receipt_given(mode: bytes, command: bytes, cut: Cut) -> None:
    client = browsing(cut, ack=b"ack:%b\n" % mode)
    client.gets(Delivered(PEER, LINK, 1, [message(body=b"x")]))
    (frame,) = client.hears()
    ack = frame.headers["ack"].encode()
    assert client.says(b"%b\nid:%b\n\n\0" % (command, ack)) == []
    (sync,) = client.says(b"%b\nid:%b\nreceipt:r\n\n\0" % (command, ack))
    assert isinstance(sync, Sync) and sync.token.receipt == b"r"


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_copies_are_not_remembered_by_their_ids(version: str, cut: Cut) -> None:
    client = browsing(cut, version, b"ack:client\n")
    for tag in range(1, 4):
        client.gets(Delivered(PEER, LINK, tag, [message(body=b"x")]))
    frames = client.hears()
    link = client.machine._subscriptions.link(LINK)
    assert link is not None and link._tags is None
    assert client.says(b"ACK\nsubscription:b\nmessage-id:%b\n\n\0" % frames[0].headers["message-id"].encode()) == []


def test_an_acknowledgement_of_a_copy_within_a_transaction_adds_nothing_to_it(cut: Cut) -> None:
    client = browsing(cut, ack=b"ack:client\n")
    client.gets(Delivered(PEER, LINK, 1, [message(body=b"x")]))
    (frame,) = client.hears()
    client.says(b"BEGIN\ntransaction:t\n\n\0")
    assert client.says(b"ACK\nid:%b\ntransaction:t\n\n\0" % frame.headers["ack"].encode()) == []


@pytest.mark.parametrize("closing", [False, True])
def test_a_large_body_of_a_copy_is_settled_by_its_leaving_also_when_the_browser_is_being_closed(closing: bool, cut: Cut) -> None:
    client = browsing(cut, ack=b"ack:client\n")
    if closing:
        client.says(b"UNSUBSCRIBE\nid:b\n\n\0")
    client.gets(Delivered(PEER, LINK, 1, [message(body=StoredBody(3, 50))]))
    (body,) = [piece for piece in client.machine.data_to_send() if isinstance(piece, LargeBody)]
    assert body.presettled == (LINK, 1)
