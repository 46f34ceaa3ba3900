"""Values of AMQP 1.0 from octets. The octets come from strangers: whatever they are, reading gives a value or raises Malformed, takes time in proportion to
them, and makes no more values than VALUES_MAX.

A value that is shorter than it says ends beyond the octets or beyond what it lies in. Nobody looks at that while reading on, for what is cut out of bytes
can never be longer than they are; whoever knows the end compares it when the value has been read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from struct import Struct
from typing import Any

from .types import (
    DEPTH_MAX, UUID, VALUES_FREE, VALUES_MAX, Array, Byte, Char, Decimal32, Decimal64, Decimal128, Described, Float, Int, Malformed, Short, Symbol, Timestamp,
    UByte, UInt, ULong, UShort,
)  # fmt: skip

Read = Callable[[bytes, int], tuple[Any, int]]
"""Of a value that has no others within: from its first octet after the constructor; the value, and where it ends."""

_U32 = Struct(">I").unpack_from
_TWO_U32 = Struct(">II").unpack_from


def decode(octets: bytes, at: int = 0, end: int | None = None) -> tuple[Any, int]:
    """The value whose constructor stands at `at`, and where it ends, not beyond `end`. Raises Malformed."""
    end = len(octets) if end is None else end
    try:
        value, after = _value(octets, at, DEPTH_MAX, [min(VALUES_MAX, end - at + VALUES_FREE)])
    except (IndexError, struct.error):
        raise truncated() from None
    except UnicodeDecodeError:
        raise Malformed("a string is not valid UTF-8, or a symbol not ASCII") from None
    if after > end:
        raise truncated()
    return value, after


def truncated() -> Malformed:
    return Malformed("a value is longer than what it lies in")


def _value(octets: bytes, at: int, depth: int, room: list[int]) -> tuple[Any, int]:
    """`depth`: how many may be within each other still; `room`: how many values may come, counted down here."""
    code = octets[at]
    read = READERS[code]
    if read is not None:
        return read(octets, at + 1)
    if depth <= 0:
        raise Malformed(f"values are within each other more than {DEPTH_MAX} deep")
    if code:
        return _compound(code, octets, at + 1, depth - 1, room)
    descriptor, at = read_descriptor(octets, at + 1)
    value, at = _value(octets, at, depth - 1, room)
    return Described(descriptor, value), at


def read_descriptor(octets: bytes, at: int) -> tuple[ULong | Symbol, int]:
    """All others are reserved (types, 1.2)."""
    read = READERS[octets[at]]
    if read is not None:
        try:
            descriptor, at = read(octets, at + 1)
        except UnicodeDecodeError:
            raise Malformed("a symbol is not ASCII") from None
        if descriptor.__class__ is ULong or descriptor.__class__ is Symbol:
            return descriptor, at
    raise Malformed("a descriptor is neither an unsigned long nor a symbol")


def _compound(code: int, octets: bytes, at: int, depth: int, room: list[int]) -> tuple[Any, int]:
    """A list, a map or an array, from its size on."""
    if code in (0xC0, 0xC1, 0xE0):
        count = octets[at + 1]
        stop = at + 1 + octets[at]
        at += 2
    elif code in (0xD0, 0xD1, 0xF0):
        size, count = _TWO_U32(octets, at)
        stop = at + 4 + size
        at += 8
    else:
        raise Malformed(f"0x{code:02x} is no constructor of a value")
    room[0] -= count
    if stop > len(octets) or room[0] < 0:
        raise truncated() if stop > len(octets) else Malformed(f"a value has more than {VALUES_MAX} others within it, or more than its octets can hold")
    value: Any
    if code in (0xC0, 0xD0):
        value = []
        for _ in range(count):
            each, at = _value(octets, at, depth, room)
            value.append(each)
    elif code in (0xC1, 0xD1):
        value, at = _map(octets, at, count, depth, room)
    else:
        value, at = _array(octets, at, count, depth, room)
    if at != stop:
        raise Malformed("a list, a map or an array does not end where its size says")
    return value, at


def _map(octets: bytes, at: int, count: int, depth: int, room: list[int]) -> tuple[dict[Any, Any], int]:
    if count % 2:
        raise Malformed("a map has a key without a value")
    values: dict[Any, Any] = {}
    for _ in range(count // 2):
        read = READERS[octets[at]]
        if read is None or octets[at] == 0x45:
            raise Malformed("a key of a map is a list, a map, an array or a described value")
        key, at = read(octets, at + 1)
        values[key], at = _value(octets, at, depth, room)
    if len(values) * 2 != count:
        raise Malformed("a map has a key twice")
    return values, at


def _array(octets: bytes, at: int, count: int, depth: int, room: list[int]) -> tuple[Array, int]:
    descriptor = None
    if not octets[at]:
        descriptor, at = read_descriptor(octets, at + 1)
    code = octets[at]
    kind = KINDS.get(code)
    if kind is None:
        raise Malformed(f"0x{code:02x} is no constructor of an array's elements")
    at += 1
    read = READERS[code]
    values = []
    if read is not None:
        for _ in range(count):
            each, at = read(octets, at)
            values.append(each)
    else:
        if depth <= 0:
            raise Malformed(f"values are within each other more than {DEPTH_MAX} deep")
        for _ in range(count):
            each, at = _compound(code, octets, at, depth - 1, room)
            values.append(each)
    return Array(kind, values, descriptor), at


# -- values that have no others within ------------------------------------------------------------------------------------------------
def _fixed(form: str, kind: type | None = None) -> Read:
    """`kind`: its class, if it is not what struct gives."""
    structure = Struct(form)
    unpack, size = structure.unpack_from, structure.size
    if kind is None:

        def read(octets: bytes, at: int) -> tuple[Any, int]:
            return unpack(octets, at)[0], at + size

    else:

        def read(octets: bytes, at: int) -> tuple[Any, int]:
            return kind(unpack(octets, at)[0]), at + size

    return read


def _constant(value: Any) -> Read:
    return lambda _, at: (value, at)


def _boolean(octets: bytes, at: int) -> tuple[bool, int]:
    if octets[at] > 1:
        raise Malformed("a boolean is neither 0 nor 1")
    return octets[at] == 1, at + 1


def _char(octets: bytes, at: int) -> tuple[Char, int]:
    code = _U32(octets, at)[0]
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise Malformed("a char is no Unicode character")
    return Char(chr(code)), at + 4


def _octets(size: int, kind: type) -> Read:
    def read(octets: bytes, at: int) -> tuple[Any, int]:
        value = octets[at : at + size]
        if len(value) < size:
            raise truncated()
        return kind(value), at + size

    return read


def _binary8(octets: bytes, at: int) -> tuple[bytes, int]:
    stop = at + 1 + octets[at]
    return octets[at + 1 : stop], stop


def _binary32(octets: bytes, at: int) -> tuple[bytes, int]:
    stop = at + 4 + _U32(octets, at)[0]
    return octets[at + 4 : stop], stop


def _string8(octets: bytes, at: int) -> tuple[str, int]:
    stop = at + 1 + octets[at]
    return octets[at + 1 : stop].decode(), stop


def _string32(octets: bytes, at: int) -> tuple[str, int]:
    stop = at + 4 + _U32(octets, at)[0]
    return octets[at + 4 : stop].decode(), stop


def _symbol8(octets: bytes, at: int) -> tuple[Symbol, int]:
    stop = at + 1 + octets[at]
    return Symbol(octets[at + 1 : stop], "ascii"), stop


def _symbol32(octets: bytes, at: int) -> tuple[Symbol, int]:
    stop = at + 4 + _U32(octets, at)[0]
    return Symbol(octets[at + 4 : stop], "ascii"), stop


_BY_CODE: dict[int, tuple[type, Read | None]] = {
    0x40: (type(None), _constant(None)),
    0x41: (bool, _constant(True)),
    0x42: (bool, _constant(False)),
    0x56: (bool, _boolean),
    0x43: (UInt, _constant(UInt(0))),
    0x44: (ULong, _constant(ULong(0))),
    0x45: (list, lambda _, at: ([], at)),
    0x50: (UByte, _fixed(">B", UByte)),
    0x51: (Byte, _fixed(">b", Byte)),
    0x52: (UInt, _fixed(">B", UInt)),
    0x53: (ULong, _fixed(">B", ULong)),
    0x54: (Int, _fixed(">b", Int)),
    0x55: (int, _fixed(">b")),
    0x60: (UShort, _fixed(">H", UShort)),
    0x61: (Short, _fixed(">h", Short)),
    0x70: (UInt, _fixed(">I", UInt)),
    0x71: (Int, _fixed(">i", Int)),
    0x72: (Float, _fixed(">f", Float)),
    0x73: (Char, _char),
    0x74: (Decimal32, _octets(4, Decimal32)),
    0x80: (ULong, _fixed(">Q", ULong)),
    0x81: (int, _fixed(">q")),
    0x82: (float, _fixed(">d")),
    0x83: (Timestamp, _fixed(">q", Timestamp)),
    0x84: (Decimal64, _octets(8, Decimal64)),
    0x94: (Decimal128, _octets(16, Decimal128)),
    0x98: (UUID, _octets(16, UUID)),
    0xA0: (bytes, _binary8),
    0xA1: (str, _string8),
    0xA3: (Symbol, _symbol8),
    0xB0: (bytes, _binary32),
    0xB1: (str, _string32),
    0xB3: (Symbol, _symbol32),
    0xC0: (list, None),
    0xC1: (dict, None),
    0xD0: (list, None),
    0xD1: (dict, None),
    0xE0: (Array, None),
    0xF0: (Array, None),
}
"""By constructor: the class, and how to read it; None: it has others within."""
KINDS = {code: kind for code, (kind, _) in _BY_CODE.items()}
READERS: list[Read | None] = [_BY_CODE[code][1] if code in _BY_CODE else None for code in range(256)]
