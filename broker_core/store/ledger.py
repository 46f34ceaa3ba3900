"""The ledger: one row per commit, columnar, in free-standing tables of bounded size (R1, R4, R26). It is the log and the audit in one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from broker_core.engine.writes import Commit

from . import LedgerRow
from .traces import begun, ended, traces_of
from .wire import Call

RANGES = (
    ("accepted", (("destination", "int4"), ("lane", "int2"), ("first", "int8"), ("last", "int8"))),
    ("offered", (("subscription", "int4"), ("lane", "int2"), ("first", "int8"), ("last", "int8"), ("link", "int8"))),
    ("settled", (("subscription", "int4"), ("lane", "int2"), ("first", "int8"), ("last", "int8"), ("outcome", "int2"))),
    ("failures", (("subscription", "int4"), ("lane", "int2"), ("position", "int8"), ("count", "int4"))),
    ("octets", (("destination", "int4"), ("change", "int8"), ("arrived", "int8"))),
    (
        "traced",
        (
            ("destination", "int4"), ("lane", "int2"), ("first", "int8"), ("last", "int8"), ("kind", "int2"),
            ("to", "int4"), ("to_lane", "int2"), ("to_first", "int8"),
        ),
    ),
    ("begun", (("subscription", "int4"), ("destination", "int4"))),
    ("ended", (("subscription", "int4"), ("destination", "int4"))),
    ("blocked", (("destination", "int4"), ("since", "int8"), ("until", "int8"))),
)  # fmt: skip
"""What a row tells, each an array per column; NULL where nothing of the kind happened."""
ARRAYS = ", ".join(f"{name}_{column}" for name, columns in RANGES for column, _ in columns)
SCALARS = "number, at, epoch, sequence, segment, weight"
ROWS_MAX = 500_000
"""Rows of one ledger table: an hour at 140 commits a second; its index stays in memory."""
OCTETS_MAX = 256 * 1024 * 1024
"""Octets of one ledger table, so that the size cap (20 GB) drops little more than it must."""

ROW_OCTETS = 120
"""A row's header and scalars and its entry in the index, about."""
ARRAY_OCTETS = 24
"""An array's header."""


def create_table(shard: int, segment: int) -> str:
    """Statements that make one ledger table. Never updated: autovacuum has nothing to do here."""
    arrays = ", ".join(f"{name}_{column} {kind}[]" for name, columns in RANGES for column, kind in columns)
    storage = ", ".join(f"ALTER {column} SET STORAGE external" for column in ARRAYS.split(", "))
    table = f"surety.ledger_{shard}_{segment}"
    return (
        f"CREATE TABLE {table} (number int8 PRIMARY KEY, at int8 NOT NULL, epoch int8 NOT NULL, sequence int8 NOT NULL, segment int4 NOT NULL, "
        f"weight int8 NOT NULL, {arrays}) WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off); ALTER TABLE {table} {storage}"
    )


def takes_all(known: Collection[str]) -> bool:
    """Whether rows can be appended to a table with these columns: an earlier version of this program may have made it with less."""
    return all(f"{name}_{column}" in known for name, columns in RANGES for column, _ in columns)


def arrays_of(known: Collection[str]) -> str:
    """ARRAYS of a table with these columns: NULL stands for those that it lacks."""
    names = ((f"{name}_{column}", kind) for name, columns in RANGES for column, kind in columns)
    return ", ".join(name if name in known else f"NULL::{kind}[]" for name, kind in names)


