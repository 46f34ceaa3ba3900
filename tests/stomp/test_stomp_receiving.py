"""SUBSCRIBE, MESSAGE, UNSUBSCRIBE, DISCONNECT."""

from __future__ import annotations

import pytest

from broker_core.engine.commands import UNLIMITED_CREDIT, Attach, Detach, Sync
from broker_core.engine.message import Encoding, StoredBody
from broker_core.engine.outputs import Attached, Delivered, Detached, Refused
from broker_core.engine.refusal import Refusal
from broker_core.engine.subscription import EVERYTHING
from broker_core.stomp.limits import Limits
from broker_core.stomp.outbox import LargeBody
from tests.stomp.conversation import LINK, PEER, Client, Cut, connected, message, subscribed


# -- SUBSCRIBE refused --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        (b"id:0\n", "SUBSCRIBE needs header destination"),
        (b"destination:a\n", "SUBSCRIBE needs header id"),
        (b"id:0\ndestination:a\nack:maybe\n", "header ack is 'maybe', none of auto, client, client-individual"),
        (b"id:0\ndestination:a\nno-local:true\n", "header no-local of SUBSCRIBE needs a client: state header client-id in CONNECT"),
        (
            b"id:0\ndestination:/topic/a\nbrowser:true\n",
            "header browser of SUBSCRIBE is for queues, and for durable subscriptions of topics, which header durable-subscription-name names: "
            "a topic itself keeps no messages to look at",
        ),
        (b"id:0\ndestination:a\nbrowser:yes\n", "header browser is 'yes', neither true nor false"),
        (b"id:0\ndestination:a\nexclusive:perhaps\n", "header exclusive is 'perhaps', neither true nor false"),
        (b"id:0\ndestination:a\nconsumer-priority:high\n", "header consumer-priority is 'high', not a whole number from -1000 to 1000"),
        (b"id:0\ndestination:a\nx-priority:1001\n", "header x-priority is '1001', not a whole number from -1000 to 1000"),
        (b"id:0\ndestination:a\nactivemq.priority:--1\n", "header activemq.priority is '--1', not a whole number from -1000 to 1000"),
        (b"id:0\ndestination:a\nno-local:maybe\n", "header no-local is 'maybe', neither true nor false"),
        (b"id:0\ndestination:a\ndurable-subscriber-name:d\n", "header durable-subscriber-name of SUBSCRIBE is for topics: a queue keeps its messages anyway"),
        (b"id:0\ndestination:a\nshared:true\n", "header shared of SUBSCRIBE is for topics: the consumers of a queue share it anyway"),
        (
            b"id:0\ndestination:a\nshared:true\nsubscription-name:s\n",
            "header subscription-name of SUBSCRIBE is for topics: the consumers of a queue share it anyway",
        ),
        (b"id:0\ndestination:a\nack:auto\nprefetch-count:abc\n", "header prefetch-count is 'abc', not a number of messages"),
        (b"id:0\ndestination:a\nack:client\nprefetch-count:many\n", "header prefetch-count is 'many', not a number of messages"),
        (b"id:0\ndestination:a\nack:client\nactivemq.prefetchSize:-1\n", "header activemq.prefetchSize is '-1', not a number of messages"),
    ],
)
def test_a_bad_subscribe_is_refused_naming_header_and_value(headers: bytes, sentence: str, cut: Cut) -> None:
    client = connected(cut)
    assert client.says(b"SUBSCRIBE\n" + headers + b"receipt:7\n\n\0") == []
    error = client.error()
    assert (error.headers["message"], error.headers["receipt-id"]) == (sentence, "7")


def test_a_consumer_of_a_queue_may_want_a_part_of_it(cut: Cut) -> None:
    client = Client("1.2", cut)
    client.connects(b"client-id:me\n")
    (attach,) = client.says(b"SUBSCRIBE\nid:0\ndestination:a\nselector:weight > 3\nno-local:true\n\n\0")
    assert attach.wanted.sender == "me"
    assert attach.wanted.selector.matches({"weight": "4"}.get, coerce=True)
    assert not attach.wanted.selector.matches({"weight": "3"}.get, coerce=True)
    (attach,) = client.says(b"SUBSCRIBE\nid:1\ndestination:a\nselector:\nno-local:false\n\n\0")
    assert attach.wanted is EVERYTHING


