"""From PostgreSQL's arrays in binary form to Arrow's columns, without a Python object for each value: at 20,000,000 events each would cost seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from psycopg.adapt import Buffer, Loader
from psycopg.pq import Format
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

Numbers = np.ndarray[Any, np.dtype[Any]]
_HEADER = np.dtype(">i4")
_ELEMENTS = {size: np.dtype([("length", ">i4"), ("value", f">i{size}")]) for size in (2, 4, 8)}


class _Octets(Loader):
    """An array as it came."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


def arrays_stay_octets(connection: psycopg.Connection[Any]) -> None:
    """Arrays of integers that this connection reads in binary form are given as octets, for `numbers`."""
    for name in ("int2", "int4", "int8"):
        found = psycopg.postgres.types[name]
        connection.adapters.register_loader(found.array_oid, _Octets)


def numbers(octets: bytes | None, size: int) -> Numbers:
    """A PostgreSQL array of integers of `size` octets, none of them NULL, in binary form; None is the empty one."""
    if octets is None or len(octets) < 20:
        return np.empty(0, f"i{size}")
    dimensions, nulls = np.frombuffer(octets, _HEADER, 2)
    assert dimensions == 1 and not nulls, "an array of the ledger has one dimension and no NULL"
    return np.frombuffer(octets, _ELEMENTS[size], offset=20)["value"].astype(f"=i{size}")


def instants(milliseconds: Numbers) -> pa.Array:
    """Milliseconds since the epoch as Spark's timestamps."""
    return pa.array(milliseconds * 1000, pa.int64()).view(pa.timestamp("us", tz="UTC"))


def words(codes: Numbers, names: Sequence[str]) -> pa.Array:
    """Codes from 0 as what they stand for. The same code throughout, as is mostly the case, is written once."""
    if len(codes) and (codes == codes[0]).all():
        return pa.repeat(pa.scalar(names[int(codes[0])]), len(codes))
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int16()), pa.array(names)).dictionary_decode()


class Frame:
    """Makes record batches of one schema; columns that are not given are null."""

    def __init__(self, schema: StructType) -> None:
        self.schema = to_arrow_schema(schema, timezone="UTC")

    def batch(self, rows: int, columns: Mapping[str, Any]) -> pa.RecordBatch:
        """`columns`: a NumPy or Arrow array, or one value for all rows."""
        made = []
        for field in self.schema:
            value = columns.get(field.name)
            if value is None:
                made.append(pa.nulls(rows, field.type))
            elif isinstance(value, pa.Array):
                made.append(value)
            elif isinstance(value, np.ndarray):
                made.append(pa.array(value).cast(field.type))
            else:
                made.append(pa.repeat(pa.scalar(value, field.type), rows))
        return pa.RecordBatch.from_arrays(made, schema=self.schema)

    def of_rows(self, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
        """Of rows of Python values in the order of the columns."""
        columns = zip(*rows, strict=True) if rows else [()] * len(self.schema)
        return pa.RecordBatch.from_arrays([pa.array(c, f.type) for c, f in zip(columns, self.schema, strict=True)], schema=self.schema)
