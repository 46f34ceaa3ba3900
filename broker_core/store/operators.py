"""What the node tells operators and asks of them: statistics, its own status, client accounts. On a connection of its own, outside the lease:
none of it is needed to keep a promise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from broker_core.engine.effects import DestinationStatistics

from . import CommitLost, SpaceExhausted
from .arrays import integers, texts
from .lease import connect
from .sharing import uninterrupted


def _arrays(values: Iterable[Sequence[int]]) -> str:
    return texts([integers(each) for each in values])


_STATISTICS = """
INSERT INTO surety.destination_statistics AS s (shard, destination, address, depth, octets, consumers, unsettled, accepted_total, settled_total,
    dead_total, expired_total, redelivered_total, scheduled, scheduled_octets, oldest_at, state, waiting, oldest_unsettled_at, waited, died, at)
SELECT %s, destination, address, depth, octets, consumers, unsettled, accepted, settled, dead, expired, redelivered, scheduled, scheduled_octets,
    oldest_at, state, waiting, oldest_unsettled_at, waited::int8[], died::int8[], clock_timestamp()
FROM unnest(%s::int4[], %s::text[], %s::int8[], %s::int8[], %s::int4[], %s::int8[], %s::int8[], %s::int8[], %s::int8[], %s::int8[], %s::int8[],
    %s::int8[], %s::int8[], %s::int8[], %s::int2[], %s::int8[], %s::int8[], %s::text[], %s::text[])
    AS told (destination, address, depth, octets, consumers, unsettled, accepted, settled, dead, expired, redelivered, scheduled, scheduled_octets,
    oldest_at, state, waiting, oldest_unsettled_at, waited, died)
ON CONFLICT (shard, destination) DO UPDATE SET address = EXCLUDED.address, depth = EXCLUDED.depth, octets = EXCLUDED.octets,
    consumers = EXCLUDED.consumers, unsettled = EXCLUDED.unsettled, accepted_total = EXCLUDED.accepted_total,
    settled_total = EXCLUDED.settled_total, dead_total = EXCLUDED.dead_total, expired_total = EXCLUDED.expired_total,
    redelivered_total = EXCLUDED.redelivered_total, scheduled = EXCLUDED.scheduled, scheduled_octets = EXCLUDED.scheduled_octets,
    oldest_at = EXCLUDED.oldest_at, state = EXCLUDED.state, waiting = EXCLUDED.waiting, oldest_unsettled_at = EXCLUDED.oldest_unsettled_at,
    waited = EXCLUDED.waited, died = EXCLUDED.died, at = EXCLUDED.at
"""
_COLUMNS = (
    "destination", "address", "depth", "octets", "consumers", "unsettled", "accepted", "settled", "dead", "expired", "redelivered",
    "scheduled", "scheduled_octets", "oldest_at", "state", "waiting", "oldest_unsettled_at", "waited", "died",
)
_WRITTEN: dict[str, Callable[[Iterable[Any]], str]] = {"address": texts, "waited": _arrays, "died": _arrays}
"""All else are integers."""
_FORGET = """
DELETE FROM surety.destination_statistics s WHERE shard = %s AND at < (SELECT acquired_at FROM surety.lease l WHERE l.shard = s.shard) AND NOT EXISTS
    (SELECT FROM surety.destination d WHERE d.shard = s.shard AND d.destination = s.destination AND d.destroyed_at IS NULL)
"""
_FORGET_ENDED = "DELETE FROM surety.destination_statistics WHERE shard = %s AND destination = ANY(%s::int4[])"
_STATUS = """
INSERT INTO surety.node_status AS s (shard, node, epoch, role, started_at, at, listeners, metrics, about)
VALUES (%s, %s, %s, %s, to_timestamp(%s), clock_timestamp(), %s, %s, %s)
ON CONFLICT (shard, node) DO UPDATE SET epoch = EXCLUDED.epoch, role = EXCLUDED.role, started_at = EXCLUDED.started_at, at = EXCLUDED.at,
    listeners = EXCLUDED.listeners, metrics = EXCLUDED.metrics, about = EXCLUDED.about
"""
_STANDS_BY = """
SELECT 1 FROM surety.node_status WHERE shard = %s AND node = %s AND role = 'standby' AND at > clock_timestamp() - interval '3 s'
"""
_REFUSED_TRIES = """
INSERT INTO surety.audit (who, origin, what, address, result)
SELECT who, origin, what, address, jsonb_build_object('refused', sentence)
  FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[]) AS refused (who, origin, what, address, sentence)
