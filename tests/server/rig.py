"""A node without sockets and threads: the real engine, host, peers and STOMP machines over the memory store, on virtual time. The socket's
other end, the lease's proof and the verdict on logins are in the test's hand."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

from broker_core.config import BrokerConfig
from broker_core.engine import Limits, recover
from broker_core.engine.settings import Settings
from broker_core.engine.effects import Effects
from broker_core.engine.writes import Checkpoint, Commit
from broker_core.engine.message import Message
from broker_core.engine.reads import Read
from broker_core.engine.upkeep import SweepRetained
from broker_core.server.clock import Clock
from broker_core.server.host import Host
from broker_core.server.listening import Node
from broker_core.server.metrics import Metrics
from broker_core.server.sessions import Sessions
from broker_core.server.space import Space
from broker_core.server.stomp_peer import StompPeer
from broker_core.stomp.frames import Parser, serialise
from broker_core.engine.levels import UNMAPPED, LevelMapping
from broker_core.stomp.limits import Limits as StompLimits
from broker_core.conversion import decode
from broker_core.stomp.sections import SERVER_COMMANDS
from broker_core.store import BodyMissing
from broker_core.store.memory import MemoryDatabase, MemoryStore
from broker_core.store.memory_tables import Fault

START = 1_000_000
TURNS = 50
"""Of the loop, after which everything that waits for nothing is done."""
Frame = tuple[str, dict[str, str], bytes]


async def turns(count: int = TURNS) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Wire(asyncio.Transport):
    """The server's end of a connection, and whether the client reads."""

    def __init__(self, remote: str = "127.0.0.1") -> None:
        super().__init__()
        self.remote = remote
        self.peer: asyncio.Protocol
        self.heard = bytearray()
        self.waiting = bytearray()
        """Written, and not read by the client."""
        self.calls: list[str] = []
        self.reads = True
        self.high = 1 << 20
        self._closing = self._full = self.gone = False

    @property
    def paused(self) -> bool:
        return [call for call in self.calls if call.endswith("_reading")][-1:] == ["pause_reading"]

    def read_all(self) -> None:
        """The client reads from now on."""
        self.reads = True
        self._pass()

    def _pass(self) -> None:
        self.heard += self.waiting
        self.waiting.clear()
        if self._full:
            self._full = False
            self.peer.resume_writing()
        if self._closing:
            self._lose()

    def lose(self, error: Exception | None = None) -> None:
        """The client is gone."""
        self._lose(error)

    def _lose(self, error: Exception | None = None) -> None:
        if not self.gone:
            self.gone = self._closing = True
            asyncio.get_running_loop().call_soon(self.peer.connection_lost, error)

    def write(self, data: bytes) -> None:
        assert not self.gone, "written to a socket that is gone"
        self.waiting += data
        if self.reads:
            self._pass()
        elif len(self.waiting) > self.high and not self._full:
            self._full = True
            self.peer.pause_writing()

    def close(self) -> None:
        self.calls.append("close")
        self._closing = True
        if not self.waiting:
            self._lose()

    def abort(self) -> None:
        self.calls.append("abort")
        self.waiting.clear()
        self._lose()

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self.calls.append("pause_reading")

    def resume_reading(self) -> None:
        self.calls.append("resume_reading")

    def get_extra_info(self, name: str, default: object = None) -> object:
        return (self.remote, 1) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.high = high or self.high


class Store(MemoryStore):
    """Waits at a method's door while the test keeps it shut; counts what came."""

    def __init__(self, database: MemoryDatabase, clock_ms: int) -> None:
        database.epoch += 1
        super().__init__(database, database.epoch, clock_ms)
        self.doors: dict[str, asyncio.Event] = {}
        self.commits: list[Commit] = []
        """Durable."""

    def shut(self, method: str) -> asyncio.Event:
        return self.doors.setdefault(method, asyncio.Event())

    async def _pass(self, method: str) -> None:
        if method in self.doors:
            await self.doors[method].wait()

    async def commit(self, commit: Commit, on_sent: Callable[[], None] = lambda: None) -> None:
        await self._pass("send")
        on_sent()
        await self._pass("commit")
        await super().commit(commit)
        self.commits.append(commit)

    async def checkpoint(self, checkpoint: Checkpoint) -> None:
        await self._pass("checkpoint")
        await super().checkpoint(checkpoint)

    async def read(self, read: Read) -> tuple[list[Message], bool]:
        await self._pass("read")
        return await super().read(read)

    async def read_body(self, body: int) -> Any:
        async for octets in super().read_body(body):
            await self._pass("read_body")
            if body not in self._tables.bodies:  # as PostgreSQL, which looks for each chunk when it is wanted
                raise BodyMissing(f"body {body} is not there")
            yield octets

    async def sweep_retained(self, sweep: SweepRetained) -> None:
        await self._pass("sweep_retained")
        await super().sweep_retained(sweep)


class Lease:
    def __init__(self) -> None:
        self.fresh = True

    def is_fresh(self, _now: float) -> bool:
        return self.fresh


