"""The memory store: the same promises as the PostgreSQL store's, for tests and simulation. A MemoryDatabase outlives its nodes; each term opens
a MemoryStore on it, which fences the one before. Faults happen where a chooser says so. Its coroutines never wait for anything: whoever has no event
loop drives them with send(None).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

from broker_core.engine.commands import TakeOver
from broker_core.engine.definitions import (
    AliasDefined, AliasDeleted, Definition, DestinationDefined, DestinationDestroyed, PolicyDefined, PolicyDropped, SegmentClosed, SubscriptionDefined,
    SubscriptionDestroyed, UndoEnded, UndoKept,
)  # fmt: skip
from broker_core.engine.message import VOLATILE, Header, Message, StoredBody
from broker_core.engine.reads import RETAINED, Read
from broker_core.engine.recovered import LedgerRow, Recovered
from broker_core.engine.upkeep import CompactSegment, SweepRetained, TrimDuplicates
from broker_core.engine.writes import BulkCopy, Checkpoint, Commit

from . import BodyMissing, CommitLost, ControlRequest, SpaceExhausted
from .memory_reads import may_read, read_rows
from .memory_headers import cleaned, replace_header
from .memory_prepared import kept_branch
from .memory_recovery import recovered
from .traces import begun, ended, traces_of
from .memory_tables import Chooser, Fault, Journal, Request, Row, Segment, Tables

UNFLUSHED_MAX = 5_000
"""Changes without a flush: PostgreSQL's WAL writer does not let more than 0.6 s pass either."""


def no_faults(_method: str) -> Fault:
    return Fault.NONE


class MemoryDatabase:
    """What outlives the nodes, and who may write it."""

    def __init__(self, choose: Chooser = no_faults, instance: str = "memory") -> None:
        self.choose = choose
        self.instance = instance
        self.epoch = 0
        self.tables = Tables()
        self.journal = Journal()

    def open(self, clock_ms: int) -> MemoryStore:
        """Acquire the lease: a new epoch; every store opened before is fenced. `clock_ms`: what the database's clock says."""
        self.epoch += 1
        return MemoryStore(self, self.epoch, clock_ms)

    def crash(self) -> None:
        """The database stops without warning and comes back: what was not on disk is gone. Open stores are lost."""
        self.journal.undo()
        self.epoch += 1

    def number(self) -> int:
        """A number for a row of the inbox, as a transaction takes it that may end late, or never."""
        self.tables.last_entry += 1
        return self.tables.last_entry

    def send(self, *arrivals: TakeOver) -> None:
        """A transaction of somebody else's ends, and with it its messages are in the inbox. It waits for the disk."""
        self.journal.flush()
        self.tables.inbox.update({arrival.entry: arrival for arrival in arrivals})

    def request(self, verb: str, address: str = "", arguments: dict[str, Any] | None = None, deadline: int = 0) -> int:
        """File a control request; its number."""
        tables = self.tables
        tables.last_request += 1
        tables.requests[tables.last_request] = Request(tables.last_request, verb, address, arguments or {}, deadline)
        return tables.last_request

    def answer(self, request: int) -> tuple[bool, dict[str, Any]] | None:
        """What the node answered to the request."""
        return self.tables.requests[request].answer


