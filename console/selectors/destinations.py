"""Destinations with what the node counts of them, by keyset pages. Counters of a node that is not alive are None: unknown."""

import base64
import binascii
import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from console.permissions import EVERYTHING, Sight

from .node import HEARTBEAT_SECONDS_MAX
from .rows import rows

PAGE_ROWS = 50
PAGE_ROWS_MAX = 1000
SEARCH_CHARACTERS_MAX = 255
SORTS = ("name", "depth", "size", "unsettled", "consumers", "oldest")
"""By name from a on; by the others from the most on, what is unknown behind everything."""
SHOWS = ("", "paused", "full", "unread", "unsettled")
"""Only those that somebody paused, that have reached a limit, that nobody consumes, that consumers hold something of. Empty: all."""
REPORT_SECONDS_MAX = 3
"""The node writes what changed twice a second; a row that is older than three has not changed since."""

# A row counts as known if the holder's heartbeat is fresh and the row was written under its lease: what an earlier holder wrote last may be
# long past. The node writes a row when it changes, so that its age alone says nothing. The clock is that of the statement: with one that moves on within it
# PostgreSQL would make the whole list for every page.
_KNOWN = """
    WITH holder AS (
        SELECT acquired_at FROM surety.lease
         WHERE shard = 0 AND holder_pid IS NOT NULL
           AND heartbeat_at >= statement_timestamp() - make_interval(secs => %(heartbeat_seconds_max)s)),
    statistics AS NOT MATERIALIZED (
        SELECT * FROM surety.destination_statistics JOIN holder ON at >= acquired_at WHERE shard = 0),
    defined AS NOT MATERIALIZED ({source})"""
_TOLD = """
        SELECT defined.destination AS number, defined.address, defined.automatic, defined.state,
               defined.settings::text AS settings, statistics.depth, statistics.octets, statistics.consumers, statistics.unsettled,
               statistics.accepted_total, statistics.settled_total, statistics.dead_total, statistics.expired_total,
               statistics.redelivered_total, statistics.scheduled, statistics.scheduled_octets,
               statistics.waiting, statistics.waited, statistics.died,
               CASE WHEN statistics.oldest_unsettled_at IS NOT NULL THEN
                    greatest(0, (extract(epoch FROM statement_timestamp()) * 1000)::int8 - statistics.oldest_unsettled_at) END AS oldest_unsettled_ms,
               greatest(statistics.at, statement_timestamp() - make_interval(secs => %(report_seconds_max)s)) AS at,
               CASE WHEN statistics.depth > 0 THEN
                    greatest(0, (extract(epoch FROM statement_timestamp()) * 1000)::int8 - statistics.oldest_at) END AS oldest_ms"""
# What is asked of some that are named, or in the order of names: by their index, nothing is read but these.
_DESTINATIONS = f"""{_KNOWN},
    listed AS ({_TOLD} FROM defined LEFT JOIN statistics USING (destination))
    SELECT * FROM listed
"""
# A page in another order: which these are is found out first, by as little of each as that and the conditions need, then what is told of them.
_RANKED = f"""{_KNOWN},
    chosen AS MATERIALIZED (
        SELECT destination, address, rank FROM (
            SELECT destination, defined.address, defined.state, settings, depth, octets, consumers, unsettled, coalesce({{rank}}, -1) AS rank
              FROM defined LEFT JOIN statistics USING (destination)) AS each
         WHERE {{conditions}} ORDER BY rank DESC, address LIMIT %(limit)s)
    SELECT told.*, rank FROM chosen JOIN ({_TOLD} FROM defined LEFT JOIN statistics USING (destination)) AS told ON number = chosen.destination
     ORDER BY rank DESC, told.address
"""
# Temporary destinations have no definition: they are what the node tells of them, with negative numbers, and gone when it does not.
_DEFINED = "SELECT destination, address, automatic, state, settings FROM surety.destination WHERE shard = 0 AND destroyed_at IS NULL"
_TEMPORARY = "SELECT destination, address, false AS automatic, state, '{}' AS settings FROM statistics WHERE destination < 0"
_RANKS = {
    "depth": "statistics.depth", "size": "statistics.octets", "unsettled": "statistics.unsettled", "consumers": "statistics.consumers",
    # The oldest first, by a number that stays as it is while one turns pages; none of these is negative.
    "oldest": "CASE WHEN statistics.depth > 0 THEN 4611686018427387904 - statistics.oldest_at END",
}  # fmt: skip
_SHOWN = {
    "paused": "state <> 0",
    "full": """depth > 0 AND settings <> '{}' AND ((settings::jsonb->>'max_messages')::int8 BETWEEN 1 AND depth
               OR (settings::jsonb->>'max_octets')::int8 BETWEEN 1 AND octets)""",
    "unread": "depth > 0 AND consumers = 0 AND address LIKE 'queue/%%' AND address NOT LIKE 'queue/mq.%%'",
    "unsettled": "unsettled > 0",
}