class Ledger:
    """Writes the statement that appends a commit's row; knows how full the present table is."""

    def __init__(self, shard: int, epoch: int, segment: int) -> None:
        self._shard, self._epoch = shard, epoch
        self.segment = segment
        self.rows = 0
        self.octets = 0

    def is_full(self) -> bool:
        return self.rows >= ROWS_MAX or self.octets >= OCTETS_MAX

    def roll(self) -> None:
        """Go on in the next table, which exists."""
        self.segment, self.rows, self.octets = self.segment + 1, 0, 0

    def statement(self, commit: Commit, weight: int) -> bytes:
        """INSERT of the commit's row; `weight` is the octets of its messages."""
        columns, scalars, arrays = self._row(commit, weight)
        quoted = [f"'{array}'" for array in arrays]
        return f"INSERT INTO {self._table()}({columns})VALUES({','.join([str(scalar) for scalar in scalars] + quoted)})".encode()

    def call(self, commit: Commit, weight: int) -> Call:
        """The same with parameters: there are few shapes of rows, and parsing one costs more than storing it."""
        columns, scalars, arrays = self._row(commit, weight)
        parameters = [*map(str, scalars), *arrays]
        places = ",".join([f"${place}" for place in range(1, len(parameters) + 1)])
        return Call(f"INSERT INTO {self._table()}({columns})VALUES({places})".encode(), [parameter.encode() for parameter in parameters])

    def _table(self) -> str:
        return f"surety.ledger_{self._shard}_{self.segment}"

    def _row(self, commit: Commit, weight: int) -> tuple[str, tuple[int, ...], list[str]]:
        """The names of its columns, its scalars and its arrays. It counts as written."""
        columns, arrays = [SCALARS], []
        scalars = (commit.number, commit.at, self._epoch, commit.sequence, commit.segment, weight)
        told: tuple[Sequence[tuple[int, ...]], ...] = (commit.accepted, commit.offered, commit.settled, commit.failures, commit.octets)
        if commit.copies or commit.bulk_copies or commit.traces or commit.definitions or commit.blocked:
            told += traces_of(commit), begun(commit), ended(commit), commit.blocked
        numbers = 0
        for (name, fields), rows in zip(RANGES, told, strict=False):
            if rows:
                columns.extend([f"{name}_{column}" for column, _ in fields])
                arrays.extend(_arrays(rows))
                numbers += len(rows) * len(fields)
        self.rows += 1
        self.octets += ROW_OCTETS + ARRAY_OCTETS * len(arrays) + 8 * numbers
        return ",".join(columns), scalars, arrays


def _arrays(rows: Sequence[tuple[int, ...]]) -> list[str]:
    """The columns as arrays in their text form. Ten thousand queues make tens of thousands of ranges a second: of ranges of one message the last is the
    first, a lane is mostly the same for all, and repr writes a tuple in half the time of joining its numbers."""
    if len(rows) == 1:
        return [f"{{{number:d}}}" for number in rows[0]]
    arrays: list[str] = []
    before: tuple[int, ...] = ()
    for column in zip(*rows, strict=True):
        if column == before:
            arrays.append(arrays[-1])
        elif column.count(column[0]) == len(column):
            arrays.append("{" + (f"{column[0]:d}," * len(column))[:-1] + "}")
        elif column[0].__class__ is int:
            arrays.append("{" + repr(column)[1:-1] + "}")
        else:  # outcomes, whose repr is not a number
            arrays.append("{" + ",".join([f"{number:d}" for number in column]) + "}")
        before = column
    return arrays


def ledger_row(row: Sequence[Any]) -> tuple[LedgerRow, int]:
    """A row of SCALARS and ARRAYS as the engine wants it, and the octets of its messages."""
    number, at, _epoch, sequence, segment, weight, *arrays = row
    ranges: list[list[tuple[int, ...]]] = []
    start = 0
    for _, columns in RANGES:
        ranges.append(_rows(arrays[start : start + len(columns)]))
        start += len(columns)
    return LedgerRow(number, at, sequence, segment, *ranges), weight  # type: ignore[arg-type]


def _rows(columns: Sequence[Any]) -> list[tuple[int, ...]]:
    """None where the row is older than its column."""
    if columns[0] is None:
        return []
    return list(zip(*[column or (None,) * len(columns[0]) for column in columns], strict=True))
