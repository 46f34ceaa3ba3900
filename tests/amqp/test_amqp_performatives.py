"""Composite types: the table reads what it writes; the short ways for what comes with every message say what the table says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.amqp.composite import BY_CLASS, BY_CODE, BY_NAME, read_composite, write_composite
from broker_core.amqp.encoding import encode
from broker_core.amqp.frames import AMQP_HEADER, Frame, Reader, frame
from broker_core.amqp.per_message import READ
from broker_core.amqp.performatives import (
    ACCEPTED, RECEIVER, Accepted, Attach, Begin, Coordinator, Disposition, Error, Flow, Open, Rejected, Source, Target, TransactionalState, Transfer,
)  # fmt: skip
from broker_core.amqp.types import Array, Described, Malformed, Symbol, UByte, UInt, ULong
from tests.amqp.composites import composite, composites
from tests.amqp.values import shown

CODES = {
    0x10: "open", 0x11: "begin", 0x12: "attach", 0x13: "flow", 0x14: "transfer", 0x15: "disposition", 0x16: "detach", 0x17: "end", 0x18: "close",
    0x1D: "error", 0x23: "received", 0x24: "accepted", 0x25: "rejected", 0x26: "released", 0x27: "modified", 0x28: "source", 0x29: "target",
    0x2B: "delete-on-close", 0x2C: "delete-on-no-links", 0x2D: "delete-on-no-messages", 0x2E: "delete-on-no-links-or-messages", 0x30: "coordinator",
    0x31: "declare", 0x32: "discharge", 0x33: "declared", 0x34: "transactional-state", 0x40: "sasl-mechanisms", 0x41: "sasl-init",
    0x42: "sasl-challenge", 0x43: "sasl-response", 0x44: "sasl-outcome", 0x70: "header", 0x73: "properties",
}  # fmt: skip


def said(descriptor: int | str, *fields: object) -> bytes:
    """A described list, whatever it holds."""
    return encode(Described(ULong(descriptor) if isinstance(descriptor, int) else Symbol(descriptor), list(fields)))


def read(octets: bytes) -> object:
    value, at = read_composite(octets, 0, len(octets))
    assert at == len(octets)
    return value


def framed(octets: bytes) -> object:
    """As a frame's performative."""
    data = (8 + len(octets)).to_bytes(4, "big") + b"\2\0\0\0" + octets
    _, found = Reader(1 << 16).receive(AMQP_HEADER + data)
    assert isinstance(found, Frame)
    return found.performative


# -- failure --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("octets", "sentence"),
    [
        (said(0x99), "nothing is described by 153"),
        (said("amqp:nothing:list"), "nothing is described by amqp:nothing:list"),
        (encode(Described(ULong(0x10), {})), "open is not a list"),
        (encode([]), "is not described"),
        (said(0x10), "open has no container-id"),
        (said(0x10, None), "open has no container-id"),
        (said(0x11, None, UInt(0), UInt(1)), "begin has no outgoing-window"),
        (said(0x10, 5), "container-id of open is not a string"),
        (said(0x10, "x", None, ULong(5)), "max-frame-size of open is not a uint"),
        (said(0x18, None, None), "close has 2 fields, 1 are known"),
        (said(0x18, Described(ULong(0x24), [])), "accepted is not an error"),
        (said(0x12, "x", UInt(0), False, UByte(3)), "3 is not a ubyte that has a meaning there"),
        (said(0x28, "x", None, Symbol("sometimes")), "sometimes is not a symbol that has a meaning there"),
        (said(0x14, UInt(0), UInt(0), bytes(33)), "a delivery-tag has 33 octets"),
        (said(0x32, bytes(33)), "a txn-id has 33 octets"),
        (said(0x15, True, UInt(0), None, None, Described(ULong(0x28), [])), "source is not a delivery state"),
        (said(0x34, b"x", Described(ULong(0x33), [b"y"])), "declared is not an outcome"),
        (said(0x25, Described(ULong(0x1D), [Symbol("x"), None, {5: 5}])), "a key of a map of fields is not a symbol"),
        (said(0x40), "sasl-mechanisms has no sasl-server-mechanisms"),
        (said(0x30, Array(str, ["x"])), "capabilities of coordinator is not a symbol"),
    ],
)
def test_what_the_table_does_not_have_is_refused(octets: bytes, sentence: str) -> None:
    with pytest.raises(Malformed, match=sentence):
        read(octets)


