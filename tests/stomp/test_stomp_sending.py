"""SEND: what its headers ask for, what is kept of them, receipts and back-pressure, large bodies."""

from __future__ import annotations

import tracemalloc

import pytest

from broker_core.engine.commands import Send
from broker_core.engine.dead import ADDED
from broker_core.engine.message import Reliability
from broker_core.engine.message_group import MessageGroup
from broker_core.engine.outputs import Refused
from broker_core.engine.refusal import Refusal
from broker_core.stomp.connection import BodyPart
from broker_core.stomp.escaping import read_canonical
from broker_core.stomp.limits import Limits
from broker_core.stomp.refusals import REFUSALS
from tests.stomp.conversation import PEER, Client, Cut, connected


def sent(cut: Cut, headers: bytes, version: str = "1.2") -> Send:
    (send,) = connected(cut, version).says(b"SEND\n" + headers + b"\nbody\0")
    assert isinstance(send, Send)
    return send


def test_a_message_belongs_to_the_group_that_its_sender_names(cut: Cut) -> None:
    assert sent(cut, b"destination:a\nJMSXGroupID:g\\c1\nJMSXGroupSeq:7\n").message.header.group == MessageGroup("g:1")
    assert sent(cut, b"destination:a\nJMSXGroupID:g\nJMSXGroupSeq:-1\n").message.header.group == MessageGroup("g", closes=True)
    for none in (b"", b"JMSXGroupID:\n", b"JMSXGroupSeq:-1\n", b"JMSXGroupSeq:last\n"):
        assert sent(cut, b"destination:a\n" + none).message.header.group is None


# -- refused ------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        (b"foo:bar\n", "SEND needs header destination"),
        (b"destination:\n", "destination '' is not valid: the destination's name is not valid"),
        (b"destination:/queue/\n", "destination '/queue/' is not valid: the destination's name is not valid"),
        (b"destination:/queue/a*\n", "destination '/queue/a*' is not valid: wildcards are for SUBSCRIBE, on topics"),
        (
            b"destination:/queue/" + b"a" * 256 + b"\n",
            f"destination '/queue/{'a' * 73}...' is not valid: the destination's name is not valid",
        ),
        (
            b"destination:/exchange/a\n",
            "destination '/exchange/a' is none of /queue/NAME, /topic/NAME, /temp-queue/NAME, /temp-topic/NAME",
        ),
        (b"destination:a\ndelay:soon\n", "header delay is 'soon', not a number of milliseconds up to 315360000000, ten years"),
        (b"destination:a\ndelay:-1\n", "header delay is '-1', not a number of milliseconds up to 315360000000, ten years"),
        (b"destination:a\ndelay:315360000001\n", "header delay is '315360000001', not a number of milliseconds up to 315360000000, ten years"),
        (
            b"destination:a\nAMQ_SCHEDULED_DELAY:1.5\n",
            "header AMQ_SCHEDULED_DELAY is '1.5', not a number of milliseconds up to 315360000000, ten years",
        ),
        (
            b"destination:a\nAMQ_SCHEDULED_CRON:0 * * * *\n",
            "header AMQ_SCHEDULED_CRON of SEND is not supported: a message is delayed once, by header delay in milliseconds",
        ),
        (
            b"destination:a\nAMQ_SCHEDULED_DELAY:5\nAMQ_SCHEDULED_REPEAT:3\nAMQ_SCHEDULED_PERIOD:9\n",
            "header AMQ_SCHEDULED_PERIOD of SEND is not supported: a message is delayed once, by header delay in milliseconds",
        ),
        (
            b"destination:a\nx-delay:5000\n",
            "header x-delay of SEND is not supported: a message is delayed once, by header delay in milliseconds",
        ),
        (
            b"destination:a\nexpires:0\nexpiration:60000\n",
            "header expiration of SEND is not supported: state header expires, an instant in milliseconds since 1970",
        ),
        (b"destination:a\nJMSXGroupID:" + b"g" * 256 + b"\n", "header JMSXGroupID must have at most 255 characters"),
        (
            b"destination:a\nJMSXGroupID:g\nJMSXGroupSeq:last\n",
            "header JMSXGroupSeq is 'last', not a whole number (-1: the last of its group)",
        ),
        (b"destination:a\npriority:10\n", "header priority is '10', not a digit 0 to 9"),
        (b"destination:a\npriority:\n", "header priority is '', not a digit 0 to 9"),
        ("destination:a\npriority:\u0663\n".encode(), "header priority is '\u0663', not a digit 0 to 9"),
        (b"destination:a\nexpires:soon\n", "header expires is 'soon', not an instant in milliseconds since 1970 (0: never)"),
        (b"destination:a\nexpires:-1\n", "header expires is '-1', not an instant in milliseconds since 1970 (0: never)"),
        (
            b"destination:a\nexpires:9223372036854775808\n",
            "header expires is '9223372036854775808', not an instant in milliseconds since 1970 (0: never)",
        ),
        (b"destination:a\npersistent:yes\n", "header persistent is 'yes', neither true nor false"),
        (
            b"destination:a\nreliability:total\n",
            "header reliability is 'total', none of best-effort, express, reliable-np, reliable, assured, as-destination",
        ),
    ],
)
def test_a_bad_header_is_refused_naming_header_and_value(headers: bytes, sentence: str, cut: Cut) -> None:
    client = connected(cut)
    assert client.says(b"SEND\nreceipt:r5\n" + headers + b"\nbody\0") == []
    error = client.error()
    assert error.headers["message"] == sentence
    assert error.headers["receipt-id"] == "r5"