def test_the_listener_can_tell_whether_there_are_subscriptions(cut: Cut) -> None:
    client = connected(cut)
    assert not client.machine.subscribed
    client.subscribes()
    assert client.machine.subscribed
    client.says(b"UNSUBSCRIBE\nid:0\n\n\0")
    assert not client.machine.subscribed


def test_a_subscription_id_in_use_is_refused(cut: Cut) -> None:
    client = connected(cut)
    client.subscribes(subscription=b"s-1")
    client.says(b"SUBSCRIBE\nid:s-1\ndestination:b\n\n\0")
    assert client.error().headers["message"] == "a subscription with id 's-1' is open on this connection"


def test_too_many_subscriptions_are_refused(cut: Cut) -> None:
    client = connected(cut, limits=Limits(subscriptions_max=2))
    client.subscribes(subscription=b"1")
    client.subscribes(subscription=b"2")
    client.says(b"SUBSCRIBE\nid:3\ndestination:b\n\n\0")
    assert client.error().headers["message"] == "more than 2 subscriptions on one connection"


def test_a_subscribe_that_the_engine_refuses_is_an_error_with_its_receipt(cut: Cut) -> None:
    client = connected(cut)
    (attach,) = client.says(b"SUBSCRIBE\nid:0\ndestination:mq.sys.x\nreceipt:5\n\n\0")
    client.gets(Refused(PEER, attach.token, Refusal.NO_SUCH_DESTINATION, "queue/mq.sys.x", attach.link))
    error = client.error()
    assert (error.headers["message"], error.headers["receipt-id"]) == ("no such destination", "5")


# -- SUBSCRIBE accepted -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("headers", "credit", "presettled"),
    [
        (b"", UNLIMITED_CREDIT, True),
        (b"ack:auto\nprefetch-count:5\n", UNLIMITED_CREDIT, True),
        (b"ack:client\n", 1000, False),
        (b"ack:client-individual\nprefetch-count:20\n", 20, False),
        (b"ack:client\nactivemq.prefetchSize:30\n", 30, False),
        (b"ack:client\nactivemq.prefetchSize:30\nprefetch-count:20\n", 20, False),
        (b"ack:client\nprefetch-count:100000\n", 65535, False),
        (b"ack:client\nprefetch-count:%b\n" % (b"9" * 30), 65535, False),
        (b"ack:client\nprefetch-count:0\n", 65535, False),
        (b"ack:client\nactivemq.prefetchSize:0\n", 1, False),
        (b"ack:client\ndurable:true\nauto-delete:false\nbrowser:false\nshared:false\n", 1000, False),
    ],
)
def test_the_ack_mode_and_the_prefetch_become_credit(headers: bytes, credit: int, presettled: bool, cut: Cut) -> None:
    events = connected(cut).says(b"SUBSCRIBE\nid:0\ndestination:/queue/a\n" + headers + b"\n\0")
    assert events == [Attach(PEER, LINK, "queue/a", None, credit, replenish=True, presettled=presettled)]


@pytest.mark.parametrize(("headers", "threshold"), [(b"", 100), (b"consumer-flow-threshold:50\n", 50), (b"consumer-flow-threshold:100\n", 100)])
@pytest.mark.parametrize("destination", [b"/queue/a", b"/topic/a"])
def test_a_consumer_may_say_when_it_is_available_again(headers: bytes, threshold: int, destination: bytes, cut: Cut) -> None:
    (attach,) = connected(cut).says(b"SUBSCRIBE\nid:0\nack:client\ndestination:" + destination + b"\n" + headers + b"\n\0")
    assert isinstance(attach, Attach) and attach.threshold == threshold


@pytest.mark.parametrize("value", [b"0", b"101", b"-1", b"50%", b"0.5", b"", b"half", b"0050"])
def test_a_threshold_is_a_percentage(value: bytes, cut: Cut) -> None:
    client = connected(cut)
    assert client.says(b"SUBSCRIBE\nid:0\ndestination:/queue/a\nconsumer-flow-threshold:" + value + b"\n\n\0") == []
    (error,) = client.hears()
    assert "consumer-flow-threshold" in error.headers["message"] and "from 1 to 100" in error.headers["message"]