class Door:
    """Lets everybody in but those it is told to refuse; as slowly as it is told."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.open = asyncio.Event()
        self.open.set()
        self.error: Exception | None = None
        self.reviews: list[str | None] = []
        self.mappings: dict[str, LevelMapping] = {}
        self.sessions: dict[str, int] = {}

    def mapping(self, name: str) -> LevelMapping:
        return self.mappings.get(name, UNMAPPED)

    def shown(self, _name: str) -> None:
        """No passwords here."""

    def sessions_max(self, name: str) -> int:
        return self.sessions.get(name, 0)

    async def lapse(self) -> None:
        """None lapses."""

    async def review(self, name: str | None) -> None:
        self.reviews.append(name)

    async def check(self, login: str, _passcode: str, _remote: str) -> tuple[str | None, str]:
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return (None, "refused") if login in self.refused else (login, "")

    async def check_proof(self, login: str, _proves: Any, remote: str) -> tuple[str | None, str]:
        return await self.check(login, "", remote)


class Broker:
    """One term. `faults` maps a method to the faults its next calls meet."""

    def __init__(self, database: MemoryDatabase | None = None, report_seconds: float = 3600.0, **settings: Any) -> None:
        self.database = database or MemoryDatabase()
        self.database.choose = self._choose
        self.faults: dict[str, list[Fault]] = {}
        self.store = Store(self.database, START)
        self.lease, self.accounts, self.metrics, self.space = Lease(), Door(), Metrics(), Space(None, 0)
        self.sessions = Sessions()
        self.published: list[Effects] = []
        self.publish_door = asyncio.Event()
        self.publish_door.set()
        self.report_seconds = report_seconds
        self.config = dataclasses.replace(BrokerConfig(), **settings)
        self.stomp_limits: StompLimits | None = None
        self.clients: list[Client] = []

    def _choose(self, method: str) -> Fault:
        waiting = self.faults.get(method)
        return waiting.pop(0) if waiting else Fault.NONE

    async def start(self, limits: Limits | None = None) -> Broker:
        found = await self.store.recover()
        self.engine = recover(found, limits or Limits(settings=Settings(redelivery_delay_ms=0)), "test", decode)
        self.clock = Clock(START, asyncio.get_running_loop().time())
        accounts: Any = self.accounts
        self.host = Host(
            self.engine, self.store, self.clock, self.lease, self.metrics, self.space, self.report_seconds, self._publish
        )
        self.node = Node(self.config, self.host, self.store, self.clock, accounts, self.metrics, "test", "test", 1, self.sessions)
        if self.stomp_limits is not None:
            self.node.stomp_limits = self.stomp_limits
        self.running = asyncio.create_task(self.host.run())
        await turns()
        return self

    async def _publish(self, effects: Effects) -> None:
        await self.publish_door.wait()
        self.published.append(effects)

    def connect(self, remote: str = "127.0.0.1", *, reads: bool = True) -> Client:
        client = Client(self, remote, reads=reads)
        self.clients.append(client)
        return client

    async def client(self, *subscriptions: str, version: str = "1.2", **headers: str) -> Client:
        """Logged in, and subscribed to queues with ack:client-individual."""
        client = self.connect()
        client.version = version
        client.say("CONNECT", ("accept-version", version), ("host", "/"), ("login", "guest"), *headers.items())
        for queue in subscriptions:
            client.say("SUBSCRIBE", ("id", queue), ("destination", f"/queue/{queue}"), ("ack", "client-individual"))
        await turns()
        connected, *client.early = client.take()
        assert connected[0] == "CONNECTED"
        return client

    async def end(self) -> None:
        """The test is over: whatever still runs goes."""
        for client in self.clients:
            client.wire.lose()
        await turns()
        self.running.cancel()
        await asyncio.gather(self.running, return_exceptions=True)
        await turns()


class Client:
    def __init__(self, broker: Broker, remote: str, *, reads: bool) -> None:
        self.wire = Wire(remote)
        self.wire.reads = reads
        self.peer = self.wire.peer = StompPeer(broker.node)
        self.version = "1.2"
        self._taken = 0
        self.early: list[Frame] = []
        self._parser = Parser(StompLimits(body_octets_max=1 << 30, large_body_octets=1 << 30), SERVER_COMMANDS)
        self.peer.connection_made(self.wire)

    def say(self, command: str, *headers: tuple[str, str], body: bytes = b"") -> None:
        self.octets(serialise(command, headers, body, self.version))

    def octets(self, octets: bytes) -> None:
        self.peer.data_received(octets)

    def send(self, body: bytes, receipt: str = "", queue: str = "q", reliability: str = "assured") -> None:
        headers = [("destination", f"/queue/{queue}"), ("reliability", reliability), ("content-length", str(len(body)))]
        if receipt:
            headers.append(("receipt", receipt))
        self.say("SEND", *headers, body=body)

    def ack(self, frame: Frame, receipt: str = "") -> None:
        self.say("ACK", ("id", frame[1]["ack"]), *([("receipt", receipt)] if receipt else []))

    def take(self) -> list[Frame]:
        """What arrived since it was last asked for."""
        new, self._taken = bytes(self.wire.heard[self._taken :]), len(self.wire.heard)
        frames = [(section.command, section.headers, body or b"") for section, _, body in self._parser.events(new)]
        self._parser.version = self.version
        early, self.early = self.early, []
        return early + frames

    def commands(self) -> list[str]:
        return [frame[0] for frame in self.take()]

    def receipts(self) -> list[str]:
        return [headers["receipt-id"] for command, headers, _ in self.take() if command == "RECEIPT"]