def test_a_bad_header_is_refused_before_the_body_is_taken(cut: Cut) -> None:
    client = connected(cut, limits=Limits(large_body_octets=100))
    assert client.says(b"SEND\ndestination:a\npriority:x\ncontent-length:100000\n\n" + b"x" * 500) == []
    assert client.error().headers["message"] == "header priority is 'x', not a digit 0 to 9"


@pytest.mark.parametrize("octets", [b"SEND\n\n\0", b"SEND\r\n\r\n\0", b"SEND\n\0", b"SEND\r\n\n\0"])
def test_a_send_without_any_header_is_told_the_one_that_it_needs(octets: bytes, cut: Cut) -> None:
    client = connected(cut)
    assert client.says(octets) == []
    assert client.error().headers["message"] == "SEND needs header destination"


NO_ERROR = (Refusal.NO_SUCH_DELIVERY, Refusal.TEMPORARY_DESTINATION_GONE)


@pytest.mark.parametrize("refusal", [refusal for refusal in Refusal if refusal not in NO_ERROR])
def test_every_refusal_of_a_send_becomes_an_error_that_names_receipt_and_particulars(refusal: Refusal, cut: Cut) -> None:
    client = connected(cut)
    (send,) = client.says(b"SEND\ndestination:a\nreceipt:9\n\nx\0")
    client.gets(Refused(PEER, send.token, refusal, "queue/a"))
    error = client.error()
    assert error.headers == {
        "message": REFUSALS[refusal],
        "content-type": "text/plain",
        "content-length": str(len(error.body)),
        "receipt-id": "9",
    }
    assert error.body.decode() == f"{refusal.value}: queue/a"


def test_the_table_of_refusals_is_total_and_its_texts_differ() -> None:
    assert set(REFUSALS) == set(Refusal)
    assert len(set(REFUSALS.values())) == len(Refusal)


def test_after_an_error_the_machine_hears_and_says_nothing_more(cut: Cut) -> None:
    client = connected(cut)
    (send,) = client.says(b"SEND\ndestination:a\nreceipt:1\n\nx\0NONSENSE\n\n\0SEND\ndestination:b\nreceipt:2\n\nx\0")
    assert client.error().headers["message"] == "'NONSENSE' is not a command that a client may send now"
    assert client.says(b"SEND\ndestination:b\n\nx\0NONSENSE\n\n\0") == []
    client.confirm([send])
    client.machine.tick(client.now + 10_000_000)
    assert client.octets() == b"" and client.machine.kept_octets == 0 and client.machine.next_deadline() is None


# -- accepted -----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("destination", "address"),
    [
        (b"/queue/a", "queue/a"),
        (b"orders", "queue/orders"),
        (b"/queue/a/b", "queue/a/b"),
        ("/queue/größe".encode(), "queue/größe"),
        (b"a\\cb", "queue/a:b"),
        (b"/queue/mq.sys.dmq", "queue/mq.sys.dmq"),
    ],
)
def test_destinations_become_canonical_addresses(destination: bytes, address: str, cut: Cut) -> None:
    assert sent(cut, b"destination:" + destination + b"\n").address == address


