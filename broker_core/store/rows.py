"""Message rows in PostgreSQL's binary COPY form, written and read by hand: at 60,000 rows a second there is 1 us for each.

A row is 16 fields, each a 4-octet length and its octets (length -1: NULL). Fields that follow from the message's header section are packed once for every
Header and kept, since producers repeat them; what differs between messages is one struct call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct

from broker_core.engine.message import VOLATILE, Header, Message, StoredBody
from broker_core.engine.writes import PreparedBranch

COLUMNS = (
    "sequence, position, accepted_at, destination, size, body, stored_body, "
    "expiration, priority, reliability, encoding, routed, message_id, client_id, annotations, headers"
)
"""The order of the fields in a COPY, in both directions; not the order on disk."""
PLACES = b",".join([b"$%d" % place for place in range(1, COLUMNS.count(",") + 2)])
"""The fields of a row as parameters of a statement."""
SCHEDULED_COLUMNS = "schedule, shard, due_at, volatile" + COLUMNS.removeprefix("sequence, position, accepted_at")
"""The same of the schedule, whose rows begin otherwise."""
PREPARED_COLUMNS = "shard, branch, item, outcome, subscription, address, delay, duplicate_id, " + COLUMNS
"""The same of what branches are about."""
SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
PIECE_ROWS = 128
"""Rows handed to libpq at once: the server inserts them while the next are packed."""
HEADERS_KEPT = 16_384
"""Packed header sections kept, so that ten thousand queues find theirs; at 200 octets each 3 MiB, at the most 64 MiB. Past it the cache starts anew:
cheaper than keeping an order of use."""

SENT = -1
"""The outcome of what a branch sends."""
INSTANT_MAX = (1 << 63) - 1

_LARGE = Struct(">iq")
_FIXED = Struct(">hiqiqiqiiiii")
_SCHEDULED = Struct(">hiqihiqi?iiiii")
_ITEM = Struct(">hihiqiiihii")
_DELAY = Struct(">iq")
_PLACE = Struct(">iqiqiqiiiii")
_HEADER = Struct(">iqihihihi")
_LENGTH = Struct(">i")
_NULL = b"\xff\xff\xff\xff"


def text_octets(text: str) -> bytes:
    """UTF-8 that PostgreSQL takes: NUL and lone surrogates, which no text column holds, become U+FFFD instead of costing the node its commit."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace") if "\0" in text or not text.isascii() else text.encode()


def instant(milliseconds: int) -> int:
    """An instant that a column holds: 292 million years are as good as never."""
    return min(max(milliseconds, 0), INSTANT_MAX)


def _text(text: str) -> bytes:
    octets = text_octets(text)
    return _LENGTH.pack(len(octets)) + octets


_client = lru_cache(maxsize=256)(_text)
"""All messages of a connection have the same client identifier."""


@lru_cache(maxsize=1024)
def _leading(expiration: int, priority: int, reliability: int, encoding: int) -> bytes:
    """What stands before the texts of a header: no large body, and how it orders and expires."""
    return _NULL + _HEADER.pack(8, instant(expiration), 2, priority, 2, reliability, 2, encoding, -1)


def _split(row: bytes) -> list[bytes | None]:
    fields: list[bytes | None] = []
    at = 2  # behind the number of fields
    while at < len(row):
        (length,) = _LENGTH.unpack_from(row, at)
        at += 4
        fields.append(None if length < 0 else row[at : at + length])
        at += max(length, 0)
    return fields


