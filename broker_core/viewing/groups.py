"""Dead messages by reason, origin and error, counted by the database as far as one look goes: there may be millions, and nobody waits for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from broker_core.engine.dead import COMMENT, DIED_AT, ORIGIN, REASON

from . import page
from .page import Ask, Key, Piece
from .rows import Read, TableGone, TooSlow, keys, source_of

ROWS, ROWS_MIN = 20_000, 500
GROUPS_MAX = 500
"""Of one statement: origins are names of destinations."""
ERROR_CHARACTERS_MAX = 200
"""What is longer is another's text, and those that begin alike are counted together."""
Name = tuple[str, str, str]
"""Reason, origin and error."""


@dataclass(slots=True)
class Group:
    reason: str
    origin: str
    """Where they died."""
    error: str
    """The sentence that each of them carries; with ERROR_CHARACTERS_MAX characters it is the beginning of theirs."""
    count: int = 0
    octets: int = 0
    first_at: int = 0
    """When the first of those that were looked at died, in ms."""
    last_at: int = 0

    @property
    def selector(self) -> str:
        """What those match, and no others, that carry its error; empty: they carry none."""
        if len(self.error) < ERROR_CHARACTERS_MAX:
            return f"{COMMENT} = {_literal(self.error)}" if self.error else ""
        begins = self.error.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        return f"{COMMENT} LIKE {_literal(begins + '%')} ESCAPE '!'"


@dataclass(slots=True)
class Groups:
    groups: list[Group] = field(default_factory=list)
    looked_at: int = 0
    next: Key | None = None
    """Where to go on; None: all was looked at."""
    depth: int = 0


def groups(ask: Ask, read: Read, clock: Callable[[], float], after: Key | None = None) -> Groups:
    """The greatest first. What did not die here, but was sent to a queue for dead messages, has no reason."""
    deadline = clock() + page.SECONDS
    answer = ask({"from": list(after)} if after is not None else {})
    found = Groups(depth=answer["depth"])
    by_name: dict[Name, Group] = {}
    rows = ROWS
    for told in answer["pieces"]:
        piece = Piece(told, newest_first=False)
        for message in piece.memory.values():
            told_of = json.loads(message.header.annotations) if message.header.annotations else {}
            at = told_of.get(DIED_AT, message.accepted_at)
            name = told_of.get(REASON, ""), told_of.get(ORIGIN, ""), told_of.get(COMMENT, "")[:ERROR_CHARACTERS_MAX]
            _count(by_name, name, 1, message.size, at, at)
        while (batch := piece.batch(rows, single=True)) is not None:
            if found.looked_at and clock() >= deadline:
                found.next = (piece.lane, batch.start)
                return _sorted(found, by_name)
            segments = piece.segments_of(batch)
            try:
                counted = read(_statement(piece.lane, segments), _keys(answer, piece, segments, batch), max(deadline - clock(), 0.02) + 0.1) if segments else []
            except (TooSlow, TableGone):
                if rows <= ROWS_MIN:
                    raise
                rows = max(rows // 8, ROWS_MIN)
                piece.back(batch)
                continue
            for reason, origin, error, *sums in counted:
                _count(by_name, (reason, origin, error), *sums)
            found.looked_at += batch.count
    following = answer["next"]
    found.next = None if following is None else (following[0], following[1])
    return _sorted(found, by_name)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _keys(answer: Any, piece: Piece, segments: list[int], batch: Any) -> dict[str, Any]:
    named = {"reason": REASON, "origin": ORIGIN, "error": COMMENT, "died": DIED_AT}
    return keys(answer["destination"], piece.lane, segments) | {"first": batch.first, "last": batch.last} | named


def _statement(lane: int, segments: list[int]) -> str:
    at = "coalesce((told ->> %(died)s)::int8, accepted_at)"
    sources = " UNION ALL ".join([f"SELECT annotations::jsonb AS told, size, accepted_at FROM {source_of(lane, segment)}" for segment in segments])
    return (
        "SELECT left(coalesce(told ->> %(reason)s, ''), 64), coalesce(told ->> %(origin)s, ''), "
        f"left(coalesce(told ->> %(error)s, ''), {ERROR_CHARACTERS_MAX}), count(*), sum(size)::int8, "
        f"min({at}), max({at}) FROM ({sources}) AS rows GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT {GROUPS_MAX}"
    )


def _count(by_name: dict[Name, Group], name: Name, count: int, octets: int, first_at: int, last_at: int) -> None:
    group = by_name.setdefault(name, Group(*name, first_at=first_at, last_at=last_at))
    group.count += count
    group.octets += octets
    group.first_at, group.last_at = min(group.first_at, first_at), max(group.last_at, last_at)


def _sorted(found: Groups, by_name: dict[Name, Group]) -> Groups:
    found.groups = sorted(by_name.values(), key=lambda group: (-group.count, group.reason, group.origin, group.error))
    return found