def test_who_gets_less_prefetch_than_it_asked_for_reads_it_in_the_receipt(cut: Cut) -> None:
    client = connected(cut)
    (attach,) = client.says(b"SUBSCRIBE\nid:0\ndestination:/queue/a\nack:client\nreceipt:r\n\n\0")
    assert isinstance(attach, Attach)
    client.machine.send([Attached(PEER, attach.token, 7)], 0)
    assert client.octets() == b"RECEIPT\nreceipt-id:r\nprefetch-count:7\nprefetch-octets:16777216\n\n\0"


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        (b"ack:client\n", {"prefetch-count": "30", "prefetch-octets": "65536"}),
        (b"ack:client-individual\nprefetch-count:0\n", {"prefetch-count": "50", "prefetch-octets": "65536"}),
        (b"ack:client\nprefetch-count:9\n", {"prefetch-count": "9", "prefetch-octets": "65536"}),
        (b"ack:auto\n", {}), (b"ack:client\nbrowser:true\n", {}),
    ],
)  # fmt: skip
def test_the_receipt_says_how_far_ahead_it_is_delivered_to_who_acknowledges(headers: bytes, told: dict[str, str], cut: Cut) -> None:
    client = connected(cut, limits=Limits(prefetch_default=30, prefetch_max=50, outstanding_octets_max=65_536))
    client.confirm(client.says(b"SUBSCRIBE\nid:0\ndestination:/queue/a\nreceipt:r\n%b\n\0" % headers))
    assert [frame.headers for frame in client.hears()] == [{"receipt-id": "r"} | told]


@pytest.mark.parametrize(
    ("headers", "exclusive", "priority"),
    [
        (b"exclusive:true\n", True, 0),
        (b"activemq.exclusive:TRUE\n", True, 0),
        (b"exclusive:false\nconsumer-priority:1000\n", False, 1000),
        (b"activemq.priority:-128\n", False, -128),
        (b"x-priority:10\nexclusive:true\n", True, 10),
        (b"x-priority:10\nconsumer-priority:3\n", False, 3),
    ],
)
@pytest.mark.parametrize("destination", [b"/queue/a", b"/topic/a"])
def test_an_exclusive_consumer_and_its_priority_are_asked_for_in_the_headers_of_other_brokers(
    headers: bytes, exclusive: bool, priority: int, destination: bytes, cut: Cut
) -> None:
    (attach,) = connected(cut).says(b"SUBSCRIBE\nid:0\ndestination:%b\n%b\n\0" % (destination, headers))
    assert (attach.exclusive, attach.priority) == (exclusive, priority)


def test_subscribe_and_unsubscribe_are_receipted_when_the_engine_confirms(cut: Cut) -> None:
    client = connected(cut)
    events = client.says(b"SUBSCRIBE\nid:0\ndestination:a\nreceipt:s\n\n\0UNSUBSCRIBE\nid:0\nreceipt:u\n\n\0")
    assert [type(event) for event in events] == [Attach, Detach]
    assert client.octets() == b""
    client.confirm(events)
    assert client.octets() == b"RECEIPT\nreceipt-id:s\n\n\0RECEIPT\nreceipt-id:u\n\n\0"


def test_links_are_numbered_within_the_connection_and_numbers_of_closed_ones_come_back_last(cut: Cut) -> None:
    client = connected(cut)
    assert client.subscribes(subscription=b"a") == LINK
    client.says(b"UNSUBSCRIBE\nid:a\n\n\0")
    assert client.subscribes(subscription=b"a") == LINK + 1


