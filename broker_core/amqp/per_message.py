"""Transfer, Disposition and Flow, read and written by hand: they come with every message, or every few. The table of `performatives` says what they are; here
is the short way for how clients write them. What is written in another way, or wrong, is left to the table.

What follows the delivery's tag in a Transfer, and the delivery's identifiers in a Disposition, repeats: it is read once and remembered, so that its
values are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any

from .composite import BY_CLASS, NULL, write_composite
from .decoding import decode
from .encoding import write_binary, write_boolean, write_uint
from .performatives import Accepted, Disposition, Flow, Released, Transfer
from .types import Malformed, UInt

TAIL_OCTETS_MAX = 64
"""Longer ones are not remembered: an outcome in a transaction has about 50."""

_U32 = Struct(">I").unpack_from
_NOT_SHORT = -1
"""In place of a number: it is written in another way."""

Found = tuple[Any, int]
"""The performative, and where it ends."""


def _uint_at(octets: bytes, at: int) -> tuple[int | None, int]:
    code = octets[at]
    if code == 0x52:
        return octets[at + 1], at + 2
    if code == 0x43:
        return 0, at + 1
    if code == 0x70:
        return _U32(octets, at + 1)[0], at + 5
    return (None, at + 1) if code == 0x40 else (_NOT_SHORT, at)


# -- reading --------------------------------------------------------------------------------------------------------------------------
def read_transfer(octets: bytes, at: int, end: int) -> Found | None:
    """`octets` from behind the descriptor on. None: it is not written the short way. What ends too early raises IndexError or struct.error."""
    if octets[at] != 0xC0 or (count := octets[at + 2]) < 4 or (stop := at + 2 + octets[at + 1]) > end:
        return None
    handle: int | None
    delivery_id: int | None
    tag: bytes | None
    if octets[at + 3] == 0x43:
        handle, at = 0, at + 4
    else:
        handle, at = _uint_at(octets, at + 3)
        if handle is None or handle < 0:
            return None
    if octets[at] == 0x70:
        delivery_id, at = _U32(octets, at + 1)[0], at + 5
    else:
        delivery_id, at = _uint_at(octets, at)
        if delivery_id == _NOT_SHORT:
            return None
    if octets[at] == 0xA0 and octets[at + 1] <= 32:
        after = at + 2 + octets[at + 1]
        tag = octets[at + 2 : after]
    elif octets[at] == 0x40:
        tag, after = None, at + 1
    else:
        return None
    if not after <= stop <= after + TAIL_OCTETS_MAX:
        return None
    return Transfer(handle, delivery_id, tag, *_transfer_tail(octets[after:stop], count - 3)), stop


def read_disposition(octets: bytes, at: int, end: int) -> Found | None:
    """As read_transfer."""
    if octets[at] != 0xC0 or (count := octets[at + 2]) < 3 or (stop := at + 2 + octets[at + 1]) > end:
        return None
    role = octets[at + 3]
    if octets[at + 4] == 0x70 == octets[at + 9]:
        first, last = _U32(octets, at + 5)[0], _U32(octets, at + 10)[0]
        after = at + 14
    else:
        first, after = _uint_at(octets, at + 4)
        last, after = _uint_at(octets, after)
        if first is None or first < 0 or last == _NOT_SHORT:
            return None
    if role not in (0x41, 0x42) or not after <= stop <= after + TAIL_OCTETS_MAX:
        return None
    return Disposition(role == 0x41, first, last, *_disposition_tail(octets[after:stop], count - 3)), stop


def read_flow(octets: bytes, at: int, end: int) -> Found | None:
    """As read_transfer."""
    if octets[at] != 0xC0 or not 4 <= (count := octets[at + 2]) <= 10 or (stop := at + 2 + octets[at + 1]) > end:
        return None
    at += 3
    values: list[Any] = []
    for _ in range(min(count, 8)):
        value, at = _uint_at(octets, at)
        if value == _NOT_SHORT:
            return None
        values.append(value)
    for _ in range(8, count):
        code = octets[at]
        if code not in _FLAGS:
            return None
        values.append(code == 0x41)
        at += 1
    if at != stop or None in values[1:4]:
        return None
    return Flow(*values), stop


_FLAGS = (0x41, 0x42, 0x40)
"""True, false, and null, which is false."""


@lru_cache(maxsize=256)
def _transfer_tail(octets: bytes, count: int) -> tuple[Any, ...]:
    """The fields after delivery-tag. Raises Malformed."""
    made = BY_CLASS[Transfer].make([_UINT_0, None, None, *_values(octets, count)])
    return (
        made.message_format, made.settled, made.more, made.rcv_settle_mode, made.state, made.resume, made.aborted, made.batchable,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _disposition_tail(octets: bytes, count: int) -> tuple[Any, ...]:
    """The fields after last. Raises Malformed."""
    made = BY_CLASS[Disposition].make([True, _UINT_0, None, *_values(octets, count)])
    return made.settled, made.state, made.batchable


_UINT_0 = UInt(0)


def _values(octets: bytes, count: int) -> list[Any]:
    values, at = [], 0
    for _ in range(count):
        value, at = decode(octets, at)
        values.append(value)
    if at != len(octets):
        raise Malformed("a list does not end where its size says")
    return values


READ: dict[bytes, Callable[[bytes, int, int], Found | None]] = {
    b"\0\x53\x13": read_flow,
    b"\0\x53\x14": read_transfer,
    b"\0\x53\x15": read_disposition,
}
"""By descriptor. What these do not read is left to the table, which says what is wrong if something is."""


# -- writing --------------------------------------------------------------------------------------------------------------------------
def _tails() -> dict[tuple[int | None, bool | None, bool, bool], tuple[bytes, int]]:
    """What ends a Transfer without settle mode, state, resume and aborted; and how many fields it has."""
    tails = {}
    for message_format in (None, 0):
        for settled in (None, False, True):
            for more in (False, True):
                for batchable in (False, True):
                    parts = [NULL if message_format is None else b"\x43", NULL if settled is None else write_boolean(settled)]
                    parts += [b"\x41" if more else NULL, *[NULL] * 4, b"\x41" if batchable else NULL]
                    while parts and parts[-1] is NULL:
                        parts.pop()
                    tails[message_format, settled, more, batchable] = b"".join(parts), len(parts)
    return tails


_TAILS = _tails()
_OUTCOMES: dict[type, bytes] = {kind: write_composite(kind()) for kind in (Accepted, Released)}


def write_transfer(of: Transfer) -> bytes:
    tail = _TAILS.get((of.message_format, of.settled, of.more, of.batchable))
    if tail is None or of.state is not None or of.rcv_settle_mode is not None or of.resume or of.aborted or of.delivery_tag is None:
        return write_composite(of)
    delivery_id = NULL if of.delivery_id is None else write_uint(of.delivery_id)
    said = write_uint(of.handle) + delivery_id + write_binary(of.delivery_tag) + tail[0]
    return b"\0\x53\x14\xc0" + bytes((len(said) + 1, 3 + tail[1])) + said


def write_disposition(of: Disposition) -> bytes:
    state = _OUTCOMES.get(of.state.__class__)
    if state is None or of.batchable:
        return write_composite(of)
    said = write_boolean(of.role) + write_uint(of.first) + (NULL if of.last is None else write_uint(of.last)) + (b"\x41" if of.settled else NULL) + state
    return b"\0\x53\x15\xc0" + bytes((len(said) + 1, 5)) + said


WRITE: dict[type, Callable[[Any], bytes]] = {Transfer: write_transfer, Disposition: write_disposition}
"""Flow is left to the table: one is written for many messages."""


class WholeTransfers:
    """Of one link: how the transfers begin whose message is in one frame, and whose delivery-tag are 8 octets. Most of it is always the same."""

    __slots__ = ("_beginning", "_ending", "_octets", "_pack")

    def __init__(self, channel: int, handle: int, *, settled: bool) -> None:
        said = write_uint(handle)
        size = len(said) + 18
        self._beginning = b"\2\0" + channel.to_bytes(2, "big") + b"\0\x53\x14\xc0" + bytes((size, 5)) + said + b"\x70"
        self._ending = b"\x43" + write_boolean(settled)
        structure = Struct(f">I{len(self._beginning)}sIHQ2s")
        self._octets, self._pack = structure.size, structure.pack

    def head(self, delivery_id: int, tag: int, octets: int) -> bytes:
        """The frame, up to its message of so many octets."""
        said: bytes = self._pack(self._octets + octets, self._beginning, delivery_id, 0xA008, tag, self._ending)
        return said
