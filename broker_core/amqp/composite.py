"""Composite types: described lists whose fields have names and types. `performatives` is their table; here is what reads and writes by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from .decoding import decode
from .encoding import (
    encode, write_binary, write_boolean, write_list, write_string, write_symbol, write_uint, write_ulong,
)  # fmt: skip
from .types import UUID, Array, Described, Malformed, Symbol, Timestamp, UByte, UInt, ULong, UShort

NULL = b"\x40"


@dataclass(slots=True, frozen=True)
class Kind:
    """The type of a field."""

    name: str
    """With its article, as in errors."""
    classes: tuple[type, ...]
    """Of values on the wire; empty: any."""
    write: Callable[[Any], bytes]
    read: Callable[[Any], Any] | None = None
    """From the value on the wire to that of the attribute; raises Malformed. None: they are the same."""


def wire(kind: Kind, default: Any = None, *, mandatory: bool = False, multiple: bool = False) -> Any:
    """A field of a composite type. One with a default has it when the peer leaves it out, and is left out when it has it. A multiple one is a tuple."""
    return field(default=() if multiple else default, metadata={"wire": (kind, mandatory, multiple)})


@dataclass(slots=True)
class _Field:
    name: str
    """Of the attribute."""
    kind: Kind
    mandatory: bool
    multiple: bool
    default: Any


class Composite:
    """What is known of one composite type."""

    __slots__ = ("code", "constructor", "fields", "kind", "name", "prefix")

    def __init__(self, kind: type, code: int, name: str) -> None:
        self.kind, self.code, self.name = kind, code, name
        self.prefix = b"\0" + encode(ULong(code))
        self.fields = []
        for each in fields(kind):
            of, mandatory, multiple = each.metadata["wire"]
            self.fields.append(_Field(each.name, of, mandatory, multiple, each.default))

    def make(self, values: list[Any]) -> Any:
        """From the values of the list."""
        known = self.fields
        if len(values) > len(known):
            raise Malformed(f"{self.name} has {len(values)} fields, {len(known)} are known")
        made = []
        for each, value in zip(known, values, strict=False):
            made.append(self._missing(each) if value is None else self._read(each, value))
        made += [self._missing(each) for each in known[len(values) :]]
        return self.kind(*made)

    def _missing(self, of: _Field) -> Any:
        if of.mandatory:
            raise Malformed(f"{self.name} has no {of.name.replace('_', '-')}")
        return of.default

    def _read(self, of: _Field, value: Any) -> Any:
        kind = of.kind
        if of.multiple:
            values = value.values if value.__class__ is Array and value.descriptor is None else [value]
            return tuple([self._checked(of, kind, each) for each in values])
        return self._checked(of, kind, value)

    def _checked(self, of: _Field, kind: Kind, value: Any) -> Any:
        if kind.classes and value.__class__ not in kind.classes:
            raise Malformed(f"{of.name.replace('_', '-')} of {self.name} is not {kind.name}")
        return value if kind.read is None else kind.read(value)

    def write(self, value: Any) -> bytes:
        parts = []
        for each in self.fields:
            said = getattr(value, each.name)
            if said is None or (not each.mandatory and said == each.default):
                parts.append(NULL)
            elif not each.multiple:
                parts.append(each.kind.write(said))
            elif len(said) == 1:
                parts.append(each.kind.write(said[0]))
            else:
                parts.append(encode(Array(Symbol, [Symbol(one) for one in said])))
        while parts and parts[-1] is NULL:
            parts.pop()
        return self.prefix + write_list(parts)


BY_CODE: dict[int, Composite] = {}
BY_NAME: dict[str, Composite] = {}
BY_CLASS: dict[type, Composite] = {}
T = TypeVar("T")


def described(code: int, name: str) -> Callable[[type[T]], type[T]]:
    """Makes a dataclass whose fields are made by `wire` a composite type. `name` without its `amqp:` and `:list`."""

    def known(kind: type[T]) -> type[T]:
        BY_CODE[code] = BY_NAME[f"amqp:{name}:list"] = BY_CLASS[kind] = Composite(kind, code, name)
        return kind

    return known


def composite_of(descriptor: ULong | Symbol) -> Composite | None:
    return BY_CODE.get(descriptor) if descriptor.__class__ is ULong else BY_NAME.get(str(descriptor))


def compose(value: Described) -> Any:
    """The dataclass that a described list stands for. Raises Malformed if it is none of the table."""
    known = composite_of(value.descriptor)
    if known is None:
        raise Malformed(f"nothing is described by {str(value.descriptor)[:80]}")
    if value.value.__class__ is not list:
        raise Malformed(f"{known.name} is not a list")
    return known.make(value.value)


def read_composite(octets: bytes, at: int, end: int) -> tuple[Any, int]:
    """The dataclass that stands at `at`, and where it ends. Raises Malformed."""
    value, at = decode(octets, at, end)
    if value.__class__ is not Described:
        raise Malformed("a value is not described")
    return compose(value), at


def write_composite(value: Any) -> bytes:
    """Any dataclass of the table. Raises ValueError if a field cannot be said."""
    return BY_CLASS[value.__class__].write(value)


# -- kinds ----------------------------------------------------------------------------------------------------------------------------
def _as(kind: type) -> Callable[[Any], bytes]:
    return lambda value: encode(kind(value))


def write_fields(values: dict[Any, Any]) -> bytes:
    """Keys that are str are written as symbols."""
    return encode({Symbol(key) if key.__class__ is str else key: value for key, value in values.items()})


def _at_most(octets: int, name: str) -> Callable[[bytes], bytes]:
    def read(value: bytes) -> bytes:
        if len(value) > octets:
            raise Malformed(f"{name} has {len(value)} octets, {octets} are allowed")
        return value

    return read


def _fields(value: dict[Any, Any]) -> dict[Any, Any]:
    if any(key.__class__ is not Symbol and key.__class__ is not ULong and key.__class__ is not str for key in value):
        raise Malformed("a key of a map of fields is not a symbol")
    return value


def one_of(choices: range | tuple[str, ...], kind: Kind) -> Kind:
    """The kind, with these values only."""

    def read(value: Any) -> Any:
        if value not in choices:
            raise Malformed(f"{str(value)[:80]} is not {kind.name} that has a meaning there")
        return value

    return Kind(kind.name, kind.classes, kind.write, read)


def composed(name: str, *kinds: type) -> Kind:
    """One of these composite types."""

    def read(value: Described) -> Any:
        made = compose(value)
        if made.__class__ not in kinds:
            raise Malformed(f"{BY_CLASS[made.__class__].name} is not {name}")
        return made

    return Kind(name, (Described,), write_composite, read)


BOOLEAN = Kind("a boolean", (bool,), write_boolean)
UBYTE = Kind("a ubyte", (UByte,), _as(UByte))
USHORT = Kind("a ushort", (UShort,), _as(UShort))
UINT = Kind("a uint", (UInt,), write_uint)
ULONG = Kind("a ulong", (ULong,), write_ulong)
TIMESTAMP = Kind("a timestamp", (Timestamp,), _as(Timestamp))
STRING = Kind("a string", (str,), write_string)
SYMBOL = Kind("a symbol", (Symbol,), write_symbol)
BINARY = Kind("binary", (bytes,), write_binary)
DELIVERY_TAG = Kind("binary", (bytes,), write_binary, _at_most(32, "a delivery-tag"))
TRANSACTION_ID = Kind("binary", (bytes,), write_binary, _at_most(32, "a txn-id"))
ADDRESS = STRING
"""Of a node; the specification allows any type, and nobody uses another."""
MESSAGE_ID = Kind("a message identifier", (str, ULong, UUID, bytes), encode)
MAP = Kind("a map", (dict,), encode)
FIELDS = Kind("a map", (dict,), write_fields, _fields)
ANY = Kind("a value", (), encode)
