"""The group commit (R10): one implicit transaction of the simple query protocol: a round trip for each COPY and one for all else.

A short commit, of few messages and nothing unusual, is calls of prepared statements instead: one round trip in all. That is what a sender waits for who is
alone: 0.39 instead of 0.50 ms. From some eight messages on COPY is quicker. Literals in place of a COPY would save the round trip, too, but hexadecimal
bodies cost as much to parse.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

from broker_core.engine.definitions import (
    AliasDefined, AliasDeleted, Definition, DestinationDefined, DestinationDestroyed, PolicyDefined, PolicyDropped, SegmentClosed, SubscriptionDefined,
    SubscriptionDestroyed, UndoEnded, UndoKept,
)  # fmt: skip
from broker_core.engine.message import Message, StoredBody
from broker_core.engine.reads import RETAINED
from broker_core.engine.writes import Commit, Copy

from . import inbox, operations, undo
from .arrays import integers, texts
from .ledger import Ledger
from .literals import json_literal, literal
from .prepared import PREPARED, prepare, resolve
from .rows import COLUMNS, PLACES, PREPARED_COLUMNS, SCHEDULED_COLUMNS, RowPacker, instant
from .schedule import SCHEDULED
from .segments import message_table, spill_table
from .wire import Call

BY_LANE = attrgetter("destination", "header.priority")
SHORT_MESSAGES = 4
"""Messages of a short commit: as quick as COPY with eight, and the node's part, 8 us a message, is then less than what a round trip costs it."""
SPECIAL = attrgetter(
    "scheduled", "remembered", "prepared", "resolved", "due", "taken", "spilled", "copies", "bulk_copies", "operations", "definitions", "answers"
)
"""What a short commit has nothing of."""
NOT_SYNCHRONOUS = Call(b"SELECT set_config('synchronous_commit', 'off', true)", ())
"""SET LOCAL, which is refused before a pipeline's second statement."""
ROWS_TOGETHER = 8
"""What a page of 8 KiB holds of messages of 1 KiB, about: fewer of a lane share a page with others anyway, and sorting costs 0.3 us a row."""


def _boolean(value: bool) -> bytes:
    return b"true" if value else b"false"


def _text(text: str) -> bytes:
    return literal(text) if text else b"NULL"


def as_read(commit: Commit) -> list[Message]:
    """Its messages in the order in which to write them. Lanes are read one by one: where a commit brings a page or more of each, its rows lie together,
    or draining ten priorities would read every page ten times."""
    if len(commit.accepted) > 1 and len(commit.accepted) * ROWS_TOGETHER <= len(commit.messages):
        return sorted(commit.messages, key=BY_LANE)
    return commit.messages