class MemoryStore:
    """One term's access to a MemoryDatabase."""

    def __init__(self, database: MemoryDatabase, epoch: int, clock_ms: int) -> None:
        self._database, self._tables, self._journal = database, database.tables, database.journal
        self._epoch, self._clock_ms = epoch, clock_ms
        self._closed = False

    async def close(self) -> None:
        self._closed = True

    # -- commits ------------------------------------------------------------------------------------------------------------------------
    async def commit(self, commit: Commit, on_sent: Callable[[], None] = lambda: None) -> None:
        fault = self._begin("commit")
        on_sent()
        mark = self._journal.mark()
        try:
            self._write(commit)
        except CommitLost:
            self._journal.undo(mark)
            raise
        if fault in {Fault.LOST, Fault.CRASH, Fault.FULL}:
            self._journal.undo(mark)
        elif commit.synchronous or mark > UNFLUSHED_MAX:
            self._journal.flush()
        self._end(fault)

    def _write(self, commit: Commit) -> None:
        tables, journal = self._tables, self._journal
        segment = self._segment(commit.segment)
        assert segment.closed is None, f"segment {commit.segment} is closed"
        for message in [*commit.messages, *commit.spilled]:
            assert message.body is not None, f"message {message.sequence} has no body to store"
            self._insert(segment, _kept(message, message.header, message.body))
        for message in commit.scheduled:
            assert message.body is not None, f"delayed message {message.sequence} has no body to store"
            assert message.sequence not in tables.scheduled, f"number {message.sequence} of the schedule is taken"
            header, due = cleaned(message.header), message.accepted_at
            waiting = Row(header, message.body, message.size, message.destination, message.sequence, 0, due)
            journal.put(tables.scheduled, message.sequence, waiting)
            if message.header.lane >= VOLATILE:
                journal.put(tables.scheduled_volatile, message.sequence, None)
        for destination, identifiers in commit.remembered:
            journal.put(tables.duplicates, (destination, commit.at, commit.number), list(identifiers))
        for branch in commit.prepared:
            journal.put(tables.prepared, branch.branch, kept_branch(branch))
        for number, state in commit.resolved:
            if state:
                journal.put(tables.prepared, number, tables.prepared[number].ended(state))
            else:
                journal.remove(tables.prepared, number)
        for number in commit.due:
            journal.remove(tables.scheduled, number)
            journal.remove(tables.scheduled_volatile, number)
        for entry in commit.taken:
            if entry not in tables.inbox:
                self._closed = True
                raise CommitLost(f"row {entry} of the inbox was deleted by somebody else")
            journal.remove(tables.inbox, entry)
        for copy in commit.copies:
            source = self._row_at(copy.segment, copy.source)
            header = _retold(copy.target.header, source.header)
            body, size = (b"", copy.target.size) if copy.cut else (source.body, source.size)
            self._insert(segment, replace(_kept(copy.target, header, body), size=size))
        for bulk in commit.bulk_copies:
            self._copy_all(bulk, segment)
        for operation in commit.operations:
            journal.put(tables.operations, operation.operation, replace(operation))
        for definition in commit.definitions:
            self._define(definition)
        for request, done, result in commit.answers:
            journal.change(tables.requests[request], "answer", (done, result))
        assert not tables.ledger or tables.ledger[-1].number < commit.number, f"commit {commit.number} is in the ledger already"
        row = LedgerRow(
            commit.number, commit.at, commit.sequence, commit.segment,
            list(commit.accepted), list(commit.offered), list(commit.settled), list(commit.failures), list(commit.octets),
            traces_of(commit), begun(commit), ended(commit), list(commit.blocked),
        )  # fmt: skip
        journal.append(tables.ledger, row)

    def _copy_all(self, bulk: BulkCopy, segment: Segment) -> None:
        for number, position in enumerate(bulk.positions):
            source = self._row_at(bulk.segment, (*bulk.source, position))
            header = replace_header(
                source.header,
                priority=bulk.lane,
                expiration=source.header.expiration if bulk.expirations is None else bulk.expirations[number],
                annotations=source.header.annotations if bulk.annotations is None else bulk.annotations[number],
                message_id=source.header.message_id or f"{bulk.identifier}{source.sequence}",
            )
            where = bulk.destination, bulk.sequence + number, bulk.position + number
            self._insert(segment, Row(cleaned(header), source.body, source.size, *where, bulk.accepted_at))

    def _segment(self, number: int) -> Segment:
        segment = self._tables.segments.get(number)
        if segment is None:
            assert number > self._tables.highest_segment, f"segment {number} is gone"
            segment = self._tables.segments[number] = Segment(number)  # made ahead of need, outside the commit
            self._tables.highest_segment = number
        return segment

    def _insert(self, segment: Segment, row: Row) -> None:
        rows = segment.lanes.setdefault((row.destination, row.header.lane), [])
        place = bisect_left(rows, row.position, key=lambda known: known.position)  # a commit's copies may lie between its messages
        assert place == len(rows) or rows[place].position != row.position, f"position {row.position} of {row.destination} is taken"
        self._journal.insert(rows, place, row)

    def _row_at(self, segment: int, place: tuple[int, int, int]) -> Row:
        destination, lane, position = place
        if segment == RETAINED:
            found = self._tables.retained.get(place)
            row = found[1] if found else None
        else:
            may_read(self._tables, segment)
            rows = self._tables.segments[segment].lanes.get((destination, lane), ())
            row = next((row for row in rows if row.position == position), None)
        if row is None:
            self._closed = True
            raise CommitLost(f"there is no message {place} to copy in segment {segment}")
        return row

    def _define(self, definition: Definition) -> None:
        tables, journal = self._tables, self._journal
        if isinstance(definition, DestinationDefined):
            assert not any(d.address == definition.address and n != definition.destination for n, d in tables.destinations.items()), definition
            journal.put(tables.destinations, definition.destination, replace(definition, settings=dict(definition.settings)))
            journal.change(tables, "last_destination", max(tables.last_destination, definition.destination))
        elif isinstance(definition, PolicyDefined):
            journal.put(tables.policies, definition.pattern, PolicyDefined(definition.pattern, dict(definition.settings)))
        elif isinstance(definition, PolicyDropped):
            journal.remove(tables.policies, definition.pattern)
        elif isinstance(definition, DestinationDestroyed):
            journal.remove(tables.destinations, definition.destination)
            for number in [n for n, s in tables.subscriptions.items() if s.destination == definition.destination]:
                journal.remove(tables.subscriptions, number)
        elif isinstance(definition, SubscriptionDefined):
            known = tables.subscriptions.get(definition.subscription)
            journal.put(tables.subscriptions, definition.subscription, replace(definition, idle_since=known.idle_since if known else 0))
            journal.change(tables, "last_subscription", max(tables.last_subscription, definition.subscription))
        elif isinstance(definition, AliasDefined):
            journal.put(tables.aliases, definition.address, replace(definition))
        elif isinstance(definition, AliasDeleted):
            journal.remove(tables.aliases, definition.address)
        elif isinstance(definition, SubscriptionDestroyed):
            journal.remove(tables.subscriptions, definition.subscription)
        elif isinstance(definition, UndoKept):
            known_ranges = tables.undo[definition.undo].ranges if definition.undo in tables.undo else []
            journal.put(tables.undo, definition.undo, replace(definition, ranges=[*known_ranges, *definition.ranges]))
        elif isinstance(definition, UndoEnded):
            journal.remove(tables.undo, definition.undo)
            journal.put(tables.undo_ended, definition.undo, definition.how)
        else:
            lanes = dict(definition.lanes)
            journal.change(tables.segments[definition.segment], "closed", SegmentClosed(definition.segment, definition.last_sequence, lanes))

    async def checkpoint(self, checkpoint: Checkpoint) -> None:
        fault = self._begin("checkpoint")
        if fault in {Fault.NONE, Fault.KEPT} and checkpoint.number >= self._tables.number:
            tables, journal = self._tables, self._journal
            for name in ("number", "at", "sequence"):
                journal.change(tables, name, getattr(checkpoint, name))
            for destination, lane, tail in checkpoint.lanes:
                journal.put(tables.lanes, (destination, lane), tail)
            for subscription, lane, floor, offered in checkpoint.cursors:
                journal.put(tables.cursors, (subscription, lane), (floor, offered))
            for *key, bits in checkpoint.blocks:
                journal.put(tables.blocks, tuple(key), bits) if bits else journal.remove(tables.blocks, tuple(key))
            for *place, failures in checkpoint.failures:
                journal.put(tables.failures, tuple(place), failures) if failures else journal.remove(tables.failures, tuple(place))
            for destination, *counts in checkpoint.counters:
                journal.put(tables.counters, destination, tuple(counts))
            for subscription, instant in checkpoint.idle:
                if subscription in tables.subscriptions:
                    journal.put(tables.subscriptions, subscription, replace(tables.subscriptions[subscription], idle_since=instant))
        self._end(fault)

    # -- reads --------------------------------------------------------------------------------------------------------------------------
    async def read(self, read: Read) -> tuple[list[Message], bool]:
        fault = self._begin("read")
        self._end(fault)
        return read_rows(self._tables, read, cut=fault is Fault.CUT)

    async def inbox(self, limit: int, bytes_max: int) -> list[TakeOver]:
        fault = self._begin("inbox")
        self._end(fault)
        found: list[TakeOver] = []
        for entry in sorted(self._tables.inbox)[:limit]:
            arrival = self._tables.inbox[entry]
            bytes_max -= arrival.message.size
            if found and bytes_max < 0:
                break
            message = arrival.message
            found.append(replace(arrival, message=Message(replace(message.header), message.body, message.size)))
        return found

    # -- large bodies -------------------------------------------------------------------------------------------------------------------
    async def write_body(self, chunks: AsyncIterator[bytes]) -> int:
        self._end(self._begin("write_body"))
        body = [octets async for octets in chunks]
        self._tables.last_body += 1
        self._tables.bodies[self._tables.last_body] = (self._epoch, body)
        return self._tables.last_body

    async def read_body(self, body: int) -> AsyncIterator[bytes]:
        self._end(self._begin("read_body"))
        if body not in self._tables.bodies:
            raise BodyMissing(f"body {body} is not there")
        for octets in self._tables.bodies[body][1]:
            yield octets

    async def discard_bodies(self, bodies: Sequence[int]) -> None:
        self._end(self._begin("discard_bodies"))
        for body in bodies:
            self._tables.bodies.pop(body, None)

    # -- maintenance --------------------------------------------------------------------------------------------------------------------
    async def drop_segment(self, segment: int) -> bool:
        fault = self._begin("drop_segment")
        if fault is Fault.LOCKED:
            return False
        if fault in {Fault.NONE, Fault.KEPT, Fault.CUT}:
            self._drop(segment)
        self._end(fault)
        return True

    def _drop(self, segment: int) -> None:
        self._journal.flush()  # a DROP waits for the disk, whatever synchronous_commit says
        table = self._tables.segments.pop(segment, None)
        if table is not None:
            stored = [row for (_, lane), rows in table.lanes.items() if lane < VOLATILE for row in rows]  # bodies of spilled ones are the engine's affair
            self._release({row.body.body for row in stored if isinstance(row.body, StoredBody)})

    def _release(self, bodies: set[int]) -> None:
        for body in bodies - self._tables.named_bodies():
            self._tables.bodies.pop(body, None)

    async def freeze_segment(self, segment: int) -> None:
        self._end(self._begin("freeze_segment"))

    async def compact_segment(self, compact: CompactSegment) -> None:
        fault = self._begin("compact_segment")
        tables, table = self._tables, self._tables.segments[compact.segment]
        self._journal.flush()
        table.compacting = True
        survivors = [row for range_ in compact.survivors for row in _within(table, range_)]
        if fault in {Fault.LOST, Fault.CRASH, Fault.FULL}:
            survivors = survivors[: len(survivors) // 2]  # interrupted between two steps
        for row in survivors:
            tables.retained[row.destination, row.header.lane, row.position] = (compact.segment, row)
        if fault in {Fault.NONE, Fault.KEPT, Fault.CUT, Fault.LOCKED}:
            table.compacting, table.compacted = False, True
        self._end(fault)

    async def segment_octets(self, segment: int) -> int:
        """Those of its messages: it is on no disk."""
        if segment == RETAINED:
            return sum(row.size for _, row in self._tables.retained.values())
        known = self._tables.segments.get(segment)
        return sum(row.size for rows in known.lanes.values() for row in rows) if known is not None else 0

    async def sweep_retained(self, sweep: SweepRetained) -> None:
        fault = self._begin("sweep_retained")
        if fault not in {Fault.LOST, Fault.CRASH, Fault.FULL}:
            self._journal.flush()
            for destination, lane, first, last in sweep.settled:
                gone = [place for place in self._tables.retained if place[:2] == (destination, lane) and first <= place[2] <= last]
                bodies = [self._tables.retained.pop(place)[1].body for place in gone]
                self._release({body.body for body in bodies if isinstance(body, StoredBody)})
        self._end(fault)

    async def discard_scheduled(self, destination: int) -> None:
        fault = self._begin("discard_scheduled")
        if fault not in {Fault.LOST, Fault.CRASH, Fault.FULL}:
            self._journal.flush()
            self._unschedule([number for number, row in self._tables.scheduled.items() if row.destination == destination])
        self._end(fault)

    def _unschedule(self, numbers: list[int]) -> None:
        bodies = [self._tables.scheduled.pop(number).body for number in numbers]
        for number in numbers:
            self._tables.scheduled_volatile.pop(number, None)
        self._release({body.body for body in bodies if isinstance(body, StoredBody)})

    async def trim_duplicates(self, trim: TrimDuplicates) -> None:
        fault = self._begin("trim_duplicates")
        gone = [key for destination, instant in trim.before for key in self._tables.duplicates if key[0] == destination and key[1] < instant]
        self._journal.flush()
        for key in gone[: len(gone) // 2] if fault in {Fault.LOST, Fault.CRASH, Fault.FULL} else gone:  # interrupted between two steps
            self._tables.duplicates.pop(key, None)
        self._end(fault)

    async def trim_ledger(self, before: int, octets_max: int) -> int:
        """Nothing is ever dropped: what a test or a simulation writes fits in memory, and its auditor wants all of it."""
        self._end(self._begin("trim_ledger"))
        return 0

    async def control_requests(self) -> list[ControlRequest]:
        self._end(self._begin("control_requests"))
        waiting = [request for request in self._tables.requests.values() if request.answer is None]
        return [ControlRequest(r.request, r.verb, r.address, dict(r.arguments), r.deadline) for r in waiting]

    # -- recovery -----------------------------------------------------------------------------------------------------------------------
    async def recover(self) -> Recovered:
        self._end(self._begin("recover"))
        tables = self._tables
        self._journal.flush()
        for segment in list(tables.segments.values()):
            for key in [key for key in segment.lanes if key[1] >= VOLATILE]:
                del segment.lanes[key]
            if segment.compacting:
                tables.retained = {place: kept for place, kept in tables.retained.items() if kept[0] != segment.segment}
                segment.compacting = False
            if segment.compacted:
                self._drop(segment.segment)
        self._unschedule(list(tables.scheduled_volatile))
        named = tables.named_bodies()
        for body in [body for body, (epoch, _) in tables.bodies.items() if epoch < self._epoch and body not in named]:
            del tables.bodies[body]
        return recovered(tables, self._epoch, self._clock_ms, self._database.instance)

    # -- faults -------------------------------------------------------------------------------------------------------------------------
    def _begin(self, method: str) -> Fault:
        if self._closed or self._database.epoch != self._epoch:
            raise CommitLost(f"epoch {self._epoch} is over")
        return self._database.choose(method)

    def _end(self, fault: Fault) -> None:
        if fault is Fault.FULL:
            raise SpaceExhausted("no room, by choice")
        if fault is Fault.CRASH:
            self._database.crash()
        if fault in {Fault.LOST, Fault.KEPT, Fault.CRASH}:
            self._closed = True
            raise CommitLost(fault.value)


def _kept(message: Message, header: Header, body: bytes | StoredBody) -> Row:
    return Row(cleaned(header), body, message.size, message.destination, message.sequence, message.position, message.accepted_at)


def _retold(header: Header, source: Header) -> Header:
    """The target's header with the source's octets and their form (R15)."""
    return replace_header(header, octets=source.octets, encoding=source.encoding)


def _within(table: Segment, range_: tuple[int, int, int, int]) -> list[Row]:
    destination, lane, first, last = range_
    return [row for row in table.lanes.get((destination, lane), ()) if first <= row.position <= last]
