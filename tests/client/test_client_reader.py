"""What the broker says, from octets: a bound on everything, and no work that grows with its square."""

from __future__ import annotations

import pytest

from broker_core.client.machine.reader import LIMITS, Delivery, Frame, Reader
from broker_core.stomp.sections import Malformed


def read(reader: Reader, octets: bytes) -> list[Delivery | bytes | Frame]:
    reader.feed(octets)
    return list(reader.frames())


def test_a_large_body_is_not_joined_at_every_read() -> None:
    reader = Reader()
    head = b"MESSAGE\nsubscription:1\nmessage-id:1\ncontent-length:1000000\n\n"
    assert read(reader, head + b"x" * 1000) == []
    under_way = reader._buffer
    for _ in range(998):
        assert read(reader, b"x" * 1000) == []
    assert reader._buffer is under_way, "it was joined before it was complete"
    assert read(reader, b"x" * 1000) == []
    (delivery,) = read(reader, b"\0")
    assert isinstance(delivery, Delivery) and delivery.body == b"x" * 1_000_000


def test_a_frame_that_is_left_unread_is_read_next() -> None:
    reader = Reader()
    reader.feed(b"RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:2\n\n\0RECEIPT\nreceipt-id:3\n\n\0RECEIPT\nrec")
    first = reader.frames()
    assert next(first) == b"1"
    first.close()
    assert list(reader.frames()) == [b"2", b"3"]
    assert read(reader, b"eipt-id:4\n\n\0") == [b"4"]


def test_a_receipt_written_otherwise_is_read_too() -> None:
    (frame,) = read(Reader(), b"RECEIPT\r\nheart:1\r\nreceipt-id:7\r\n\r\n\0")
    assert isinstance(frame, Frame) and frame.headers["receipt-id"] == "7"


@pytest.mark.parametrize(
    "octets",
    [
        b"MESSAGE\ncontent-length:%d\n\n" % (LIMITS.body_octets_max + 1), b"MESSAGE\ncontent-length:x\n\n\0", b"MESSAGE\ncontent-length:99999999999\n\n",
        b"MESSAGE\n" + b"a:b\n" * (LIMITS.header_octets_max // 4 + 1), b"SEND\ndestination:a\n\n\0", b"MESSAGE\ncontent-length:1\n\nab\0",
        b"ERROR\ncontent-length:1\n\nab\0", b"\0", b"A" * 20,
    ],
)  # fmt: skip
def test_what_is_no_frame_or_too_large_ends_the_reading(octets: bytes) -> None:
    with pytest.raises(Malformed):
        read(Reader(), octets)
