"""The values of AMQP 1.0 (part 1, types) in Python. `encoding` writes them, `decoding` reads them.

| AMQP | Python | | AMQP | Python |
|---|---|---|---|---|
| null, boolean | None, bool | | string, symbol | str, Symbol |
| long, double | int, float | | binary, uuid | bytes, UUID |
| ubyte, ushort, uint, ulong | UByte, UShort, UInt, ULong | | decimal32, decimal64, decimal128 | Decimal32, Decimal64, Decimal128 |
| byte, short, int | Byte, Short, Int | | list, map, array | list, dict, Array |
| float, char, timestamp | Float, Char, Timestamp | | a described value | Described |

What is read has these very classes, so that reading and writing are inverse: all but int, float, str and bytes are subclasses that say the type.
Values are written in their smallest encoding. Octets come from strangers: whatever they are, reading them gives a value or raises Malformed, takes time
in proportion to them, and memory of at most VALUES_MAX values beside their own size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

DEPTH_MAX = 32
"""Values within values; what is written is bounded by it, too, so that it can be read."""
VALUES_MAX = 1 << 16
"""Of one value that is read, within it."""
VALUES_FREE = 64
"""Elements of arrays may have no octets at all: as many values may there be beyond one for each octet."""
DECODE_ERROR = "amqp:decode-error"


class Malformed(ValueError):
    """The octets are not what they should be. The text is for the peer; `condition` the AMQP error that says so."""

    def __init__(self, text: str, condition: str = DECODE_ERROR) -> None:
        super().__init__(text)
        self.condition = condition


# -- values ---------------------------------------------------------------------------------------------------------------------------
class Symbol(str):
    """ASCII; equal to the str of the same characters."""

    __slots__ = ()


class Char(str):
    """One character."""

    __slots__ = ()


class UByte(int):
    __slots__ = ()


class UShort(int):
    __slots__ = ()


class UInt(int):
    __slots__ = ()


class ULong(int):
    __slots__ = ()


class Byte(int):
    __slots__ = ()


class Short(int):
    __slots__ = ()


class Int(int):
    __slots__ = ()


class Timestamp(int):
    """Ms since the epoch."""

    __slots__ = ()


class Float(float):
    """Of 32 bits."""

    __slots__ = ()


class UUID(bytes):
    """16 octets."""

    __slots__ = ()


class Decimal32(bytes):
    """4 octets, as received; so are the others of their size."""

    __slots__ = ()


class Decimal64(bytes):
    __slots__ = ()


class Decimal128(bytes):
    __slots__ = ()


@dataclass(slots=True)
class Array:
    """Values of one type."""

    of: type
    """Their class: of the table above; NoneType for nulls."""
    values: list[Any] = field(default_factory=list)
    descriptor: ULong | Symbol | None = None
    """That describes each of them."""


@dataclass(slots=True)
class Described:
    descriptor: ULong | Symbol
    value: Any