_SOURCE = {False: _DEFINED, True: _TEMPORARY}
"""By whether temporary destinations are asked for. Each connection may have some, so that they are not listed with the others."""
_SOURCES = {temporary: _DESTINATIONS.format(source=source) for temporary, source in _SOURCE.items()}
_SECONDS = {"heartbeat_seconds_max": HEARTBEAT_SECONDS_MAX, "report_seconds_max": REPORT_SECONDS_MAX}


class Destination(NamedTuple):
    """A tuple, as a page has a thousand of them."""

    number: int
    address: str
    automatic: bool
    """A client's use created it; it goes when it is idle."""
    state: int
    """Union of 1 (consumers paused) and 2 (producers paused)."""
    settings: dict[str, Any]
    depth: int | None
    octets: int | None
    consumers: int | None
    unsettled: int | None
    oldest_ms: int | None
    """Age of the oldest message; None: unknown, or no message."""
    accepted_total: int | None
    settled_total: int | None
    dead_total: int | None
    expired_total: int | None
    redelivered_total: int | None
    scheduled: int | None
    """Delayed messages that are not due yet, in neither `depth` nor `octets`."""
    scheduled_octets: int | None
    waiting: int | None
    """Sends that wait for room in it."""
    oldest_unsettled_ms: int | None
    """For how long a consumer has held what it has held longest; None: unknown, or nobody holds anything."""
    waited: list[int] | None
    """See engine.effects.DestinationStatistics; None or empty: unknown, or nothing yet."""
    died: list[int] | None
    at: datetime
    """When the counters had these values: when the node wrote them or, if it found no change since, shortly ago."""

    @property
    def known(self) -> bool:
        return self.depth is not None

    @property
    def reserved(self) -> bool:
        return self.address.partition("/")[2].startswith("mq.")

    @property
    def temporary(self) -> bool:
        """It ends with the connection that made it."""
        return self.number < 0


@dataclass(slots=True, frozen=True)
class Page:
    destinations: list[Destination]
    after: str
    """Key of the next page; empty: this is the last."""


def page(
    search: str = "",
    sort: str = "name",
    after: str = "",
    limit: int = PAGE_ROWS,
    *,
    temporary: bool = False,
    show: str = "",
    kind: str = "",
    within: Sight = EVERYTHING,
) -> Page:
    """At most `limit` destinations whose address contains `search`, in the order of `sort`, following the key `after`: all but temporary ones, or
    only these; of those that `within` shows. `show`: of SHOWS; `kind`: queue or topic, or empty. One query."""
    if sort not in SORTS:
        sort = "name"
    limit = max(1, min(limit, PAGE_ROWS_MAX))
    condition, parameters = within.condition()
    conditions, parameters = [condition], {**_SECONDS, **parameters, "limit": limit + 1}
    if search:
        conditions.append("address ILIKE %(pattern)s")
        parameters["pattern"] = f"%{_literal(search[:SEARCH_CHARACTERS_MAX])}%"
    if show in _SHOWN:
        conditions.append(_SHOWN[show])
    if kind:
        conditions.append("address LIKE %(kind)s")
        parameters["kind"] = f"{'temp-' if temporary else ''}{_literal(kind)}/%"
    if key := _decoded(after):
        conditions.append("address > %(address)s" if sort == "name" else "(rank < %(rank)s OR rank = %(rank)s AND address > %(address)s)")
        parameters["rank"], parameters["address"] = key
    if sort == "name":
        query = f"{_SOURCES[temporary]} WHERE {' AND '.join(conditions)} ORDER BY address LIMIT %(limit)s"
    else:
        query = _RANKED.format(source=_SOURCE[temporary], rank=_RANKS[sort], conditions=" AND ".join(conditions))
    found = rows(query, parameters)
    shown = found[:limit]
    following = _encoded(shown[-1].get("rank", 0), shown[-1]["address"]) if len(found) > limit else ""
    return Page([_destination(row) for row in shown], following)