@pytest.mark.parametrize(
    "octets",
    [
        said(0x14, UInt(0), UInt(1), bytes(33), UInt(0)),
        said(0x14, None, UInt(1), b"x", UInt(0)),
        said(0x14, UInt(0), UInt(1), b"x", UInt(0), None, None, UByte(2)),
        said(0x14, UInt(0), UInt(1), b"x", 0),
        said(0x14, UInt(0), UInt(1), b"x", UInt(0))[:-1],
        said(0x14, UInt(0), UInt(1), b"x", *[None] * 9),
        said(0x15, True, None, None),
        said(0x15, True, UInt(0), None, 5),
        said(0x15, 5, UInt(0), None),
        said(0x13, None, None, UInt(0), UInt(0)),
        said(0x13, None, UInt(0), UInt(0), "x"),
        said(0x13, *[UInt(0)] * 8, UInt(1)),
        b"\0\x53\x14\xc0\x02\x04\x43",
        b"\0\x53\x14\xc0",
        b"\0\x53\x14",
        b"\0\x53\x14\xc0\xff\x04\x43\x43\x40\x43",
        b"\0\x53\x14\xc0\x06\x04\x43\x43\xa0\x20\x43",
    ],
)
def test_the_short_ways_refuse_what_the_table_refuses(octets: bytes) -> None:
    with pytest.raises(Malformed):
        read_composite(octets, 0, len(octets))
    with pytest.raises(Malformed):
        framed(octets)


# -- success --------------------------------------------------------------------------------------------------------------------------
def test_the_table_has_every_composite_type_of_the_specification() -> None:
    assert {code: of.name for code, of in BY_CODE.items()} == CODES
    assert set(BY_NAME) == {f"amqp:{name}:list" for name in CODES.values()}
    assert len(BY_CLASS) == len(CODES)


@given(composites)
@settings(deadline=None, max_examples=400)
def test_reading_and_writing_are_inverse(value: object) -> None:
    again = read(write_composite(value))
    assert again.__class__ is value.__class__
    for of in BY_CLASS[value.__class__].fields:
        one, other = getattr(value, of.name), getattr(again, of.name)
        assert one == other or shown(one) == shown(other) or "nan" in repr(one)


@given(st.one_of(composite("transfer"), composite("disposition"), composite("flow")), st.binary(max_size=40))
@settings(deadline=None, max_examples=600)
def test_the_short_ways_say_what_the_table_says(value: object, payload: bytes) -> None:
    payload = payload if isinstance(value, Transfer) else b""
    octets = frame(5, value, payload)
    by_table = write_composite(value)
    assert repr(framed(by_table)) == repr(read(by_table))
    _, found = Reader(1 << 20).receive(AMQP_HEADER + octets)
    assert repr(found) == repr(Frame(5, read(by_table), payload))


def test_the_short_ways_are_taken() -> None:
    for value in (
        Transfer(300, 70_000, b"12345678", 0, False),
        Transfer(0, None, None, None, None, True),
        Transfer(1, 1, b"1", 0, None, state=TransactionalState(b"0123", ACCEPTED)),
        Disposition(RECEIVER, 5, None, True, ACCEPTED),
        Disposition(RECEIVER, 5, 9, True, Rejected(Error("amqp:not-found", "no"))),
        Flow(0, 1000, 5, 1000, 0, 7, 100),
        Flow(None, 1000, 5, 1000, echo=True),
    ):
        octets = frame(0, value)
        found = READ[octets[8:11]](octets, 11, len(octets))
        assert found == (value, len(octets))


def test_what_is_left_out_has_its_default() -> None:
    assert read(said(0x10, "x")) == Open("x", max_frame_size=0xFFFFFFFF, channel_max=65535)
    assert read(said(0x12, "x", UInt(1), True)) == Attach("x", 1, True, 2, 0)
    assert read(said(0x28)) == Source(expiry_policy="session-end", durable=0, outcomes=())
    assert write_composite(Open("x", max_frame_size=0xFFFFFFFF)) == said(0x10, "x")
    assert write_composite(Begin(None, 0, 1, 2)) == said(0x11, None, UInt(0), UInt(1), UInt(2))
    assert write_composite(Accepted()) == b"\0\x53\x24\x45"


def test_symbols_stand_alone_or_in_an_array_and_describe_as_numbers_do() -> None:
    assert read(said(0x30, Symbol("a"))) == read(said("amqp:coordinator:list", Array(Symbol, [Symbol("a")]))) == Coordinator(("a",))
    assert read(said(0x30, Array(Symbol, [Symbol("a"), Symbol("b")]))) == Coordinator(("a", "b"))
    assert read(said(0x29, "y")) == Target("y")


def test_names_in_maps_of_fields_are_written_as_symbols() -> None:
    octets = write_composite(Open("x", properties={"product": "p"}))
    assert encode(Symbol("product")) in octets
    assert encode("p") in octets
