"""A term as the supervisor serves it, in a world in which the lease, the database's operator tables and the listening sockets are the edge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import psycopg
import pytest

from broker_core.engine.access import OPERATIONS
from broker_core.engine.effects import DestinationStatistics
from broker_core.server import supervisor
from broker_core.server.host import Host
from broker_core.server.listening import Node
from broker_core.store import SpaceExhausted
from broker_core.store.memory import MemoryDatabase

from .rig import START, Broker, Door, Lease, Store, turns


class HeldLease(Lease):
    epoch, clock_ms, acquired_monotonic = 1, START, 1.0

    def __init__(self) -> None:
        super().__init__()
        self.lost = asyncio.Event()
        self.successor = ""

    async def name_successor(self, node: str) -> None:
        self.successor = node


class Operators:
    def __init__(self) -> None:
        self.statuses: list[dict[str, Any]] = []
        self.about: dict[str, Any] = {}
        self.paused: set[str] = set()
        self.retired: list[str] = []
        self.audited: list[tuple[str, ...]] = []
        self.listed: dict[int, str] = {}
        self.links: list[dict[str, Any]] = []
        self.rules = [(">", operation, True, "*", False) for operation in OPERATIONS]
        self.groups: dict[str, list[str]] = {}
        self.full = self.deaf = 0
        self.changes: asyncio.Queue[str] = asyncio.Queue()

    async def write_status(
        self, _node: str, _epoch: int, _role: str, _at: float, _listeners: dict[str, Any], metrics: dict[str, Any], about: dict[str, Any]
    ) -> None:
        if self.full:
            self.full -= 1
            raise SpaceExhausted("no room, by choice")
        self.statuses.append(metrics)
        self.about = about

    async def note_refused_tries(self, refused: Sequence[tuple[str, ...]]) -> None:
        self.audited += refused

    async def note_node(self, _node: str, what: str, _epoch: int) -> None:
        self.audited.append((what,))

    async def paused_listeners(self) -> set[str]:
        return set(self.paused)

    async def pause_listener(self, listener: str) -> None:
        self.paused.add(listener)

    async def resume_listener(self, listener: str) -> None:
        self.paused.discard(listener)

    async def stands_by(self, node: str) -> bool:
        return node == "other"

    async def write_statistics(self, rows: Sequence[DestinationStatistics]) -> None:
        self.listed |= {row.destination: row.address for row in rows}

    async def forget_ended(self, destinations: Sequence[int]) -> None:
        for destination in destinations:
            del self.listed[destination]

    async def forget_nodes(self) -> None:
        pass

    async def forget_destroyed(self) -> None:
        pass

    async def account_changes(self, on_request: Callable[[], None]) -> AsyncIterator[str | None]:
        yield None
        while True:
            if self.deaf:
                self.deaf -= 1
                raise psycopg.OperationalError("the connection is lost, by choice")
            yield await self.changes.get()

    async def access(self, _most: int) -> tuple[list[tuple[str, str, bool, str, bool]], dict[str, list[str]]]:
        return self.rules, self.groups

    async def foreign_links(self) -> list[dict[str, Any]]:
        return self.links

    async def data_folder(self) -> str:
        return ""

    async def retire(self, node: str) -> None:
        self.retired.append(node)


class Term(Broker):
    """The supervisor's term instead of the rig's own host and node."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, database: MemoryDatabase | None = None, **settings: Any) -> None:
        super().__init__(database, **settings)
        self.lease, self.operators, self.stop = HeldLease(), Operators(), asyncio.Event()
        self.trims: list[tuple[int, int]] = []
        accounts: Any = self.accounts

        async def listen(node: Node, *_protocols: Any) -> None:
            self.node = node

        async def trim(before: int, octets_max: int) -> int:
            self.trims.append((before, octets_max))
            return await Store.trim_ledger(self.store, before, octets_max)

        monkeypatch.setattr(Node, "listen", listen)
        monkeypatch.setattr(supervisor, "Accounts", lambda _source, _sessions: accounts)
        monkeypatch.setattr(Door, "close", lambda _door: None, raising=False)
        monkeypatch.setattr(self.store, "trim_ledger", trim)
        store: Any = self.store
        lease: Any = self.lease
        operators: Any = self.operators
        self.term = supervisor._Term(self.config, "test", lease, store, operators)

    async def start(self, _limits: Any = None) -> Term:
        ready = asyncio.Event()
        self.running = asyncio.create_task(self.term.serve(self.stop, ready.set))
        await ready.wait()
        await turns()
        self.host: Host = self.term._host
        return self