def scheduled(search: str = "", after: str = "", limit: int = PAGE_ROWS, *, within: Sight = EVERYTHING) -> tuple[list[Destination], str]:
    """Those that have delayed messages, by name, as far as a node tells; and the key of the next page, empty if this is the last. One query."""
    condition, parameters = within.condition()
    found = rows(
        f"""{_SOURCES[False]} WHERE scheduled > 0 AND address > %(after)s AND address ILIKE %(pattern)s AND {condition}
            ORDER BY address LIMIT %(limit)s""",
        {
            **_SECONDS, **parameters, "after": after.replace("\x00", ""), "pattern": f"%{_literal(search[:SEARCH_CHARACTERS_MAX])}%", "limit": limit + 1,
        },
    )
    shown = [_destination(row) for row in found[:limit]]
    return shown, shown[-1].address if len(found) > limit else ""


def is_key(after: str) -> bool:
    """True if it is the key of a page."""
    return _decoded(after) is not None


def by_address(address: str, within: Sight = EVERYTHING) -> Destination | None:
    """By the index of addresses. Temporary ones are found by their number only."""
    if not within.shows(address):
        return None
    found = rows(f"{_SOURCES[False]} WHERE address = %(address)s", {**_SECONDS, "address": address.replace("\x00", "")})
    return _destination(found[0]) if found else None


def by_number(number: int, within: Sight = EVERYTHING) -> Destination | None:
    """None: there is none that `within` shows, or it is destroyed, or was temporary and has ended."""
    found = rows(f"{_SOURCES[number < 0]} WHERE number = %(number)s", {**_SECONDS, "number": number})
    return _destination(found[0]) if found and within.shows(found[0]["address"]) else None


def address_of(number: int) -> str | None:
    """Of one that there is, or was; a number is never given to another."""
    found = rows("SELECT address FROM surety.destination WHERE shard = 0 AND destination = %(number)s", {"number": number})
    return str(found[0]["address"]) if found else None


def by_numbers(numbers: Collection[int]) -> list[Destination]:
    """Those that there are, in no order; whoever asks sees to it who may see them. At most two queries."""
    found = []
    for temporary in (False, True):
        if wanted := [number for number in numbers if (number < 0) is temporary]:
            found += rows(f"{_SOURCES[temporary]} WHERE number = ANY(%(numbers)s)", {**_SECONDS, "numbers": wanted})
    return [_destination(row) for row in found]


def told_at() -> datetime | None:
    """When the node told last of any of them; None: never. A query that reads their counters once."""
    at: datetime | None = rows("SELECT max(at) AS at FROM surety.destination_statistics WHERE shard = 0")[0]["at"]
    return at


def shape() -> tuple[Any, ...]:
    """Something else whenever a destination comes or goes; a query that reads their definitions once."""
    [row] = rows(
        """SELECT (SELECT count(*) FILTER (WHERE destroyed_at IS NULL) FROM surety.destination WHERE shard = 0) AS lasting,
                  (SELECT max(destination) FROM surety.destination WHERE shard = 0) AS latest,
                  (SELECT count(*) FROM surety.destination_statistics WHERE shard = 0 AND destination < 0) AS temporary"""
    )
    return tuple(row.values())


def _destination(row: dict[str, Any]) -> Destination:
    row["settings"] = json.loads(row["settings"]) if row["settings"] != "{}" else {}
    return Destination._make(map(row.__getitem__, Destination._fields))


def containing(search: str) -> str:
    """The pattern of LIKE for what contains this text."""
    return f"%{_literal(search[:SEARCH_CHARACTERS_MAX])}%"


def _literal(search: str) -> str:
    """LIKE's own characters stand for themselves; NUL cannot be in a name, nor in a parameter."""
    return search.replace("\x00", "").replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _encoded(rank: int, address: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([rank, address]).encode()).decode()


def _decoded(after: str) -> tuple[int, str] | None:
    """A key from a URL; anything else than one of ours means the first page."""
    try:
        rank, address = json.loads(base64.urlsafe_b64decode(after.encode()))
        if type(rank) is not int or not -1 <= rank < 1 << 63 or "\x00" in address or not address.encode():  # half of a surrogate pair is no text
            return None
    except (binascii.Error, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return rank, address
