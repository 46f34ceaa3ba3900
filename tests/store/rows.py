"""What tests of stores share: rows, commits and reads in a few words, and what a database under test can do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from broker_core.engine.definitions import DestinationDefined, SegmentClosed, SubscriptionDefined
from broker_core.engine.message import Encoding, Header, Message, Reliability, StoredBody
from broker_core.engine.reads import PageWanted
from broker_core.engine.writes import Commit
from broker_core.store import Store

PLAIN = Header(b"content-type:text/plain\n", 4, Reliability.ASSURED)
RICH = Header("Grüße:ß\n".encode(), 9, Reliability.RELIABLE, 1_800_000_000_000, Encoding.AMQP, 'ID:it\'s \\ "mine"', "クライアント", '{"reason":"EXPIRED"}')
QUICK = Header(b"a:b\n", 4, Reliability.EXPRESS)


class Rig(Protocol):
    """A database under test."""

    async def open(self) -> Store:
        """A new term: a store that has the lease. The one before is fenced."""

    async def cut_off(self, store: Store) -> None:
        """The store's next commit finds its connection gone."""

    async def fill_disk(self) -> None:
        """From now on there is no room."""

    async def free_disk(self) -> None: ...

    async def hold(self, segment: int) -> None:
        """Somebody reads the segment and keeps it from being dropped."""

    async def let_go(self) -> None: ...

    async def break_compaction(self) -> None:
        """The next compaction is interrupted half way."""

    async def sent(self, address: str, *bodies: bytes) -> list[int]:
        """Some session's transaction sends these and commits; their entries in the inbox."""

    async def request(self, verb: str, address: str, arguments: dict[str, Any], deadline: int) -> int:
        """File a control request."""

    async def answer(self, request: int) -> tuple[bool, dict[str, Any]] | None: ...


def message(
    position: int, *, header: Header = PLAIN, body: bytes | StoredBody = b"body", destination: int = 1, sequence: int = 0, size: int = 0,
) -> Message:  # fmt: skip
    """`size`: unless it is that of its header section and its body."""
    octets = body.size if isinstance(body, StoredBody) else len(body)
    made = Message(header, body, size or len(header.octets) + octets)
    made.destination, made.position, made.sequence, made.accepted_at = destination, position, sequence or position, 1_700_000_000_000 + position
    return made


def messages(first: int, last: int, **how: Any) -> list[Message]:
    return [message(position, **how) for position in range(first, last + 1)]


def delayed(number: int, due: int, **how: Any) -> Message:
    """A row of the schedule."""
    made = message(0, sequence=number, **how)
    made.accepted_at = due
    return made


def commit(number: int, rows: Sequence[Message] = (), *, segment: int = 1, **more: Any) -> Commit:
    """A commit whose ledger row accounts for its stored rows."""
    lanes: dict[tuple[int, int], list[int]] = {}
    for row in [*rows, *(copy.target for copy in more.get("copies", ()))]:
        lanes.setdefault((row.destination, row.header.lane), []).append(row.position)
    accepted = [(*key, min(positions), max(positions)) for key, positions in lanes.items()]
    sequence = max((row.sequence for row in rows), default=number)
    more = {"accepted": accepted, "sequence": sequence, "synchronous": True, "at": 1_700_000_000_000 + number} | more
    return Commit(number=number, segment=segment, messages=list(rows), **more)


def as_of_earlier_version(table: str) -> bytes:
    """The statement that makes a table of the ledger what it was before it told what octets came, and which destinations were blocked."""
    dropped = ", ".join(f"DROP {column}" for column in ("octets_arrived", "blocked_destination", "blocked_since", "blocked_until"))
    return f"ALTER TABLE {table} {dropped}".encode()


def page(after: int, upto: int, *, segments: Sequence[int] = (1,), lane: int = 4, limit: int = 1000, bytes_max: int = 1 << 20) -> PageWanted:
    return PageWanted(1, 1, lane, after, upto, limit, bytes_max, list(segments))


def told(message: Message) -> tuple[object, ...]:
    """Everything a stored message says, comparable."""
    h = message.header
    return (
        h.octets, h.priority, h.reliability, h.expiration, h.encoding, h.message_id, h.client_id, h.annotations, h.lane,
        message.body, message.size, message.destination, message.sequence, message.position, message.accepted_at, message.redelivered, message.failures,
    )  # fmt: skip


async def positions(store: Store, wanted: PageWanted) -> list[int]:
    return [row.position for row in (await store.read(wanted))[0]]


async def chunks(*octets: bytes) -> AsyncIterator[bytes]:
    for part in octets:
        yield part


async def body_of(store: Store, number: int) -> bytes:
    return b"".join([part async for part in store.read_body(number)])


async def close_segment(store: Store, number: int, first: int, last: int, segment: int) -> None:
    """Fill a segment with positions of destination 1, lane 4, and close it."""
    closed = SegmentClosed(segment, last, {(1, 4): (first, last)})
    await store.commit(commit(number, messages(first, last), segment=segment, definitions=[closed]))


def define(number: int, *destinations: int) -> Commit:
    """Destinations 1 to n, each a queue with a subscription of its number."""
    definitions: list[Any] = []
    for destination in range(1, max(destinations) + 1):
        definitions += [DestinationDefined(destination, f"queue/{destination}", 1, True, 0, {}), SubscriptionDefined(destination, destination)]
    return commit(number, definitions=definitions)
