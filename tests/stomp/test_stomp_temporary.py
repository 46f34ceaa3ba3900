"""Temporary destinations and request/reply: what a client calls its own, what others read, and a requester that has gone."""

from __future__ import annotations

import pytest

from broker_core.engine.commands import Attach, EndTemporary, Request, Send, Transacted
from broker_core.engine.message import STORED
from broker_core.engine.outputs import Confirmed, Refused
from broker_core.engine.refusal import Refusal
from broker_core.stomp.sections import SectionMemory
from tests.stomp.conversation import INSTANCE, PEER, SESSION, Client, Cut, Event, connected, message

OTHER = f"{INSTANCE}-1-8"
REQUEST = b"SEND\ndestination:/queue/work\nreply-to:/temp-queue/replies\n\nx\0"


def lines(event: Event) -> list[str]:
    """The header section as others read it."""
    assert isinstance(event, Send)
    return event.message.header.octets.decode().split("\n")


# -- names ----------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["temp-queue", "temp-topic"])
def test_a_short_name_is_the_connections_own(kind: str, cut: Cut) -> None:
    (attach,) = connected(cut).says(f"SUBSCRIBE\nid:0\ndestination:/{kind}/replies\n\n\0".encode())
    assert isinstance(attach, Attach)
    assert attach.address == f"{kind}/{SESSION}.replies"


@pytest.mark.parametrize("session", [SESSION, OTHER, f"{INSTANCE}-77-123456"])
def test_a_full_name_is_whosever_it_is(session: str, cut: Cut) -> None:
    client = connected(cut)
    (attach,) = client.says(f"SUBSCRIBE\nid:0\ndestination:/temp-queue/{session}.replies\n\n\0".encode())
    (send,) = client.says(f"SEND\ndestination:/temp-queue/{session}.replies\n\nx\0".encode())
    assert attach.address == send.address == f"temp-queue/{session}.replies"


@pytest.mark.parametrize("name", ["a.b", f"{INSTANCE}", f"{INSTANCE}-1", f"{INSTANCE}-1-x.a", "elsewhere-1-8.a", "mq.a"])
def test_whatever_is_no_full_name_is_a_short_one(name: str, cut: Cut) -> None:
    (send,) = connected(cut).says(f"SEND\ndestination:/temp-queue/{name}\n\nx\0".encode())
    assert send.address == f"temp-queue/{SESSION}.{name}"


def test_the_engine_is_told_the_session() -> None:
    opened, *_ = Client().connects()
    assert opened.session == SESSION


@pytest.mark.parametrize("destination", ["/temp-queue/", "/temp-queue/ a", "/temp-queue/a*", "/temp-queue/" + "a" * 255])
def test_a_name_that_cannot_be_is_refused(destination: str, cut: Cut) -> None:
    client = connected(cut)
    assert client.says(f"SEND\ndestination:{destination}\n\nx\0".encode()) == []
    assert client.error().headers["message"].startswith("destination '/temp-queue/")
    client = connected(cut)
    assert client.says(f"SEND\ndestination:a\nreply-to:{destination}\nreceipt:3\n\nx\0".encode()) == []
    error = client.error()
    assert error.headers["message"].startswith("header reply-to is '/temp-queue/")
    assert error.headers["receipt-id"] == "3"


# -- asking ---------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_reply_to_is_made_before_the_request_and_tells_others_its_full_name(version: str, cut: Cut) -> None:
    client = connected(cut, version)
    for _ in range(3):
        (send,) = client.says(REQUEST)
        assert (type(send), send.reply_to) == (Request, f"temp-queue/{SESSION}.replies")
        assert (send.address, lines(send)) == ("queue/work", ["destination:/queue/work", f"reply-to:/temp-queue/{SESSION}.replies"])
        assert send.message.size == len(send.message.header.octets) + 1


@pytest.mark.parametrize("reply_to", ["/queue/replies", "replies", f"/temp-queue/{OTHER}.replies", ""])
def test_reply_to_something_else_stays_as_it_is(reply_to: str, cut: Cut) -> None:
    (send,) = connected(cut).says(f"SEND\ndestination:/queue/work\nreply-to:{reply_to}\n\nx\0".encode())
    assert lines(send) == ["destination:/queue/work", f"reply-to:{reply_to}"]


def test_a_request_within_a_transaction_makes_the_queue_at_once(cut: Cut) -> None:
    (taken,) = connected(cut).says(REQUEST.replace(b"\n\n", b"\ntransaction:t\n\n"))
    assert (type(taken), type(taken.work), taken.work.reply_to) == (Transacted, Request, f"temp-queue/{SESSION}.replies")


def test_other_headers_of_a_request_are_kept_and_the_broker_adds_none(cut: Cut) -> None:
    octets = b"SEND\ndestination:/queue/work\ncorrelation-id:7\nreply-to:/temp-topic/r\npersistent:true\nx:a\\cb\nreceipt:1\n\nx\0"
    (send,) = connected(cut).says(octets)
    assert lines(send) == ["destination:/queue/work", "correlation-id:7", f"reply-to:/temp-topic/{SESSION}.r", "persistent:true", "x:a\\cb"]
    assert send.message.header.reliability >= STORED


def test_a_reply_arrives_under_the_clients_own_subscription(cut: Cut) -> None:
    client = connected(cut)
    link = client.subscribes(b"client", b"mine", b"/temp-queue/replies")
    client.is_delivered(link, message(f"destination:/temp-queue/{SESSION}.replies\ncorrelation-id:7".encode()))
    (frame,) = client.hears()
    assert (frame.headers["subscription"], frame.headers["correlation-id"]) == ("mine", "7")