class CommitBuilder:
    """Turns commits into statements and COPY streams."""

    def __init__(self, shard: int, ledger: Ledger) -> None:
        self._shard, self._ledger = shard, ledger
        self._packer = RowPacker()

    def calls(self, commit: Commit) -> tuple[list[Call], int] | None:
        """A short commit, and the octets that its messages weigh; None: it is not short."""
        messages = commit.messages
        if len(messages) > SHORT_MESSAGES or any(SPECIAL(commit)) or any(type(message.body) is not bytes for message in messages):
            return None
        calls = [] if commit.synchronous else [NOT_SYNCHRONOUS]
        if messages:
            statement = b"INSERT INTO %b(%b)VALUES(%b)" % (message_table(self._shard, commit.segment).encode(), COLUMNS.encode(), PLACES)
            calls.extend([Call(statement, fields, binary=True) for fields in self._packer.fields(messages)])
        weight = sum(message.size for message in messages)
        calls.append(self._ledger.call(commit, weight))
        return calls, weight

    def build(self, commit: Commit) -> tuple[bytes, list[Iterator[bytes]], int]:
        """The statements, in order the streams for the COPYs among them, and the octets that the messages weigh."""
        parts: list[bytes] = []
        streams: list[Iterator[bytes]] = []
        if not commit.synchronous:
            parts.append(b"SET LOCAL synchronous_commit = off")
        if commit.messages:
            self._insert(message_table(self._shard, commit.segment), as_read(commit), parts, streams)
            self._reference(commit.segment, commit.messages, parts)
        if commit.scheduled:
            parts.append(f"COPY surety.scheduled({SCHEDULED_COLUMNS}) FROM STDIN (FORMAT binary)".encode())
            streams.append(self._packer.pieces(commit.scheduled, self._shard))
            self._reference(SCHEDULED, commit.scheduled, parts)
        if commit.remembered:
            parts.append(self._remember(commit))
        if commit.prepared:
            parts += prepare(commit.prepared, self._shard)
            if any(branch.sends or branch.settled for branch in commit.prepared):
                parts.append(f"COPY surety.prepared_item({PREPARED_COLUMNS}) FROM STDIN (FORMAT binary)".encode())
                streams.append(self._packer.items(commit.prepared, self._shard))
                self._reference(PREPARED, [message for branch in commit.prepared for _, message in branch.sends], parts)
        if commit.resolved:
            parts += resolve(commit, self._shard)
        if commit.due:
            parts.append(self._unschedule(commit))
        if commit.taken:
            parts.append(inbox.take(self._shard, commit.taken))
        if commit.spilled:
            self._insert(spill_table(self._shard, commit.segment), commit.spilled, parts, streams)
        for copies in _together(commit.copies):
            parts.extend(self._copy(copies, commit.segment))
        parts.extend([operations.bulk_copy(bulk, self._shard, commit.segment) for bulk in commit.bulk_copies])
        if commit.operations:
            parts += operations.progress(commit.operations, self._shard)
        for kind, definitions in groupby(commit.definitions, key=type):
            parts.extend(self._define_all(kind, list(definitions), commit))
        for request, done, result in commit.answers:
            parts.append(
                b"UPDATE surety.control_request SET answered_at = clock_timestamp(), done = %b, result = %b WHERE shard = %d AND request = %d"
                % (_boolean(done), json_literal(result), self._shard, request)
            )
        weight = sum(message.size for message in commit.messages) + sum(copy.target.size for copy in commit.copies)
        weight += sum(bulk.octets for bulk in commit.bulk_copies)
        parts.append(self._ledger.statement(commit, weight))
        return b";".join(parts), streams, weight

    def _insert(self, table: str, messages: list[Message], parts: list[bytes], streams: list[Iterator[bytes]]) -> None:
        parts.append(f"COPY {table}({COLUMNS}) FROM STDIN (FORMAT binary)".encode())
        streams.append(self._packer.pieces(messages))

    def _reference(self, segment: int, messages: list[Message], parts: list[bytes]) -> None:
        large = [message.body.body for message in messages if type(message.body) is StoredBody]
        if large:
            rows = ",".join(f"({self._shard},{segment},{body})" for body in large)
            parts.append(f"INSERT INTO surety.body_reference(shard,segment,body)VALUES{rows} ON CONFLICT DO NOTHING".encode())

    def _remember(self, commit: Commit) -> bytes:
        rows = [
            b"(%d,%d,%d,%d,%b)" % (self._shard, destination, commit.at, commit.number, literal(texts(identifiers)))
            for destination, identifiers in commit.remembered
        ]
        return b"INSERT INTO surety.duplicate(shard,destination,at,number,identifiers)VALUES" + b",".join(rows)

    def _unschedule(self, commit: Commit) -> bytes:
        """Their rows are in a segment now, and their large bodies named from there; or they are volatile, and the engine knows their bodies. What was moved
        to another time has a new row, which names its body now."""
        due = commit.due
        again = [message.body.body for message in commit.scheduled if type(message.body) is StoredBody and message.sequence not in due]
        return (
            f"WITH gone AS (DELETE FROM surety.scheduled WHERE shard = {self._shard} AND schedule = ANY('{integers(due)}'::int8[]) RETURNING stored_body) "
            f"DELETE FROM surety.body_reference WHERE shard = {self._shard} AND segment = {SCHEDULED} "
            f"AND body IN (SELECT stored_body FROM gone WHERE stored_body <> ALL('{integers(again)}'::int8[]))"
        ).encode()

    def _copy(self, copies: list[Copy], segment: int) -> list[bytes]:
        """R15: the sources' octets, encoding and, unless they are cut, bodies under the targets' headers. A source that is not there violates NOT NULL:
        better no commit than a position without its message."""
        if copies[0].segment == RETAINED:
            source, same = "surety.retained", f"s.shard = {self._shard} AND "
        else:
            source, same = message_table(self._shard, copies[0].segment), ""
        table = message_table(self._shard, segment)
        values = b",".join(map(_copy_values, copies))
        names = "destination, lane, position, sequence, new_position, accepted_at, new_destination, expiration, priority, reliability"
        names += ", message_id, client_id, annotations, cut"
        insert = (
            f"INSERT INTO {table}({COLUMNS}) SELECT t.sequence, t.new_position, t.accepted_at, t.new_destination, coalesce(t.cut, o.size), "
            "CASE WHEN t.cut IS NULL THEN o.body ELSE '' END, CASE WHEN t.cut IS NULL THEN o.stored_body END, "
            "t.expiration, t.priority, t.reliability, o.encoding, NULL, t.message_id, t.client_id, t.annotations, o.headers FROM (VALUES "
        )
        # LATERAL with a LIMIT is one index probe a copy, whatever the planner thinks of a table without statistics.
        lookup = (
            f") AS t({names}) LEFT JOIN LATERAL (SELECT size, body, stored_body, encoding, headers FROM {source} s "
            f"WHERE {same}s.destination = t.destination AND s.priority = t.lane AND s.position = t.position LIMIT 1) AS o ON true RETURNING stored_body"
        )
        reference = (
            f") INSERT INTO surety.body_reference(shard,segment,body) SELECT {self._shard},{segment},stored_body FROM copied "
            "WHERE stored_body IS NOT NULL ON CONFLICT DO NOTHING"
        )
        return [b"WITH copied AS (" + insert.encode() + values + lookup.encode() + reference.encode()]

    def _define_all(self, kind: type[Definition], definitions: list[Any], commit: Commit) -> list[bytes]:
        """Neighbours of one kind. Subscriptions in one statement: those of a pattern may be thousands."""
        if kind is UndoKept:
            return [statement for kept in definitions for statement in undo.keep(kept, self._shard, commit.number)]
        if kind is UndoEnded:
            return [statement for ended in definitions for statement in undo.end(ended, self._shard, commit.at)]
        if kind is SubscriptionDefined:
            return [self._subscriptions(definitions)]
        if kind is SubscriptionDestroyed:
            ended = ",".join(str(definition.subscription) for definition in definitions)
            where = f"WHERE shard = {self._shard} AND subscription IN ({ended})"
            return [f"UPDATE surety.subscription SET destroyed_at = clock_timestamp() {where}".encode()]
        return [statement for definition in definitions for statement in self._define(definition)]

    def _subscriptions(self, definitions: list[SubscriptionDefined]) -> bytes:
        latest = {definition.subscription: definition for definition in definitions}  # one statement does not touch a row twice
        rows = [
            b"(%d,%d,%d,%b,%b,%b,%b,%b,%b,%b)"
            % (
                self._shard, one.subscription, one.destination, literal(one.name), literal(one.client_id), _boolean(one.shared),
                literal(one.selector), _boolean(one.no_local), literal(one.account), literal(one.pattern),
            )
            for one in latest.values()
        ]  # fmt: skip
        return (
            b"INSERT INTO surety.subscription(shard,subscription,destination,name,client_id,shared,selector,no_local,account,pattern)VALUES"
            + b",".join(rows)
            + b"ON CONFLICT(shard,subscription)DO UPDATE SET destination=excluded.destination,name=excluded.name,client_id=excluded.client_id,"
            b"shared=excluded.shared,selector=excluded.selector,no_local=excluded.no_local,account=excluded.account,pattern=excluded.pattern"
        )

    def _define(
        self,
        definition: DestinationDefined | DestinationDestroyed | SegmentClosed | AliasDefined | AliasDeleted | PolicyDefined | PolicyDropped,
    ) -> list[bytes]:
        shard = self._shard
        if isinstance(definition, DestinationDefined):
            return [
                b"INSERT INTO surety.destination(shard,destination,address,created_at,automatic,state,settings)VALUES(%d,%d,%b,%d,%b,%d,%b)"
                b"ON CONFLICT(shard,destination)DO UPDATE SET address=excluded.address,created_at=excluded.created_at,automatic=excluded.automatic,"
                b"state=excluded.state,settings=excluded.settings"
                % (
                    shard, definition.destination, literal(definition.address), definition.created_at,
                    _boolean(definition.automatic), definition.state, json_literal(definition.settings),
                )
            ]  # fmt: skip
        if isinstance(definition, PolicyDefined):
            values = shard, literal(definition.pattern), json_literal(definition.settings)
            insert = b"INSERT INTO surety.policy(shard,pattern,settings)VALUES(%d,%b,%b)ON CONFLICT(shard,pattern)DO UPDATE SET settings=excluded.settings"
            return [insert % values]
        if isinstance(definition, PolicyDropped):
            return [b"DELETE FROM surety.policy WHERE shard=%d AND pattern=%b" % (shard, literal(definition.pattern))]
        if isinstance(definition, DestinationDestroyed):
            where = f"SET destroyed_at = clock_timestamp() WHERE shard = {shard} AND destination = {definition.destination}"
            return [f"UPDATE surety.destination {where}".encode(), f"UPDATE surety.subscription {where}".encode()]
        if isinstance(definition, AliasDefined):
            return [
                b"INSERT INTO surety.alias(shard,address,target,default_reliability,maximum_reliability,reliability_override)VALUES(%d,%b,%b,%b,%b,%b)"
                b"ON CONFLICT(shard,address)DO UPDATE SET target=excluded.target,default_reliability=excluded.default_reliability,"
                b"maximum_reliability=excluded.maximum_reliability,reliability_override=excluded.reliability_override"
                % (
                    shard, literal(definition.address), literal(definition.target), literal(definition.default_reliability),
                    literal(definition.maximum_reliability), _boolean(definition.reliability_override),
                )
            ]  # fmt: skip
        if isinstance(definition, AliasDeleted):
            return [b"DELETE FROM surety.alias WHERE shard = %d AND address = %b" % (shard, literal(definition.address))]
        return [self._close(definition)]

    def _close(self, closed: SegmentClosed) -> bytes:
        rows = [(destination, lane, first, last) for (destination, lane), (first, last) in closed.lanes.items()]
        columns = ["{" + ",".join(map(str, column)) + "}" for column in zip(*rows, strict=True)] or ["{}"] * 4
        destinations, lanes, firsts, lasts = columns
        return (
            f"UPDATE surety.segment SET last_sequence = {closed.last_sequence}, destinations = '{destinations}', lanes = '{lanes}', "
            f"firsts = '{firsts}', lasts = '{lasts}', closed_at = clock_timestamp() WHERE shard = {self._shard} AND segment = {closed.segment}"
        ).encode()


def _together(copies: list[Copy]) -> Iterator[list[Copy]]:
    """Neighbours with sources in one table; a copy of a copy waits for the next statement, which sees the first."""
    group: list[Copy] = []
    targets: set[tuple[int, int, int]] = set()
    for copy in copies:
        if group and (copy.segment != group[0].segment or copy.source in targets):
            yield group
            group, targets = [], set()
        group.append(copy)
        targets.add((copy.target.destination, copy.target.header.lane, copy.target.position))
    if group:
        yield group


def _copy_values(copy: Copy) -> bytes:
    target, header = copy.target, copy.target.header
    return b"(%d,%d,%d::int8,%d::int8,%d::int8,%d::int8,%d,%d::int8,%d,%d,%b::text,%b::text,%b::text,%b::int4)" % (
        *copy.source, target.sequence, target.position, target.accepted_at, target.destination,
        instant(header.expiration), header.priority, header.reliability,
        _text(header.message_id), _text(header.client_id), _text(header.annotations), b"%d" % target.size if copy.cut else b"NULL",
    )  # fmt: skip