def test_link_numbers_wrap_around_past_those_in_use() -> None:
    client = connected(lambda octets: [octets], limits=Limits(subscriptions_max=5))
    kept = client.subscribes(subscription=b"kept")
    links = set()
    for _ in range(65536):
        (attach,) = client.says(b"SUBSCRIBE\nid:x\ndestination:a\n\n\0")
        client.confirm(client.says(b"UNSUBSCRIBE\nid:x\n\n\0"))
        links.add(attach.link)
    assert kept not in links and len(links) == 65535
    assert {link // 65536 for link in links} == {PEER}


# -- MESSAGE ------------------------------------------------------------------------------------------------------------------------
def test_a_message_in_client_mode_carries_an_ack_header_and_the_senders_headers(cut: Cut) -> None:
    client = connected(cut)
    link = client.subscribes(b"client", b"sub%1")
    client.is_delivered(link, message(b"destination:/queue/a\ntype:t\\c1", b"hel\0lo", 41, 1700), message(sequence=42), tag=1)
    assert client.octets() == (
        b"MESSAGE\nsubscription:sub%1\nmessage-id:ID\\cnode1-41\nack:1.1\ntimestamp:1700\ndestination:/queue/a\ntype:t\\c1\n"
        b"content-length:6\n\nhel\0lo\0"
        b"MESSAGE\nsubscription:sub%1\nmessage-id:ID\\cnode1-42\nack:1.2\ntimestamp:1700\ndestination:/queue/a\ncontent-length:5\n\nhello\0"
    )


@pytest.mark.parametrize(("version", "mode"), [("1.2", b"auto"), ("1.1", b"client"), ("1.1", b"auto"), ("1.0", b"client")])
def test_where_no_ack_header_is_due_there_is_none(version: str, mode: bytes, cut: Cut) -> None:
    client = connected(cut, version)
    client.is_delivered(client.subscribes(mode), message())
    (frame,) = client.hears()
    assert frame.headers == {
        "subscription": "0",
        "message-id": "ID:node1-5",
        "timestamp": "1700",
        "destination": "/queue/a",
        "content-length": "5",
    }


@pytest.mark.parametrize(("failures", "count"), [(0, b"2"), (1, b"2"), (2, b"3"), (11, b"12")])
def test_a_message_delivered_again_says_so_and_for_the_how_many_th_time(failures: int, count: bytes, cut: Cut) -> None:
    client = connected(cut)
    again = message()
    again.redelivered, again.failures = True, failures
    client.is_delivered(client.subscribes(), again, tag=3)
    assert client.octets() == (
        b"MESSAGE\nsubscription:0\nmessage-id:ID\\cnode1-5\nack:1.3\nredelivered:true\nJMSXDeliveryCount:" + count + b"\n"
        b"timestamp:1700\ndestination:/queue/a\ncontent-length:5\n\nhello\0"
    )


def test_a_message_with_an_id_of_its_own_keeps_it(cut: Cut) -> None:
    client = connected(cut)
    client.is_delivered(client.subscribes(), message(message_id="ID:other:1"))
    assert b"\nmessage-id:ID\\cother\\c1\n" in client.octets()


def test_a_dead_message_tells_why_before_what_its_sender_said(cut: Cut) -> None:
    client = connected(cut)
    dead = message(b"destination:/queue/a\nreason:forged", annotations='{"reason":"expired: too\\nlate","count":3}')
    client.is_delivered(client.subscribes(b"auto"), dead)
    assert client.octets() == (
        b"MESSAGE\nsubscription:0\nmessage-id:ID\\cnode1-5\ntimestamp:1700\nreason:expired\\c too\\nlate\ncount:3\ndestination:/queue/a\n"
        b"reason:forged\ncontent-length:5\n\nhello\0"
    )


@pytest.mark.parametrize(
    ("version", "lines"),
    [
        ("1.2", b"a:x\\\\y\\cz\nb:c\\rd\\ne\nf\\cg:h"),
        ("1.1", b"a:x\\\\y\\cz\nb:c\rd\\ne\nf\\cg:h"),
        ("1.0", b"a:x\\y:z\nb:c\rd e"),
    ],
)
def test_stored_headers_are_written_as_the_receivers_version_reads_them(version: str, lines: bytes, cut: Cut) -> None:
    client = connected(cut, version)
    client.is_delivered(client.subscribes(b"auto"), message(b"destination:q\na:x\\\\y\\cz\nb:c\\rd\\ne\nf\\cg:h"))
    assert b"\ndestination:q\n" + lines + b"\ncontent-length:5\n\nhello\0" in client.octets()


def test_a_body_in_the_store_is_named_between_its_frames_octets(cut: Cut) -> None:
    client = connected(cut)
    link = client.subscribes()
    client.is_delivered(link, message(sequence=1), message(body=StoredBody(77, 500_000), sequence=2), message(sequence=3))
    before, body, after = client.machine.data_to_send()
    assert isinstance(before, bytes) and before.endswith(b"\ncontent-length:500000\n\n")
    assert body == LargeBody(StoredBody(77, 500_000))
    assert isinstance(after, bytes) and after.startswith(b"\0MESSAGE\n") and after.endswith(b"hello\0")
    assert client.machine.data_to_send() == []


def test_a_body_in_the_store_says_which_delivery_is_acknowledged_when_it_has_left(cut: Cut) -> None:
    """With ack:auto; a subscription that is being closed gives back what has not left."""
    client = connected(cut)
    link = client.subscribes(b"auto")
    large = message(body=StoredBody(77, 500_000))
    client.is_delivered(link, message(), large)
    assert client.machine.data_to_send()[1] == LargeBody(StoredBody(77, 500_000), (link, 2))
    client.says(b"UNSUBSCRIBE\nid:0\n\n\0")
    client.is_delivered(link, large)
    assert client.machine.data_to_send()[1] == LargeBody(StoredBody(77, 500_000))


def test_a_message_of_another_encoding_shows_only_headers_that_are_ours(cut: Cut) -> None:
    client = connected(cut)
    client.is_delivered(client.subscribes(b"auto"), message(b"\x00\x53\x70\xc0", encoding=Encoding.AMQP))
    assert client.octets() == (
        b"MESSAGE\nsubscription:0\nmessage-id:ID\\cnode1-5\ntimestamp:1700\ndestination:/queue/a\ncontent-length:5\n\nhello\0"
    )


def test_everything_queued_is_joined_into_one_write(cut: Cut) -> None:
    client = connected(cut)
    link = client.subscribes()
    events = client.says(b"SEND\ndestination:a\nreceipt:1\n\nx\0")
    client.is_delivered(link, *[message(sequence=n) for n in range(100)])
    client.confirm(events)
    assert len(client.machine.data_to_send()) == 1


# -- UNSUBSCRIBE, DISCONNECT, the engine's own reasons ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("headers", "sentence"),
    [(b"destination:/queue/a\n", "UNSUBSCRIBE needs header id"), (b"id:9\n", "no subscription with id '9' is open on this connection")],
)
def test_unsubscribe_needs_an_open_subscription(headers: bytes, sentence: str, cut: Cut) -> None:
    client = subscribed(cut, b"client")
    client.says(b"UNSUBSCRIBE\n" + headers + b"\n\0")
    assert client.error().headers["message"] == sentence