class RowPacker:
    """Packs messages; remembers header sections."""

    def __init__(self) -> None:
        self._headers: dict[Header, bytes] = {}

    def pieces(self, messages: Sequence[Message], schedule: int | None = None) -> Iterator[bytes]:
        """A COPY stream, signature and trailer included, PIECE_ROWS rows at a time. `schedule`: rows for the schedule of this shard."""
        for start in range(0, len(messages), PIECE_ROWS):
            piece = messages[start : start + PIECE_ROWS] if len(messages) > PIECE_ROWS else messages
            parts = self._pack(piece) if schedule is None else self._pack_scheduled(piece, schedule)
            if start == 0:
                parts.insert(0, SIGNATURE)
            if start + PIECE_ROWS >= len(messages):
                parts.append(TRAILER)
            yield b"".join(parts)

    def fields(self, messages: Sequence[Message]) -> Iterator[list[bytes | None]]:
        """The rows as parameters of an INSERT in binary form."""
        for message in messages:
            yield _split(b"".join(self._pack([message])))

    def _pack(self, messages: Sequence[Message]) -> list[bytes]:
        parts: list[bytes] = []
        append, fixed, headers = parts.append, _FIXED.pack, self._headers
        for message in messages:
            header, body = message.header, message.body
            packed = headers.get(header) or self._pack_header(header)
            if type(body) is bytes:
                append(fixed(16, 8, message.sequence, 8, message.position, 8, message.accepted_at, 4, message.destination, 4, message.size, len(body)))
                append(body)
                append(packed)
                continue
            assert isinstance(body, StoredBody), f"message {message.sequence} has no body to store"
            append(fixed(16, 8, message.sequence, 8, message.position, 8, message.accepted_at, 4, message.destination, 4, message.size, -1))
            append(_LARGE.pack(8, body.body))
            append(packed[4:])  # less the NULL that stands for no large body
        return parts

    def _pack_scheduled(self, messages: Sequence[Message], shard: int) -> list[bytes]:
        parts: list[bytes] = []
        for message in messages:
            header, body = message.header, message.body
            packed = self._headers.get(header) or self._pack_header(header)
            volatile = header.lane >= VOLATILE
            leading = (17, 8, message.sequence, 2, shard, 8, message.accepted_at, 1, volatile, 4, message.destination, 4, message.size)
            if isinstance(body, StoredBody):
                parts += (_SCHEDULED.pack(*leading, -1), _LARGE.pack(8, body.body), packed[4:])
            else:
                assert body is not None, f"delayed message {message.sequence} has no body to store"
                parts += (_SCHEDULED.pack(*leading, len(body)), body, packed)
        return parts

    def items(self, branches: Sequence[PreparedBranch], shard: int) -> Iterator[bytes]:
        """A COPY stream of what the branches are about, a branch at a time. None of it has a header section of its own that is worth remembering."""
        yield SIGNATURE
        for branch in branches:
            sends = [(SENT, 0, address, message) for address, message in branch.sends]
            settled = [(int(outcome), subscription, "", message) for subscription, outcome, message in branch.settled]
            yield b"".join([part for item, about in enumerate(sends + settled) for part in self._pack_item((shard, branch.branch, item), *about)])
        yield TRAILER

    def _pack_item(self, key: tuple[int, int, int], outcome: int, subscription: int, address: str, message: Message) -> Iterator[bytes]:
        header, body = message.header, message.body
        shard, branch, item = key
        yield _ITEM.pack(24, 2, shard, 8, branch, 4, item, 2, outcome, 4, subscription)
        yield _text(address)
        sent = outcome == SENT
        yield _DELAY.pack(8, header.delay if sent else 0)
        yield _text(header.duplicate_id if sent else "")
        place = (0, 0, message.accepted_at, 0) if sent else (message.sequence, message.position, message.accepted_at, message.destination)
        sequence, position, accepted_at, destination = place
        body = body if sent else None
        octets = len(body) if isinstance(body, bytes) else -1
        yield _PLACE.pack(8, sequence, 8, position, 8, accepted_at, 4, destination, 4, message.size, octets)
        packed = self._headers.get(header) or self._pack_header(header)
        if isinstance(body, StoredBody):
            yield _LARGE.pack(8, body.body)
            yield packed[4:]
        else:
            yield (body or b"") + packed

    def _pack_header(self, header: Header) -> bytes:
        packed = b"".join(
            (
                _leading(header.expiration, header.priority, header.reliability, header.encoding),
                _text(header.message_id) if header.message_id else _NULL,
                _client(header.client_id) if header.client_id else _NULL,
                _text(header.annotations) if header.annotations else _NULL,
                _LENGTH.pack(len(header.octets)),
                header.octets,
            )
        )
        if not (header.duplicate_id or header.message_id):  # whoever names his messages gives each a header of its own
            if len(self._headers) >= HEADERS_KEPT:
                self._headers.clear()
            self._headers[header] = packed
        return packed
