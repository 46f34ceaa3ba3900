"""Bodies of destinations with `archive_ms` into the lake, and out of it again when their time has passed.

Rows are read where they are: in their segment, or, if that is gone, in `surety.archive`, into which the store puts them before it drops the table. The
number of a message (`sequence`) says how far the lake is: commits give them out in order. As with the ledger, files count when a manifest names them, which
also says up to where, and PostgreSQL follows: then the archive lets go of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pyarrow as pa

from broker_core.engine.message import LEVEL_NAMES, Encoding
from broker_core.store.archive import ARCHIVE

from . import schema
from .columns import Frame
from .database import is_there, ledger_table, snapshot
from .lake import File, Lake, Manifest, now_ms, replaced, spread
from .runs import Run

ROWS, OCTETS = 200, 16 << 20
"""Of one batch, one row at least: a body may have 100 MiB."""
ATTEMPTS = 20
_MARKED = "(SELECT destination FROM surety.destination WHERE shard = %(shard)s AND (settings->>'archive_ms')::int8 > 0)"
_ROWS = (
    "SELECT sequence, destination, priority, position, accepted_at, expiration, reliability, encoding, "
    "coalesce(message_id, 'ID:' || (SELECT instance FROM surety.installation) || '-' || sequence), client_id, annotations, headers, body, stored_body "
    f"FROM {{table}} WHERE destination IN {_MARKED} AND sequence > %(after)s AND sequence <= %(upto)s"
)

Tell = Callable[[str], None]


@dataclass(slots=True, frozen=True)
class Part:
    """What one task reads: of a segment, wherever its rows are by now, or of those that are in no catalogue any more."""

    shard: int
    segment: int | None
    known: tuple[int, ...]
    """Segments that others read."""
    after: int
    upto: int


def last_sequence(connection: psycopg.Connection[Any], shard: int) -> int:
    """Whatever message has a number up to this one is committed. 0: the ledger is empty."""
    for (segment,) in connection.execute("SELECT segment FROM surety.ledger_segment WHERE shard = %s ORDER BY segment DESC", [shard]).fetchall():
        if is_there(connection, ledger_table(shard, segment)):
            row = connection.execute(f"SELECT sequence FROM {ledger_table(shard, segment)} ORDER BY number DESC LIMIT 1".encode()).fetchone()
            if row is not None:
                return int(row[0])
    return 0


def parts(connection: psycopg.Connection[Any], shard: int, after: int, upto: int) -> list[Part]:
    """What is to be read of these messages; nothing if no destination is marked."""
    marked = connection.execute(f"SELECT EXISTS {_MARKED}".encode(), {"shard": shard}).fetchone()
    if marked != (True,) or upto <= after:
        return []
    segments = connection.execute("SELECT segment FROM surety.segment WHERE shard = %s ORDER BY segment", [shard]).fetchall()
    known = tuple(segment for (segment,) in segments)
    return [*(Part(shard, segment, (), after, upto) for segment in known), Part(shard, None, known, after, upto)]


def bodies_of(url: str, part: Part) -> Iterator[pa.RecordBatch]:
    """Batches of schema.BODIES. Raises psycopg.Error."""
    for attempt in range(ATTEMPTS):
        with snapshot(url) as connection:
            source, condition, keys = "surety.archive", " AND shard = %(shard)s AND segment <> ALL(%(known)s)", {"known": list(part.known)}
            if part.segment is not None:
                row = connection.execute("SELECT FROM surety.segment WHERE shard = %s AND segment = %s", [part.shard, part.segment]).fetchone()
                table = f"surety.message_{int(part.shard)}_{int(part.segment)}"
                condition = f" AND shard = %(shard)s AND segment = {int(part.segment)}"
                if row is not None:
                    # What this instant's catalogue has may be dropped since: then the next instant has it in the archive.
                    if not is_there(connection, table) and attempt < ATTEMPTS - 1:
                        continue
                    source, condition = table, ""
            yield from _batches(connection, _ROWS.format(table=source) + condition, {"shard": part.shard, "after": part.after, "upto": part.upto, **keys})
            return


def _batches(connection: psycopg.Connection[Any], statement: str, keys: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    frame, rows, octets = Frame(schema.BODIES), list[tuple[Any, ...]](), 0
    with connection.cursor("pipeline", binary=True) as cursor:
        cursor.itersize = 50
        cursor.execute(statement.encode(), keys)
        for row in cursor:
            rows.append(_row(connection, keys["shard"], row))
            octets += len(rows[-1][-1])
            if len(rows) >= ROWS or octets >= OCTETS:
                yield frame.of_rows(rows)
                rows, octets = [], 0
    if rows:
        yield frame.of_rows(rows)


def _row(connection: psycopg.Connection[Any], shard: int, row: tuple[Any, ...]) -> tuple[Any, ...]:
    sequence, destination, lane, position, at, expiration, reliability, encoding, message_id, client_id, annotations, headers, body, stored = row
    if stored is not None:
        body = _large(connection, shard, stored)
    expires = expiration * 1000 if 0 < expiration < 1 << 53 else None
    return (
        shard, sequence, destination, lane, position, at * 1000, expires, lane, LEVEL_NAMES[reliability], Encoding(encoding).name.lower(), message_id,
        client_id, annotations, bytes(headers), bytes(body or b""),
    )  # fmt: skip


def _large(connection: psycopg.Connection[Any], shard: int, body: int) -> bytes:
    """Together in memory: so it is in Parquet, too."""
    with connection.cursor(binary=True) as cursor:
        cursor.execute("SELECT octets FROM surety.body_chunk WHERE shard = %s AND body = %s ORDER BY chunk", [shard, body])
        return b"".join(bytes(octets) for (octets,) in cursor)


# -- the lake ---------------------------------------------------------------------------------------------------------------------------
def archive(lake: Lake, run: Run, url: str, manifest: Manifest, *, tell: Tell) -> Manifest:
    """Bring the archive in the lake up to date, and remove what has been kept for long enough. Returns what the lake is then. Raises psycopg.Error,
    LakeRefused, and what Spark raises."""
    run.says("archive: looking for bodies")
    with snapshot(url) as connection:
        upto = last_sequence(connection, run.shard)
        # What was seen here outlives a crash of the database, for what the run says next is on disk behind it.
        wanted = parts(connection, run.shard, manifest.archived, upto)
        statement = "SELECT destination, coalesce((settings->>'archive_ms')::int8, 0) FROM surety.destination WHERE shard = %s"
        kept = dict(connection.execute(statement, [run.shard]).fetchall())
    old = [file for file in manifest.of("bodies") if _is_over(file, kept, datetime.now(UTC))]
    new: Sequence[File] = ()
    if wanted:
        run.says(f"archive: messages {manifest.archived + 1} to {upto}")
        new = lake.write("bodies", f"{run.number:09d}", spread(lake.spark, "bodies", [partial(bodies_of, url, part) for part in wanted]))
    if old or wanted:
        published = replace(replaced(manifest, old, new, now_ms()), run=run.number, archived=max(upto, manifest.archived))
        run.says(f"publishing bodies up to message {published.archived}")
        lake.publish(published)
        manifest = published
        counts = {"bodies": sum(file.rows for file in new), "bodies_removed": sum(file.rows for file in old)}
        run.says("archived", **counts)
        tell(f"archive: {counts['bodies']} bodies came, {counts['bodies_removed']} went")
    _let_go(run, manifest.archived)
    return manifest


def _is_over(file: File, kept: dict[int, int], now: datetime) -> bool:
    """All that is in it has been kept for as long as its destination says."""
    folders = file.folders
    ends = datetime.combine(date.fromisoformat(folders["date"]) + timedelta(days=1), datetime.min.time(), UTC)
    age = (now - ends) / timedelta(milliseconds=1)
    return age >= kept.get(int(folders["destination"]), 0)


def _let_go(run: Run, upto: int) -> None:
    """The lake has what is up to there: PostgreSQL needs it no more."""
    connection, keys = run.connection, {"shard": run.shard, "upto": upto, "archive": ARCHIVE}
    with connection.transaction():
        connection.execute(
            "INSERT INTO surety.archive_reader (shard, sequence) VALUES (%(shard)s, %(upto)s) "
            "ON CONFLICT (shard) DO UPDATE SET sequence = excluded.sequence, at = clock_timestamp()",
            keys,
        )
        gone = connection.execute(
            "WITH gone AS (DELETE FROM surety.archive WHERE shard = %(shard)s AND sequence <= %(upto)s RETURNING stored_body) "
            "SELECT DISTINCT stored_body FROM gone WHERE stored_body IS NOT NULL",
            keys,
        ).fetchall()
        bodies = [body for (body,) in gone]
        if bodies:
            left = (
                "DELETE FROM surety.body_reference r WHERE shard = %(shard)s AND segment = %(archive)s AND body = ANY(%(bodies)s) "
                "AND NOT EXISTS (SELECT FROM surety.archive a WHERE a.shard = r.shard AND a.stored_body = r.body) RETURNING body"
            )
            released = [body for (body,) in connection.execute(left.encode(), keys | {"bodies": bodies}).fetchall()]
            unnamed = (
                "SELECT b FROM unnest(%(bodies)s::int8[]) AS b WHERE NOT EXISTS "
                "(SELECT FROM surety.body_reference r WHERE r.shard = %(shard)s AND r.body = b)"
            )
            free = [body for (body,) in connection.execute(unnamed.encode(), keys | {"bodies": released}).fetchall()]
            connection.execute("DELETE FROM surety.body WHERE shard = %(shard)s AND body = ANY(%(bodies)s)", keys | {"bodies": free})
            connection.execute("DELETE FROM surety.body_chunk WHERE shard = %(shard)s AND body = ANY(%(bodies)s)", keys | {"bodies": free})
