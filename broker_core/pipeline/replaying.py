"""Messages of the archive are sent again: read from the lake in the order in which they came, and put into the broker's inbox (R17), which the node empties in
its own commits. What goes into the inbox, and how far the replay is, is one transaction; so one that was killed goes on, and sends nothing twice."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import psycopg
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from broker_core.amqp.amending import without_expiry
from broker_core.conversion import decode
from broker_core.engine.dead import REPLAYED
from broker_core.engine.message import LEVEL_NAMES, Encoding, Header, Message
from broker_core.engine.properties import Properties
from broker_core.engine.selector import compile_selector
from broker_core.store.bodies import CHUNK_OCTETS
from broker_core.store.inbox import INBOX
from broker_core.stomp.escaping import canonical
from broker_core.stomp.mapping import BROKERS_OWN, DELAYS
from broker_core.stomp.sections import DUPLICATE_IDS

from .jobs import DatabaseLost, Place, bring_up_to_date, forget_dead, spark_told
from .lake import Lake
from .replays import CANCELLED, DONE, FAILED, GOES_ON, RUNNING, Wanted
from .replays import ask as remember
from .runs import ERROR_CHARACTERS_MAX, Run
from .session import session

ROWS, OCTETS = 200, 4 << 20
"""Of one transaction, one message at least."""
WAITING_MAX = 10_000
"""Messages in the inbox: a node that is not there, or has no room, is not sent more."""
PAUSE_S = 0.5
"""At the most between two looks whether it is cancelled."""
LARGE_OCTETS = 256 * 1024
"""Bodies above it are kept apart (R16)."""
NOT_AGAIN = frozenset(("destination", "expires", *DUPLICATE_IDS, *DELAYS, *BROKERS_OWN))
"""Of a STOMP header section: what concerned the first sending only."""

Tell = Callable[[str], None]


class ReplayUnknown(RuntimeError):
    """One sentence."""


def ask(url: str, wanted: Wanted, by: str) -> int:
    """Remembered, with a row in the audit: the number under which `replay` does it. Raises InvalidReplay, DatabaseLost."""
    try:
        with psycopg.connect(url) as connection, connection.cursor() as cursor:
            number = remember(cursor, wanted, by)
            arguments = {name: value for name, value in asdict(wanted).items() if value} | {"replay": number}
            cursor.execute(
                "INSERT INTO surety.audit (who, origin, what, address, arguments) VALUES (%s, 'command line', 'replay', %s, %s::jsonb)",
                [by, wanted.address, json.dumps(arguments, default=str)],
            )
            return number
    except psycopg.Error as error:
        raise DatabaseLost(f"the database does not take the replay: {str(error).strip() or type(error).__name__}") from error


@dataclass(slots=True)
class _Asked:
    """Its row."""

    number: int
    address: str
    into: str
    accepted_from: Any
    accepted_to: Any
    selector: str
    identifiers: list[str]
    rate: int
    upto: int
    """0: it was never begun."""
    last: int
    total: int | None
    sent: int


@dataclass(slots=True, frozen=True)
class Result:
    number: int
    state: str
    sent: int
    total: int


def replay(place: Place, number: int, *, tell: Tell, requested_by: str = "") -> Result:
    """Send what is left of it. Raises ReplayUnknown, and as jobs.run."""
    try:
        with Run(place.url, "replay", shard=place.shard, requested_by=requested_by) as begun:
            asked = _taken(begun, number)
            try:
                with spark_told(place.spark.work):
                    return _replayed(place, begun, asked, tell)
            except BaseException as error:
                if not begun.connection.closed:
                    _end(begun, number, FAILED, (str(error) or type(error).__name__)[:ERROR_CHARACTERS_MAX])
                raise
    except psycopg.Error as error:
        raise DatabaseLost(f"the database does not go on with the replay: {str(error).strip() or type(error).__name__}") from error


def _taken(run: Run, number: int) -> _Asked:
    row = run.connection.execute(
        "UPDATE surety.pipeline_replay SET state = %s, run = %s, ended_at = NULL, error = '' "
        "WHERE shard = %s AND replay = %s AND state = ANY(%s) AND NOT cancels "
        'RETURNING replay, address, "into", accepted_from, accepted_to, selector, identifiers, rate, coalesce(upto_sequence, 0), last_sequence, total, sent',
        [RUNNING, run.number, run.shard, number, list(GOES_ON)],
    ).fetchone()
    if row is None:
        raise ReplayUnknown(f"there is no replay {number} that is not over: ask for a new one")
    return _Asked(*row)


def _end(run: Run, number: int, state: str, error: str = "") -> None:
    run.connection.execute(
        "UPDATE surety.pipeline_replay SET state = %s, error = %s, ended_at = clock_timestamp() WHERE shard = %s AND replay = %s",
        [state, error, run.shard, number],
    )


def _replayed(place: Place, run: Run, asked: _Asked, tell: Tell) -> Result:
    tell(f"replay {asked.number} of {asked.address} into {asked.into}: run {run.number} has begun")
    forget_dead(place.spark.work)
    lake = Lake(session(place.spark), place.lake)
    if asked.total is None:
        manifest = bring_up_to_date(lake, run, place.url, tell=tell)
        run.says("replay: counting")
        asked.upto = manifest.archived
        asked.total = chosen(lake, run, asked).count()
        run.connection.execute(
            "UPDATE surety.pipeline_replay SET upto_sequence = %s, total = %s WHERE replay = %s", [asked.upto, asked.total, asked.number]
        )
    run.says(f"replay {asked.number}: sending {asked.total - asked.sent} messages", replay=asked.number, total=asked.total)
    goes_on = _send_all(run, asked, _parcels(chosen(lake, run, asked).orderBy("sequence")), tell)
    state = DONE if goes_on else CANCELLED
    _end(run, asked.number, state)
    run.says("replayed", sent=asked.sent, total=asked.total)
    tell(f"replay {asked.number} is {state}: {asked.sent} of {asked.total} messages were sent to {asked.into}")
    return Result(asked.number, state, asked.sent, asked.total)


# -- what -------------------------------------------------------------------------------------------------------------------------------
def chosen(lake: Lake, run: Run, asked: _Asked) -> DataFrame:
    """What is left of what is asked for, of the lake as it is."""
    numbers = [
        number for (number,) in run.connection.execute(
            "SELECT destination FROM surety.destination WHERE shard = %s AND address = %s", [run.shard, asked.address]
        )
    ]  # fmt: skip
    found: DataFrame = lake.frame("bodies").where(f.col("destination").isin(numbers) & (f.col("sequence") > asked.last) & (f.col("sequence") <= asked.upto))
    if asked.accepted_from is not None:
        found = found.where((f.col("at") >= f.lit(asked.accepted_from)) & (f.col("date") >= f.to_date(f.lit(asked.accepted_from))))
    if asked.accepted_to is not None:
        found = found.where((f.col("at") < f.lit(asked.accepted_to)) & (f.col("date") <= f.to_date(f.lit(asked.accepted_to))))
    if asked.identifiers:
        found = found.where(f.col("message_id").isin(asked.identifiers))
    return selected(found, asked.selector) if asked.selector else found


class _Known:
    """What a selector asks of a broker. The identifier is in the row."""

    decode = staticmethod(decode)

    @staticmethod
    def message_id(message: Message) -> str:
        return message.header.message_id


def selected(rows: DataFrame, text: str) -> DataFrame:
    """Those of the lake's bodies for which the selector is true."""

    def matching(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        selector = compile_selector(text)
        for batch in batches:
            looked = batch.select(["priority", "reliability", "encoding", "message_id", "client_id", "annotations", "headers", "at"]).to_pylist()
            wanted = [selector.matches(Properties(_Known, message).__getitem__, coerce=not message.header.encoding) for message in map(_message, looked)]
            yield batch.filter(pa.array(wanted))

    return rows.mapInArrow(matching, rows.schema)


def _message(row: dict[str, Any]) -> Message:
    """As far as a selector asks."""
    header = Header(
        row["headers"], row["priority"], LEVEL_NAMES.index(row["reliability"]), 0, Encoding[row["encoding"].upper()], row["message_id"], row["client_id"] or "",
        row["annotations"] or "",
    )  # fmt: skip
    message = Message(header, None, len(row["headers"]))
    message.accepted_at = round(row["at"].timestamp() * 1000)
    return message


# -- sending ----------------------------------------------------------------------------------------------------------------------------
def _parcels(rows: DataFrame) -> Iterator[list[Any]]:
    """In order, so many as go together."""
    parcel, octets = list[Any](), 0
    for row in rows.select("sequence", "priority", "reliability", "encoding", "message_id", "headers", "body").toLocalIterator():
        if parcel and (len(parcel) >= ROWS or octets + len(row.body) > OCTETS):
            yield parcel
            parcel, octets = [], 0
        parcel.append(row)
        octets += len(row.body)
    if parcel:
        yield parcel


def _send_all(run: Run, asked: _Asked, parcels: Iterator[list[Any]], tell: Tell) -> bool:
    """False: it was cancelled."""
    instance, began, before, told = run.instance(), time.monotonic(), asked.sent, 0.0
    for parcel in parcels:
        # Even a parcel is not sent faster than it may be.
        for start in range(0, len(parcel), asked.rate):
            if not _wait(run, asked, began + (asked.sent - before) / asked.rate):
                return False
            if not _send(run, asked, instance, parcel[start : start + asked.rate]):
                return False
        if time.monotonic() - told >= 5:
            told = time.monotonic()
            run.says(f"replay {asked.number}: {asked.sent} of {asked.total}", sent=asked.sent)
            tell(f"{asked.sent} of {asked.total}")
    return True


def _wait(run: Run, asked: _Asked, instant: float) -> bool:
    """Until its turn has come and the inbox has room. False: it was cancelled meanwhile."""
    while True:
        row = run.connection.execute(
            "SELECT cancels, (SELECT count(*) FROM (SELECT FROM surety.inbox WHERE shard = %s LIMIT %s) AS waiting) "
            "FROM surety.pipeline_replay WHERE replay = %s",
            [run.shard, WAITING_MAX, asked.number],
        ).fetchone()
        if row is None or row[0]:
            return False
        left = instant - time.monotonic()
        if left <= 0 and row[1] < WAITING_MAX:
            return True
        time.sleep(min(max(left, 0.01), PAUSE_S))


def _send(run: Run, asked: _Asked, instance: str, rows: list[Any]) -> bool:
    """Into the inbox, and noted. False: it was cancelled."""
    connection = run.connection
    with connection.transaction():
        noted = connection.execute(
            "UPDATE surety.pipeline_replay SET sent = sent + %s, last_sequence = %s WHERE replay = %s AND last_sequence = %s AND NOT cancels RETURNING sent",
            [len(rows), rows[-1].sequence, asked.number, asked.last],
        ).fetchone()
        if noted is None:
            return False
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO surety.inbox (shard, sent_at, delay, expiration, size, priority, reliability, stored_body, encoding, address, message_id, "
                "duplicate_id, annotations, headers, body) "
                "VALUES (%s, (extract(epoch FROM clock_timestamp()) * 1000)::int8, 0, 0, %s, %s, %s, %s, %s, %s, %s, '', %s, %s, %s)",
                [_entry(run, asked, instance, row) for row in rows],
            )
    asked.sent, asked.last = noted[0], rows[-1].sequence
    return True


def _entry(run: Run, asked: _Asked, instance: str, row: Any) -> tuple[Any, ...]:
    encoding, body = Encoding[row.encoding.upper()], bytes(row.body)
    headers = section(encoding, bytes(row.headers), asked.into)
    large = _large(run, body) if len(body) > LARGE_OCTETS else None
    return (
        run.shard, len(headers) + len(body), row.priority, LEVEL_NAMES.index(row.reliability), large, int(encoding), asked.into,
        f"ID:{instance}-replay-{asked.number}-{row.sequence}", json.dumps({REPLAYED: row.message_id}, ensure_ascii=False), headers,
        body if large is None else None,
    )  # fmt: skip


def section(encoding: Encoding, octets: bytes, into: str) -> bytes:
    """The header section for a second sending: it has expired perhaps, and is for another destination."""
    if encoding == Encoding.AMQP:
        return without_expiry(octets)
    kept = [line for line in octets.split(b"\n") if line and line.partition(b":")[0].decode() not in NOT_AGAIN]
    return b"\n".join([canonical({"destination": f"/{into}"}), *kept])


def _large(run: Run, body: bytes) -> int:
    """A body apart, named by the inbox, as surety.send keeps it."""
    found = run.connection.execute(
        "INSERT INTO surety.body (shard, size, epoch) SELECT %s, %s, epoch FROM surety.lease WHERE shard = %s RETURNING body", [run.shard, len(body), run.shard]
    ).fetchone()
    assert found is not None, "a broker that has run has a lease"
    for chunk, first in enumerate(range(0, len(body), CHUNK_OCTETS)):
        octets = body[first : first + CHUNK_OCTETS]
        run.connection.execute("INSERT INTO surety.body_chunk (shard, body, chunk, octets) VALUES (%s, %s, %s, %s)", [run.shard, found[0], chunk, octets])
    run.connection.execute("INSERT INTO surety.body_reference (shard, segment, body) VALUES (%s, %s, %s)", [run.shard, INBOX, found[0]])
    return int(found[0])
