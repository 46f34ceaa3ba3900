"""Values of AMQP of every type, and what they look like beside their classes."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import strategies as st

from broker_core.amqp.types import (
    UUID, Array, Byte, Char, Decimal32, Decimal64, Decimal128, Described, Float, Int, Short, Symbol, Timestamp, UByte, UInt, ULong, UShort,
)  # fmt: skip


def _whole(bits: int, kind: type, *, signed: bool) -> st.SearchStrategy[Any]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high).map(kind)


SIMPLE: dict[type, st.SearchStrategy[Any]] = {
    type(None): st.none(),
    bool: st.booleans(),
    int: _whole(64, int, signed=True),
    float: st.floats(),
    str: st.text(max_size=300),
    bytes: st.binary(max_size=300),
    Symbol: st.text(st.characters(max_codepoint=127), max_size=300).map(Symbol),
    Char: st.characters(exclude_categories=["Cs"]).map(Char),
    UByte: _whole(8, UByte, signed=False),
    UShort: _whole(16, UShort, signed=False),
    UInt: _whole(32, UInt, signed=False),
    ULong: _whole(64, ULong, signed=False),
    Byte: _whole(8, Byte, signed=True),
    Short: _whole(16, Short, signed=True),
    Int: _whole(32, Int, signed=True),
    Timestamp: _whole(64, Timestamp, signed=True),
    Float: st.floats(width=32).map(Float),
    UUID: st.binary(min_size=16, max_size=16).map(UUID),
    Decimal32: st.binary(min_size=4, max_size=4).map(Decimal32),
    Decimal64: st.binary(min_size=8, max_size=8).map(Decimal64),
    Decimal128: st.binary(min_size=16, max_size=16).map(Decimal128),
}
simple = st.one_of(*SIMPLE.values())
descriptors = st.one_of(SIMPLE[ULong], SIMPLE[Symbol])


def _within(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(values, max_size=6)
    maps = st.dictionaries(simple.filter(lambda key: key == key), values, max_size=6)
    arrays = [
        st.builds(Array, st.just(kind), st.lists(of, max_size=6), st.none() | descriptors)
        for kind, of in (SIMPLE | {list: lists, dict: maps}).items()
    ]
    of_arrays = st.builds(Array, st.just(Array), st.lists(arrays[0] | arrays[4], max_size=3))
    return st.one_of(lists, maps, of_arrays, st.builds(Described, descriptors, values), *arrays)


values = st.recursive(simple, _within, max_leaves=12)


def shown(value: Any) -> Any:
    """With all classes, so that 1, 1.0, True and UInt(1) differ; and floats by their octets, so that NaN equals itself."""
    kind = value.__class__
    if isinstance(value, float):
        return kind, struct.pack(">d", value)
    if kind is list:
        return kind, [shown(each) for each in value]
    if kind is dict:
        return kind, [(shown(key), shown(each)) for key, each in value.items()]
    if kind is Array:
        return kind, value.of, [shown(each) for each in value.values], shown(value.descriptor)
    if kind is Described:
        return kind, shown(value.descriptor), shown(value.value)
    return kind, value
