"""Frames: what is written is read, however it is cut; what is no frame is refused."""

from __future__ import annotations

import pytest

from broker_core.amqp.frames import AMQP_HEADER, EMPTY_FRAME, FRAMING_ERROR, SASL, SASL_HEADER, Frame, ProtocolHeader, Reader, frame, sasl_frame
from broker_core.amqp.per_message import WholeTransfers
from broker_core.amqp.performatives import ACCEPTED, Attach, Disposition, Flow, Open, SaslInit, SaslMechanisms, Source, Target, Transfer
from broker_core.amqp.types import Malformed, Symbol

FRAMES = [
    Frame(0, Open("a container", max_frame_size=1 << 16, idle_time_out=30_000, desired_capabilities=("one", "two"), properties={"product": "p"})),
    Frame(1, Attach("a link", 0, True, source=Source("orders", outcomes=("amqp:accepted:list",)), target=Target("here"))),
    Frame(1, Flow(1, 400, 4, 400, 0, 7, 1000, None, True)),
    Frame(1, Transfer(0, 70_000, b"12345678", 0, False), b"octets of a message"),
    Frame(65535, Disposition(True, 1, 300, True, ACCEPTED)),
]


def read(octets: bytes, max_frame_size: int = 1 << 16) -> list[Frame | ProtocolHeader]:
    return list(Reader(max_frame_size).receive(octets))


def written() -> bytes:
    return AMQP_HEADER + b"".join(frame(each.channel, each.performative, each.payload) for each in FRAMES)


# -- failure --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("octets", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01", b"AMQX", b"\0\0\0\x08\2\0\0\0"])
def test_what_begins_with_no_protocol_header_is_refused_at_once(octets: bytes) -> None:
    with pytest.raises(Malformed, match="does not begin with a protocol header"):
        read(octets)


@pytest.mark.parametrize("head", [b"\0\0\0\x07\2\0\0\0", b"\0\1\0\1\2\0\0\0", b"\xff\xff\xff\xff\2\0\0\0", b"\0\0\0\x0c\1\0\0\0", b"\0\0\0\x0c\4\0\0\0"])
def test_a_head_that_cannot_be_is_refused_before_anything_is_kept(head: bytes) -> None:
    with pytest.raises(Malformed) as refused:
        read(AMQP_HEADER + head + bytes(4))
    assert refused.value.condition == FRAMING_ERROR


def test_frames_before_a_malformed_one_are_given() -> None:
    frames = Reader(512).receive(written() + b"\0\0\0\1\2\0\0\0")
    assert [next(frames) for _ in range(6)][1:] == FRAMES
    with pytest.raises(Malformed):
        next(frames)


@pytest.mark.parametrize("octets", [frame(0, SaslInit("PLAIN")), sasl_frame(Open("x")), frame(0, Open("x"), b"more")])
def test_a_performative_stands_where_it_may(octets: bytes) -> None:
    with pytest.raises(Malformed):
        read(AMQP_HEADER + octets)


# -- success --------------------------------------------------------------------------------------------------------------------------
def test_what_is_written_is_read() -> None:
    assert read(written()) == [ProtocolHeader(0, (1, 0, 0)), *FRAMES]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 64])
def test_frames_are_read_however_they_are_cut(size: int) -> None:
    reader, octets = Reader(1 << 16), written()
    found = [each for at in range(0, len(octets), size) for each in reader.receive(octets[at : at + size])]
    assert found == [ProtocolHeader(0, (1, 0, 0)), *FRAMES]
    assert reader.kept_octets == 0


def test_what_was_not_looked_at_is_kept() -> None:
    reader = Reader(1 << 16)
    frames = reader.receive(written())
    assert isinstance(next(frames), ProtocolHeader)
    assert next(frames) == FRAMES[0]
    frames.close()
    assert not reader.exhausted
    assert list(reader.receive(b"")) == FRAMES[1:]
    assert reader.exhausted


def test_a_reader_that_was_closed_early_is_exhausted_when_less_than_a_frame_is_left() -> None:
    reader = Reader(1 << 20)
    frames = reader.receive(SASL_HEADER + frame(0, Open("x"))[:5])
    assert isinstance(next(frames), ProtocolHeader)
    frames.close()
    assert list(reader.receive(b"")) == []
    assert reader.exhausted, "whoever waits for that would call again and again"


@pytest.mark.parametrize("cut", range(13, 60, 5))
def test_what_was_not_looked_at_behind_a_frame_in_two_pieces_is_kept(cut: int) -> None:
    reader, octets = Reader(1 << 16), written()
    assert len(list(reader.receive(octets[:cut]))) == 1
    frames = reader.receive(octets[cut:])
    assert next(frames) == FRAMES[0]
    frames.close()
    assert not reader.exhausted
    assert list(reader.receive(b"")) == FRAMES[1:]
    assert reader.kept_octets == 0


@pytest.mark.parametrize("handle", [0, 1, 255, 256, 70_000])
def test_heads_that_are_made_ready_are_of_transfers(handle: int) -> None:
    for settled in (False, True):
        transfers = WholeTransfers(3, handle, settled=settled)
        for number, tag in ((0, 1), (70_000, 1 << 40)):
            found = read(AMQP_HEADER + transfers.head(number, tag, 5) + b"12345")[1]
            assert found == Frame(3, Transfer(handle, number, tag.to_bytes(8, "big"), 0, settled), b"12345")


def test_the_layer_of_security_and_empty_frames() -> None:
    octets = SASL_HEADER + sasl_frame(SaslMechanisms(("PLAIN", "EXTERNAL"))) + AMQP_HEADER + EMPTY_FRAME + EMPTY_FRAME + frame(0, Open("x"))
    security, mechanisms, protocol, opened = read(octets)
    assert (security, protocol) == (ProtocolHeader(SASL, (1, 0, 0)), ProtocolHeader(0, (1, 0, 0)))
    assert mechanisms == Frame(0, SaslMechanisms((Symbol("PLAIN"), Symbol("EXTERNAL"))))
    assert opened == Frame(0, Open("x"))
