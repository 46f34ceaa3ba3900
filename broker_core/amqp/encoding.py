"""Values of AMQP 1.0 as octets, each in its smallest encoding."""

from __future__ import annotations

import struct
from collections.abc import Callable
from struct import Struct
from typing import Any

from .types import (
    DEPTH_MAX, UUID, Array, Byte, Char, Decimal32, Decimal64, Decimal128, Described, Float, Int, Short, Symbol, Timestamp, UByte, UInt, ULong, UShort,
)  # fmt: skip

_U16, _U32, _U64 = Struct(">H").pack, Struct(">I").pack, Struct(">Q").pack
_I32, _I64 = Struct(">i").pack, Struct(">q").pack


def encode(value: Any) -> bytes:
    """The value with its constructor. Raises ValueError for what AMQP cannot say: a number out of its type's range, a value too deep within others."""
    try:
        return _encode(value, DEPTH_MAX)
    except struct.error as error:
        raise ValueError(f"{type(value).__name__} {str(value)[:40]!r} cannot be written: {error}") from None


def _encode(value: Any, depth: int) -> bytes:
    write = WRITERS.get(value.__class__)
    if write is not None:
        return write(value)
    if depth <= 0:
        raise ValueError(f"values are within each other more than {DEPTH_MAX} deep")
    depth -= 1
    kind = value.__class__
    if kind is list:
        return write_list([_encode(each, depth) for each in value])
    if kind is dict:
        parts = [_encode(each, depth) for pair in value.items() for each in pair]
        return _sized(0xC1, b"".join(parts), len(parts))
    if kind is Described:
        return b"\0" + _encode(value.descriptor, depth) + _encode(value.value, depth)
    if kind is Array:
        return _encode_array(value, depth)
    raise ValueError(f"AMQP has no type for {kind.__name__}")


def write_list(parts: list[bytes]) -> bytes:
    """A list of encoded values."""
    return _sized(0xC0, b"".join(parts), len(parts)) if parts else b"\x45"


def _sized(code: int, octets: bytes, count: int) -> bytes:
    """A list, a map or an array: `code` is that of the short form."""
    size = len(octets)
    if size < 255 and count < 256:
        return bytes((code, size + 1, count)) + octets
    return bytes((code + 0x10,)) + _U32(size + 4) + _U32(count) + octets


def _encode_array(array: Array, depth: int) -> bytes:
    """All elements have one constructor: the shortest that is wide enough for each."""
    for each in array.values:
        if each.__class__ is not array.of:
            raise ValueError(f"an array of {array.of.__name__} has an element that is of type {type(each).__name__}")
    code, write = ARRAY_CODES[array.of]
    if array.of is str or array.of is Symbol or array.of is bytes:
        parts = [each if array.of is bytes else each.encode("ascii" if array.of is Symbol else "utf-8") for each in array.values]
        if all(len(part) < 256 for part in parts):
            parts = [bytes((len(part),)) + part for part in parts]
        else:
            code += 0x10
            parts = [_U32(len(part)) + part for part in parts]
    elif write is not None:
        parts = [write(each) for each in array.values]
    else:
        parts = [_long_form(_encode(each, depth)) for each in array.values]
    constructor = bytes((code,)) if array.descriptor is None else b"\0" + _encode(array.descriptor, depth) + bytes((code,))
    return _sized(0xE0, constructor + b"".join(parts), len(parts))


def _long_form(octets: bytes) -> bytes:
    """A compound value without its constructor, with 32-bit size and count."""
    if octets[0] == 0x45:
        return _U32(4) + _U32(0)
    if octets[0] < 0xD0 or 0xE0 <= octets[0] < 0xF0:
        return _U32(octets[1] + 3) + _U32(octets[2]) + octets[3:]
    return octets[1:]


def write_binary(value: bytes) -> bytes:
    size = len(value)
    return bytes((0xA0, size)) + value if size < 256 else b"\xb0" + _U32(size) + value


def write_string(value: str) -> bytes:
    octets = value.encode()
    size = len(octets)
    return bytes((0xA1, size)) + octets if size < 256 else b"\xb1" + _U32(size) + octets


