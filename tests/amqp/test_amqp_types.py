"""Values: every encoding of the specification (types, 1.6), read and written; what is none is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from broker_core.amqp.decoding import decode
from broker_core.amqp.encoding import encode
from broker_core.amqp.types import (
    DEPTH_MAX, UUID, VALUES_MAX, Array, Byte, Char, Decimal32, Decimal64, Decimal128, Described, Float, Int, Malformed, Short, Symbol, Timestamp, UByte, UInt,
    ULong, UShort,
)  # fmt: skip

from tests.amqp.values import shown, values

LONG = "x" * 256
VECTORS = [
    ("40", None),
    ("41", True),
    ("42", False),
    ("50ff", UByte(255)),
    ("600102", UShort(258)),
    ("43", UInt(0)),
    ("52ff", UInt(255)),
    ("7000000100", UInt(256)),
    ("44", ULong(0)),
    ("53ff", ULong(255)),
    ("80ffffffffffffffff", ULong((1 << 64) - 1)),
    ("5180", Byte(-128)),
    ("618000", Short(-32768)),
    ("5480", Int(-128)),
    ("71ffffff7f", Int(-129)),
    ("557f", 127),
    ("810000000000000080", 128),
    ("723fc00000", Float(1.5)),
    ("823ff8000000000000", 1.5),
    ("7422500001", Decimal32(bytes.fromhex("22500001"))),
    ("842238000000000001", Decimal64(bytes.fromhex("2238000000000001"))),
    ("94" + "00" * 15 + "01", Decimal128(bytes(15) + b"\1")),
    ("730001f600", Char("\U0001f600")),
    ("83ffffffffffffffff", Timestamp(-1)),
    ("98" + "0f" * 16, UUID(b"\x0f" * 16)),
    ("a003000102", b"\0\1\2"),
    ("b000000100" + "61" * 256, b"a" * 256),
    ("a102c3a4", "ä"),
    ("b100000100" + "78" * 256, LONG),
    ("a3036f6e65", Symbol("one")),
    ("b300000100" + "78" * 256, Symbol(LONG)),
    ("45", []),
    ("c0050241a10178", [True, "x"]),
    ("d00000010900000001b100000100" + "78" * 256, [LONG]),
    ("c10100", {}),
    ("c103024140", {True: None}),
    ("d10000010b000000025501b100000100" + "78" * 256, {1: LONG}),
    ("e006026000010002", Array(UShort, [UShort(1), UShort(2)])),
    ("e00602a301610162", Array(Symbol, [Symbol("a"), Symbol("b")])),
    ("e00402560100", Array(bool, [True, False])),
    ("e0050300530140", Array(type(None), [None, None, None], ULong(1))),
    ("e01302d000000004000000000000000500000001" + "41", Array(list, [[], [True]])),
    ("f00000010900000001b000000100" + "00" * 256, Array(bytes, [bytes(256)])),
    ("00532445", Described(ULong(0x24), [])),
    ("00a303612e6241", Described(Symbol("a.b"), True)),
]
"""As they are written."""
ALSO_READ = [
    ("5601", True),
    ("5600", False),
    ("7000000001", UInt(1)),
    ("800000000000000001", ULong(1)),
    ("7100000001", Int(1)),
    ("810000000000000001", 1),
    ("b00000000161", b"a"),
    ("b10000000161", "a"),
    ("b30000000161", Symbol("a")),
    ("c00100", []),
    ("d00000000400000000", []),
    ("d00000000500000001" + "40", [None]),
    ("d10000000400000000", {}),
    ("f00000000700000001600102", Array(UShort, [UShort(258)])),
    ("e0020241", Array(bool, [True, True])),
    ("e00201" + "45", Array(list, [[]])),
    ("00a30161" + "00530141", Described(Symbol("a"), Described(ULong(1), True))),
]
MALFORMED = {
    "nothing": "",
    "no constructor": "ff",
    "a reserved constructor": "46",
    "a short number": "7000",
    "a string that is longer than its octets": "a10561",
    "a long string that is longer than its octets": "b1ffffffff61",
    "a decimal that is cut off": "74000000",
    "a uuid that is cut off": "98" + "00" * 15,
    "UTF-8 that is none": "a101ff",
    "a surrogate in UTF-8": "a103eda080",
    "a symbol that is not ASCII": "a3018f",
    "a boolean of 2": "5602",
    "a surrogate": "730000d800",
    "a char beyond Unicode": "7300110000",
    "a list that ends before its values": "c0020241a10178",
    "a list that goes on after its values": "c005014140404040",
    "a list longer than its octets": "c0ff0141",
    "a list of more values than octets": "d000000005ffffffff41",
    "a map of an odd count": "c1020141",
    "a map with a key twice": "c1050441404140",
    "a map with two keys that are the same number": "c10704550140520140",
    "a map with a list as a key": "c103024540",
    "a map with a described key": "c106020053014140",
    "an array of nothing that says so": "e00100",
    "an array of four milliards of nulls": "f000000005ffffffff40",
    "an array of four milliards of empty lists": "f000000005ffffffff45",
    "an array of an unknown constructor": "e0020146",
    "an array of described values within descriptions": "e00801005301005302" + "41",
    "a descriptor that is a string": "00a1016141",
    "a descriptor that is null": "004041",
    "a descriptor that is described": "0000530141" + "41",
    "a descriptor that is a list": "004541",
    "a descriptor without a value": "005324",
}


def too_deep(opening: str, levels: int = DEPTH_MAX + 1) -> bytes:
    """Values within each other, from the inside out."""
    octets = b"\x40"
    for _ in range(levels):
        if opening == "list":
            octets = b"\xd0" + (len(octets) + 4).to_bytes(4, "big") + b"\0\0\0\1" + octets
        elif opening == "map":
            octets = b"\xd1" + (len(octets) + 5).to_bytes(4, "big") + b"\0\0\0\2\x41" + octets
        elif opening == "array":
            octets = b"\xf0" + (len(octets) + 4).to_bytes(4, "big") + b"\0\0\0\1" + octets
        else:
            octets = b"\0\x53\1" + octets
    return octets


# -- failure --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("octets", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_value_is_refused(octets: str) -> None:
    with pytest.raises(Malformed) as refused:
        decode(bytes.fromhex(octets))
    assert refused.value.condition == "amqp:decode-error"


@pytest.mark.parametrize("opening", ["list", "map", "array", "described"])
def test_values_within_values_are_bounded(opening: str) -> None:
    with pytest.raises(Malformed):
        decode(too_deep(opening, 100_000 if opening == "described" else 1000))
    with pytest.raises(Malformed):
        decode(too_deep(opening))
    decode(too_deep("list", DEPTH_MAX))


def test_a_value_has_no_more_values_within_than_are_allowed() -> None:
    with pytest.raises(Malformed):
        decode(encode([None] * (VALUES_MAX + 1)))
    assert decode(encode([None] * (VALUES_MAX - 1)))[0] == [None] * (VALUES_MAX - 1)


def test_a_value_may_not_end_beyond_what_it_lies_in() -> None:
    with pytest.raises(Malformed):
        decode(bytes.fromhex("a1036162634040"), 0, 4)
    assert decode(bytes.fromhex("a1036162634040"), 0, 5) == ("abc", 5)


@pytest.mark.parametrize("value", [1 << 63, UInt(1 << 32), UByte(-1), ULong(-1), Symbol("ä"), UUID(b"1"), object(), {1, 2}, Array(UInt, [1]), "\ud800"])
def test_what_cannot_be_said_is_not_written(value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # one sentence for each
        encode(value)


def test_what_is_too_deep_to_be_read_is_not_written() -> None:
    value: list[object] = []
    for _ in range(DEPTH_MAX + 1):
        value = [value]
    with pytest.raises(ValueError, match="deep"):
        encode(value)


# -- success --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("octets", "value"), VECTORS, ids=[octets[:12] for octets, _ in VECTORS])
def test_values_are_written_in_their_smallest_encoding(octets: str, value: object) -> None:
    assert encode(value).hex() == octets


@pytest.mark.parametrize(("octets", "value"), VECTORS + ALSO_READ, ids=[octets[:12] for octets, _ in VECTORS + ALSO_READ])
def test_every_encoding_is_read(octets: str, value: object) -> None:
    read, at = decode(bytes.fromhex(octets) + b"more")
    assert shown(read) == shown(value)
    assert at == len(octets) // 2


@given(values)
@settings(deadline=None, max_examples=500)
def test_reading_and_writing_are_inverse(value: object) -> None:
    octets = encode(value)
    read, at = decode(octets)
    assert at == len(octets)
    assert shown(read) == shown(value)
    assert encode(read) == octets