"""
_NODE = "INSERT INTO surety.audit (who, what, address, result) VALUES (%s, %s, %s, jsonb_build_object('epoch', %s::int8))"
_PAUSED = "SELECT listener FROM surety.paused_listener WHERE shard = %s"
_PAUSE = "INSERT INTO surety.paused_listener (shard, listener) VALUES (%s, %s) ON CONFLICT DO NOTHING"
_RESUME = "DELETE FROM surety.paused_listener WHERE shard = %s AND listener = %s"
_ACCOUNT = """
SELECT name, salt, iterations, stored_key, server_key, disabled, loopback_only, persistent_reliability, nonpersistent_reliability,
       previous_stored_key, previous_server_key, extract(epoch FROM previous_until - clock_timestamp())::float8, connections_max, sessions_max
FROM surety.account WHERE name = %s
"""
_ACCESS = "SELECT resource, operation, allow, principal, of_group FROM surety.access_rule ORDER BY rule LIMIT %s"
_GROUPS = "SELECT name, groups FROM surety.account WHERE groups <> '{}'"
_ADMINISTERED = """
SELECT jsonb_build_object('name', name, 'kind', kind, 'attributes', attributes, 'read_only', read_only) FROM surety.administered WHERE name = %s
"""
ACCESS_CHANGED = ""
"""No account has this name: rules of access, or groups of accounts, are others now."""
_FOREIGN_LINKS = """
SELECT jsonb_build_object('name', name, 'attributes', attributes, 'passcode', passcode) FROM surety.foreign_link ORDER BY name LIMIT 1000
"""
_FORGET_NODES = "DELETE FROM surety.node_status WHERE shard = %s AND at < clock_timestamp() - interval '1 minute'"
_RETIRE = "DELETE FROM surety.node_status WHERE shard = %s AND node = %s"


class OperatorTables:
    """Each call reconnects once if its connection was lost; a second failure is CommitLost: the database is gone. Without disk space writes
    raise SpaceExhausted: that is no reason to step down (R21)."""

    def __init__(self, dsn: str, shard: int = 0) -> None:
        self._dsn = dsn
        self._shard = shard
        self._connection: AsyncConnection[Any] | None = None
        self._connecting = asyncio.Lock()

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def write_statistics(self, rows: Sequence[DestinationStatistics]) -> None:
        """Upsert what changed."""
        columns = [_WRITTEN.get(name, integers)(map(attrgetter(name), rows)) for name in _COLUMNS]
        await self._execute(_STATISTICS, [self._shard, *columns])

    async def forget_destroyed(self) -> None:
        """Statistics of destinations that are no more, of temporary ones of earlier terms among them. At the start of a term only: sums over all
        rows are counters, which may begin anew then."""
        await self._execute(_FORGET, [self._shard])

    async def forget_ended(self, destinations: Sequence[int]) -> None:
        """Statistics of temporary destinations, which are no part of any sum: thousands may come and go in an hour."""
        await self._execute(_FORGET_ENDED, [self._shard, list(destinations)])

    async def write_status(
        self, node: str, epoch: int, role: str, started_at: float, listeners: dict[str, dict[str, Any]], metrics: dict[str, Any], about: dict[str, Any]
    ) -> None:
        """`started_at`: seconds since the epoch. `about`: its version, the host it runs on, and of one that serves what operators have made of it."""
        told = [json.dumps(each) for each in (listeners, metrics, about)]
        await self._execute(_STATUS, [self._shard, node, epoch, role, started_at, *told])

    async def stands_by(self, node: str) -> bool:
        """It said so within the last seconds."""
        return "\0" not in node and bool(await self._execute(_STANDS_BY, [self._shard, node]))

    async def paused_listeners(self) -> set[str]:
        """Names of listeners that operators have paused, in whichever term."""
        return {row[0] for row in await self._execute(_PAUSED, [self._shard])}

    async def pause_listener(self, listener: str) -> None:
        await self._execute(_PAUSE, [self._shard, listener])

    async def resume_listener(self, listener: str) -> None:
        await self._execute(_RESUME, [self._shard, listener])

    async def forget_nodes(self) -> None:
        """Nodes that died and said nothing for a minute."""
        await self._execute(_FORGET_NODES, [self._shard])

    async def retire(self, node: str) -> None:
        """The node stops as planned: it is no longer listed."""
        await self._execute(_RETIRE, [self._shard, node])

    async def note_refused_tries(self, refused: Sequence[tuple[str, str, str, str, str]]) -> None:
        """Into the audit. Of each: who, from where, what, the account that a login stated or the destination, why."""
        await self._execute(_REFUSED_TRIES, [texts(column) for column in zip(*refused, strict=True)])

    async def note_node(self, node: str, what: str, epoch: int) -> None:
        """Into the audit: `node start` or `node stop`."""
        await self._execute(_NODE, ["node", what, node, epoch])

    async def account(self, name: str) -> tuple[Any, ...] | None:
        """(name, salt, iterations, stored key, server key, disabled, loopback only, persistent and nonpersistent reliability, stored key and server key
        of the former password, for how many seconds it is good yet, most connections, most sessions of one), or None. What there is none of is None."""
        if "\0" in name:
            return None
        rows = await self._execute(_ACCOUNT, [name])
        return rows[0] if rows else None

    async def access(self, most: int) -> tuple[list[tuple[str, str, bool, str, bool]], dict[str, list[str]]]:
        """At most so many rules of access: resource, operation, allow, principal, whether that is a group; and the groups of accounts that are in any."""
        rules = [(row[0], row[1], row[2], row[3], row[4]) for row in await self._execute(_ACCESS, [most])]
        return rules, {row[0]: row[1] for row in await self._execute(_GROUPS, [])}

    async def administered(self, name: str) -> dict[str, Any] | None:
        """The administered object of this name: name, kind, attributes, read_only; or None."""
        if "\0" in name:
            return None
        rows = await self._execute(_ADMINISTERED, [name])
        return rows[0][0] if rows else None

    async def foreign_links(self) -> list[dict[str, Any]]:
        """Links to other brokers: name, attributes, passcode. At most 1,000."""
        return [row[0] for row in await self._execute(_FOREIGN_LINKS, [])]

    async def account_changes(self, on_request: Callable[[], None] = lambda: None) -> AsyncGenerator[str | None, None]:
        """Names of accounts that were disabled, deleted or given another password, and ACCESS_CHANGED, as it happens; None first: what happened before was
        not heard. `on_request` is called when operators have asked something. On a connection of its own. Raises psycopg.Error when that is lost."""
        connection = await connect(self._dsn)
        try:
            for channel in ("surety_account", "surety_access", "surety_control"):
                await connection.execute(f"LISTEN {channel}".encode())
            yield None
            async for notification in connection.notifies():
                if notification.channel == "surety_control":
                    on_request()
                else:
                    yield ACCESS_CHANGED if notification.channel == "surety_access" else notification.payload
        finally:
            await connection.close()

    async def data_folder(self) -> str:
        """The server's data folder; empty if we may not know it."""
        try:
            rows = await self._execute("SELECT current_setting('data_directory')", [])
        except psycopg.errors.InsufficientPrivilege:
            return ""
        return str(rows[0][0])

    async def database_octets(self) -> int:
        """Size of the whole database. PostgreSQL asks the file system for every file: some ms with thousands of tables."""
        return int((await self._execute("SELECT pg_database_size(current_database())", []))[0][0])

    async def _execute(self, statement: str, values: Sequence[Any]) -> list[TupleRow]:
        return await uninterrupted(self._try(statement, values))

    async def _try(self, statement: str, values: Sequence[Any]) -> list[TupleRow]:
        for attempt in (1, 2):
            try:
                connection = await self._connected()
                cursor = await connection.execute(statement.encode(), values)
                return await cursor.fetchall() if cursor.description else []
            except psycopg.errors.DiskFull as error:
                raise SpaceExhausted(str(error).strip()) from error
            except psycopg.OperationalError as error:
                if attempt == 2:
                    raise CommitLost(f"the database does not answer: {error}") from error
        raise AssertionError("unreachable")

    async def _connected(self) -> AsyncConnection[Any]:
        async with self._connecting:  # status, statistics and logins may all find it lost at the same moment
            if self._connection is None or self._connection.broken:
                self._connection = await connect(self._dsn)
            return self._connection