def write_symbol(value: str) -> bytes:
    octets = value.encode("ascii")
    size = len(octets)
    return bytes((0xA3, size)) + octets if size < 256 else b"\xb3" + _U32(size) + octets


def write_boolean(value: bool) -> bytes:
    return b"\x41" if value else b"\x42"


_SMALL_UINTS = [b"\x43", *(bytes((0x52, value)) for value in range(1, 256))]


def write_uint(value: int) -> bytes:
    return _SMALL_UINTS[value] if 0 <= value < 256 else b"\x70" + _U32(value)


def write_ulong(value: int) -> bytes:
    if not value:
        return b"\x44"
    return bytes((0x53, value)) if 0 < value < 256 else b"\x80" + _U64(value)


def write_int(value: int) -> bytes:
    return bytes((0x54, value & 0xFF)) if -128 <= value < 128 else b"\x71" + _I32(value)


def write_long(value: int) -> bytes:
    return bytes((0x55, value & 0xFF)) if -128 <= value < 128 else b"\x81" + _I64(value)


def _fixed(code: int, form: str) -> Callable[[Any], bytes]:
    pack, constructor = Struct(form).pack, bytes((code,))
    return lambda value: constructor + pack(value)


def _octets(code: int, size: int) -> Callable[[bytes], bytes]:
    constructor = bytes((code,))

    def write(value: bytes) -> bytes:
        if len(value) != size:
            raise ValueError(f"a value of {size} octets has {len(value)}")
        return constructor + value

    return write


def _pack_char(value: str) -> bytes:
    if len(value) != 1:
        raise ValueError(f"a char of {len(value)} characters")
    return _U32(ord(value))


_UUID, _DECIMAL32, _DECIMAL64, _DECIMAL128 = _octets(0x98, 16), _octets(0x74, 4), _octets(0x84, 8), _octets(0x94, 16)

WRITERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"\x40",
    bool: write_boolean,
    int: write_long,
    float: _fixed(0x82, ">d"),
    str: write_string,
    bytes: write_binary,
    Symbol: write_symbol,
    UByte: _fixed(0x50, ">B"),
    UShort: _fixed(0x60, ">H"),
    UInt: write_uint,
    ULong: write_ulong,
    Byte: _fixed(0x51, ">b"),
    Short: _fixed(0x61, ">h"),
    Int: write_int,
    Float: _fixed(0x72, ">f"),
    Char: lambda value: b"\x73" + _pack_char(value),
    Timestamp: _fixed(0x83, ">q"),
    UUID: _UUID,
    Decimal32: _DECIMAL32,
    Decimal64: _DECIMAL64,
    Decimal128: _DECIMAL128,
}
"""Of values that have no others within."""

ARRAY_CODES: dict[type, tuple[int, Callable[[Any], bytes] | None]] = {
    type(None): (0x40, lambda _: b""),
    bool: (0x56, lambda value: b"\1" if value else b"\0"),
    int: (0x81, _I64),
    float: (0x82, Struct(">d").pack),
    str: (0xA1, None),
    bytes: (0xA0, None),
    Symbol: (0xA3, None),
    UByte: (0x50, Struct(">B").pack),
    UShort: (0x60, Struct(">H").pack),
    UInt: (0x70, _U32),
    ULong: (0x80, _U64),
    Byte: (0x51, Struct(">b").pack),
    Short: (0x61, Struct(">h").pack),
    Int: (0x71, _I32),
    Float: (0x72, Struct(">f").pack),
    Char: (0x73, _pack_char),
    Timestamp: (0x83, _I64),
    UUID: (0x98, lambda value: _UUID(value)[1:]),
    Decimal32: (0x74, lambda value: _DECIMAL32(value)[1:]),
    Decimal64: (0x84, lambda value: _DECIMAL64(value)[1:]),
    Decimal128: (0x94, lambda value: _DECIMAL128(value)[1:]),
    list: (0xD0, None),
    dict: (0xD1, None),
    Array: (0xF0, None),
}
"""How elements of arrays are written: the code of their constructor, and an element without it; None: it has a size of its own."""