# -- ending one before its connection ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize("name", ["replies", f"{SESSION}.replies"])
def test_a_client_ends_one_by_either_name_and_is_told(name: str, version: str, cut: Cut) -> None:
    client = connected(cut, version)
    (ended,) = client.says(f"UNSUBSCRIBE\ntemporary-destination:/temp-queue/{name}\nreceipt:5\n\n\0".encode())
    assert (type(ended), ended.address) == (EndTemporary, f"temp-queue/{SESSION}.replies")
    client.confirm([ended])
    assert [(frame.command, frame.headers) for frame in client.hears()] == [("RECEIPT", {"receipt-id": "5"})]


def test_without_a_receipt_its_end_is_not_spoken_of(cut: Cut) -> None:
    (ended,) = connected(cut).says(b"UNSUBSCRIBE\ntemporary-destination:/temp-topic/news\n\n\0")
    assert (ended.address, ended.token) == (f"temp-topic/{SESSION}.news", None)


@pytest.mark.parametrize("destination", ["/queue/orders", "replies", "/temp-queue/"])
def test_what_is_no_temporary_destination_is_not_ended(destination: str, cut: Cut) -> None:
    client = connected(cut)
    assert client.says(f"UNSUBSCRIBE\ntemporary-destination:{destination}\nreceipt:5\n\n\0".encode()) == []
    assert (error := client.error()).headers["receipt-id"] == "5" and destination in error.headers["message"]


@pytest.mark.parametrize("refusal", [Refusal.DESTINATION_IN_USE, Refusal.NOT_THE_OWNER])
def test_one_in_use_or_of_another_is_not_ended_and_the_client_is_told_why(refusal: Refusal, cut: Cut) -> None:
    client = connected(cut)
    (ended,) = client.says(b"UNSUBSCRIBE\ntemporary-destination:/temp-queue/replies\nreceipt:5\n\n\0")
    client.gets(Refused(PEER, ended.token, refusal, ended.address))
    assert client.error().headers["receipt-id"] == "5"


# -- what is remembered -----------------------------------------------------------------------------------------------------------------
def test_the_same_section_means_another_queue_on_another_connection(cut: Cut) -> None:
    """Header sections are remembered by all connections of a node together: these must not be."""
    memory = SectionMemory()
    clients = [Client(cut=cut, memory=memory), Client(cut=cut, memory=memory, session=OTHER)]
    for client in clients:
        client.connects()
    own = b"SEND\ndestination:/temp-queue/replies\ncontent-length:1\n\nx\0"
    for _ in range(4):
        for client in clients:
            request, send = client.says(REQUEST + own)
            assert request.reply_to == send.address == f"temp-queue/{client.session}.replies"
            assert lines(request)[1] == f"reply-to:/temp-queue/{client.session}.replies"
    assert memory.tables("1.2") == ({}, {})


def test_a_request_that_repeats_is_read_once(cut: Cut) -> None:
    client = connected(cut)
    headers = {id(event.message.header) for event in client.says(REQUEST * 5) if isinstance(event, Send)}
    assert len(headers) == 1


def test_requests_that_never_repeat_are_remembered_up_to_a_bound() -> None:
    client = connected(lambda octets: [octets])
    for number in range(1500):
        client.says(b"SEND\ndestination:/queue/work\nreply-to:/temp-queue/r\ncorrelation-id:%d\n\nx\0" % number)
    assert len(client.machine._parser._sections._own) <= client.limits.sections_max


# -- a requester that has gone ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("transaction", [b"", b"transaction:t\n"])
def test_a_reply_to_a_requester_that_has_gone_is_confirmed_and_the_connection_goes_on(transaction: bytes, cut: Cut) -> None:
    client = connected(cut)
    reply = b"SEND\ndestination:/temp-queue/%b.r\n%breceipt:5\n\nx\0" % (OTHER.encode(), transaction)
    for _ in range(3):
        (send,) = client.says(reply)
        client.gets(Refused(PEER, send.token, Refusal.TEMPORARY_DESTINATION_GONE, f"temp-queue/{OTHER}.r"))
        assert [(frame.command, frame.headers) for frame in client.hears()] == [("RECEIPT", {"receipt-id": "5"})]
    assert not client.machine.wants_close
    (send,) = client.says(b"SEND\ndestination:/queue/a\nreceipt:6\n\nx\0")
    client.gets(Confirmed(PEER, send.token))
    assert [frame.headers for frame in client.hears()] == [{"receipt-id": "6"}]


def test_without_a_receipt_nothing_is_said(cut: Cut) -> None:
    client = connected(cut)
    client.says(b"SEND\ndestination:/temp-queue/%b.r\n\nx\0" % OTHER.encode())
    client.gets(Refused(PEER, None, Refusal.TEMPORARY_DESTINATION_GONE, "temp-queue/x"))
    assert client.octets() == b""
    assert not client.machine.wants_close


def test_the_allowance_of_unconfirmed_sends_is_given_back(cut: Cut) -> None:
    client = connected(cut)
    for _ in range(client.limits.unconfirmed_max):
        (send,) = client.says(b"SEND\ndestination:/temp-queue/%b.r\nreceipt:5\n\nx\0" % OTHER.encode())
    assert client.machine.wants_pause
    client.gets(Refused(PEER, send.token, Refusal.TEMPORARY_DESTINATION_GONE))
    assert not client.machine.wants_pause


@pytest.mark.parametrize("refusal", [Refusal.NOT_THE_OWNER, Refusal.TOO_MANY_TEMPORARIES, Refusal.NOT_DURABLE])
def test_other_refusals_end_the_connection_with_their_reason(refusal: Refusal, cut: Cut) -> None:
    client = connected(cut)
    client.says(REQUEST)
    client.gets(Refused(PEER, None, refusal, "temp-queue/x"))
    assert client.error().body.decode() == f"{refusal.value}: temp-queue/x"