@pytest.mark.parametrize(
    ("headers", "reliability"),
    [
        (b"", Reliability.EXPRESS),
        (b"persistent:false\n", Reliability.EXPRESS),
        (b"persistent:true\n", Reliability.ASSURED),
        (b"persistent:TRUE\n", Reliability.ASSURED),
        (b"reliability:best-effort\n", Reliability.BEST_EFFORT),
        (b"reliability:express\npersistent:true\n", Reliability.EXPRESS),
        (b"reliability:reliable-np\n", Reliability.RELIABLE_NONPERSISTENT),
        (b"reliability:reliable\npersistent:false\n", Reliability.RELIABLE),
        (b"reliability:assured\n", Reliability.ASSURED),
    ],
)
def test_reliability_follows_its_own_header_before_persistent(headers: bytes, reliability: Reliability, cut: Cut) -> None:
    assert sent(cut, b"destination:a\n" + headers).message.header.reliability is reliability


def test_priority_and_expiration_are_read_and_have_jms_defaults(cut: Cut) -> None:
    header = sent(cut, b"destination:a\n").message.header
    assert (header.priority, header.expiration) == (4, 0)
    header = sent(cut, b"destination:a\npriority:9\nexpires:1700000000000\n").message.header
    assert (header.priority, header.expiration) == (9, 1700000000000)


def test_the_size_counts_headers_and_body(cut: Cut) -> None:
    message = sent(cut, b"destination:a\nreceipt:1\ncontent-length:4\n").message
    assert (message.body, message.size) == (b"body", len(b"destination:a") + 4)


def test_headers_are_kept_in_order_without_what_concerned_the_frame_or_is_the_brokers_to_say(cut: Cut) -> None:
    octets = sent(
        cut,
        b"destination:/queue/a\nreceipt:1\ncontent-length:4\nmessage-id:forged\nsubscription:forged\nack:forged\nredelivered:true\n"
        b"JMSXDeliveryCount:9\ntimestamp:1\ntype:order\ncorrelation-id:c1\nreply-to:/queue/b\ncontent-type:text/plain\npriority:5\nmy key:my value\n",
    ).message.header.octets
    assert octets == (
        b"destination:/queue/a\ntype:order\ncorrelation-id:c1\nreply-to:/queue/b\ncontent-type:text/plain\npriority:5\nmy key:my value"
    )


def test_no_sender_can_tell_that_a_message_is_dead_or_the_end_of_browsing(cut: Cut) -> None:
    forged = b"".join(b"%b:forged\n" % name.encode() for name in sorted(ADDED))
    octets = sent(cut, b"destination:a\nbrowser:end\n" + forged + b"original:mine\n").message.header.octets
    assert octets == b"destination:a\noriginal:mine"


@pytest.mark.parametrize(
    ("version", "written"),
    [
        ("1.2", b"fo\\co:b\\\\a\\nr\\r!"),
        ("1.1", b"fo\\co:b\\\\a\\nr\r!"),
    ],
)
def test_headers_are_stored_the_same_whatever_version_they_were_written_in(version: str, written: bytes, cut: Cut) -> None:
    octets = sent(cut, b"destination:a\n" + written + b"\n", version).message.header.octets
    assert octets == b"destination:a\nfo\\co:b\\\\a\\nr\\r!"
    assert read_canonical(octets) == {"destination": "a", "fo:o": "b\\a\nr\r!"}


def test_what_1_0_writes_literally_is_stored_escaped(cut: Cut) -> None:
    assert sent(cut, b"destination:a\nurl: http://a\\b\n", "1.0").message.header.octets == b"destination:a\nurl:http\\c//a\\\\b"


@pytest.mark.parametrize(
    ("headers", "delay"),
    [
        (b"", 0),
        (b"delay:0\n", 0),
        (b"delay:1500\n", 1500),
        (b"AMQ_SCHEDULED_DELAY:60000\n", 60_000),
        (b"AMQ_SCHEDULED_DELAY:60000\ndelay:1\n", 1),
        (b"delay:315360000000\n", 315_360_000_000),
    ],
)
def test_a_delay_is_read_under_both_of_its_names_and_is_not_sent_on(headers: bytes, delay: int, cut: Cut) -> None:
    header = sent(cut, b"destination:a\n" + headers + b"k:v\n").message.header
    assert (header.delay, header.octets) == (delay, b"destination:a\nk:v")


def test_delayed_messages_with_equal_sections_share_their_header(cut: Cut) -> None:
    sends = connected(cut).says(b"".join(b"SEND\ndestination:a\ndelay:50\nreceipt:%d\n\nx\0" % number for number in range(5)))
    assert len({id(send.message.header) for send in sends}) == 1