def test_1_0_may_subscribe_without_id_and_unsubscribe_by_destination(cut: Cut) -> None:
    client = connected(cut, "1.0")
    (attach,) = client.says(b"SUBSCRIBE\ndestination: /queue/a\nack: client\n\n\0")
    client.is_delivered(attach.link, message())
    assert "subscription" not in client.hears()[0].headers
    (detach,) = client.says(b"UNSUBSCRIBE\ndestination: /queue/a\n\n\0")
    assert detach.link == attach.link


def test_what_was_on_its_way_at_unsubscribe_is_still_written_until_the_engine_confirms(cut: Cut) -> None:
    client = connected(cut)
    link = client.subscribes(b"auto")
    detach = client.says(b"UNSUBSCRIBE\nid:0\n\n\0")
    client.is_delivered(link, message())
    assert [frame.command for frame in client.hears()] == ["MESSAGE"]
    client.confirm(detach)
    client.is_delivered(link, message())
    assert client.octets() == b""


@pytest.mark.parametrize("receipt", [b"", b"receipt:77\n"])
def test_disconnect_closes_when_everything_before_is_done(receipt: bytes, cut: Cut) -> None:
    client = connected(cut)
    link = client.subscribes()
    events = client.says(b"SEND\ndestination:a\nreceipt:1\n\nx\0DISCONNECT\n" + receipt + b"\n\0SEND\ndestination:a\n\nlate\0")
    send, detach, sync = events
    assert isinstance(detach, Detach) and detach.link == link and isinstance(sync, Sync)
    client.confirm([send, detach])
    assert client.octets() == b"RECEIPT\nreceipt-id:1\n\n\0"
    assert not client.machine.wants_close
    client.confirm([sync])
    assert client.octets() == (b"RECEIPT\nreceipt-id:77\n\n\0" if receipt else b"")
    assert client.machine.wants_close and client.machine.close_reason == "the client disconnected"


def test_a_link_closed_by_the_engine_is_an_error_that_names_the_destination(cut: Cut) -> None:
    client = subscribed(cut, b"client")
    client.gets(Detached(PEER, LINK, Refusal.NO_SUCH_DESTINATION, "queue/a"), Delivered(PEER, LINK, 6, [message()]))
    error = client.error()
    assert error.headers["message"] == "no such destination"
    assert error.body == b"the destination does not exist and may not be created automatically: queue/a"