def test_messages_with_equal_sections_share_their_header(cut: Cut) -> None:
    client = connected(cut)
    sends = client.says(b"".join(b"SEND\ndestination:a\nreceipt:%d\ncontent-length:%d\n\n%b\0" % (n, n, b"x" * n) for n in range(5)))
    assert len({id(send.message.header) for send in sends}) == 1
    assert [send.message.size for send in sends] == [13, 14, 15, 16, 17]


# -- receipts -----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("receipt", [b"message-12345", b"", b" padded ", b"a\\cb\\nc\\\\", "Größe".encode()])
def test_a_receipt_comes_back_as_it_was_written_and_only_when_confirmed(receipt: bytes, cut: Cut) -> None:
    client = connected(cut)
    events = client.says(b"SEND\ndestination:a\nreceipt:%b\n\nx\0" % receipt)
    assert client.octets() == b""
    client.confirm(events)
    assert client.octets() == b"RECEIPT\nreceipt-id:%b\n\n\0" % receipt


def test_a_send_without_receipt_asks_for_no_confirmation(cut: Cut) -> None:
    assert sent(cut, b"destination:a\n").token is None


def test_reading_pauses_while_too_many_sends_are_unconfirmed_and_heart_beats_are_not_missed_then() -> None:
    client = Client(limits=Limits(unconfirmed_max=3))
    client.connects(b"heart-beat:1000,0\n")
    send = b"SEND\ndestination:a\nreceipt:1\n\nx\0"
    sends = client.says(send * 2)
    assert not client.machine.wants_pause
    sends += client.says(send)
    assert client.machine.wants_pause
    client.now += 100_000
    client.machine.tick(client.now)
    assert not client.machine.wants_close
    client.confirm(sends[:1])
    assert not client.machine.wants_pause


def test_reading_pauses_while_too_many_octets_are_unconfirmed() -> None:
    client = Client(limits=Limits(unconfirmed_octets_max=1000))
    client.connects()
    sends = client.says(b"SEND\ndestination:a\nreceipt:1\n\n" + b"x" * 1000 + b"\0")
    assert client.machine.wants_pause
    client.confirm(sends)
    assert not client.machine.wants_pause


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (Limits(unconfirmed_max=1), "more than 16 sends wait for their receipt"),
        (Limits(unconfirmed_octets_max=10), "more than 160 octets wait for their receipt"),
    ],
)
def test_a_connection_with_subscriptions_is_not_paused_but_told_its_limit(limits: Limits, sentence: str, cut: Cut) -> None:
    client = connected(cut, limits=limits)
    client.subscribes()
    client.says(b"SEND\ndestination:a\nreceipt:1\n\nx\0" * 11)
    assert not client.machine.wants_pause and not client.machine.wants_close
    client.says(b"SEND\ndestination:a\nreceipt:1\n\nx\0" * 6)
    assert client.error().headers["message"] == sentence


def test_two_reasons_to_close_give_one_error(cut: Cut) -> None:
    client = connected(cut, limits=Limits(unconfirmed_max=1))
    client.subscribes()
    client.says(b"SEND\ndestination:a\nreceipt:1\n\nx\0" * 16 + b"SEND\ndestination:a\nreceipt:1\n\nx\0NONSENSE\n\n\0")
    assert client.error().command == "ERROR"


def test_remembering_sections_takes_memory_in_proportion_to_their_octets() -> None:
    client = Client()
    client.connects()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(600):
            lines = b"".join(b"%x:%d\n" % (letter, number) for letter in range(120))
            client.says(b"SEND\ndestination:a\n" + lines + b"\n\0")
        assert tracemalloc.get_traced_memory()[0] - before < 3_000_000
    finally:
        tracemalloc.stop()
    assert not client.machine.wants_close


# -- large bodies -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sized", [True, False], ids=["with content-length", "without"])
def test_a_large_body_goes_out_in_parts_before_its_send(sized: bool, cut: Cut) -> None:
    client = connected(cut, limits=Limits(large_body_octets=100, part_octets_max=300))
    body = b"0123456789" * 90
    length = b"content-length:900\n" if sized else b""
    events = client.says(b"SEND\ndestination:a\nreceipt:1\n" + length + b"\n" + body + b"\0SEND\ndestination:b\n\nx\0")
    *parts, large, small = events
    assert b"".join(part.octets for part in parts if isinstance(part, BodyPart)) == body
    assert len(parts) >= 3 and all(len(part.octets) <= 300 for part in parts)
    assert isinstance(large, Send) and isinstance(small, Send)
    assert (large.address, large.token, large.message.body, large.message.size) == ("queue/a", b"1", None, 13 + 900)
    assert small.message.body == b"x"
    assert not client.machine.wants_pause
