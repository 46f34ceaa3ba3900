"""A node without listeners: the real engine over the real store, on a thread of its own, for what operators see and do with messages."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Any, Self

import psycopg

from broker_core.conversion import decode
from broker_core.engine import Limits, recover
from broker_core.engine import commands as c
from broker_core.engine.message import VOLATILE, Encoding, Header, Message, Reliability
from broker_core.engine.outputs import Delivered
from broker_core.engine.presence import page_of_producers
from broker_core.engine.producers import Producers
from broker_core.stomp.escaping import canonical
from broker_core.store.lease import Lease
from broker_core.store.postgres import PostgresStore

ASSURED, EXPRESS = Reliability.ASSURED, Reliability.EXPRESS
CLEAR = """
DO $$ DECLARE gone regclass; BEGIN
    FOR gone IN SELECT oid FROM pg_class WHERE relnamespace = 'surety'::regnamespace AND relkind = 'r' AND relname ~ '^(message|spill|ledger)_\\d+_\\d+$'
    LOOP EXECUTE format('DROP TABLE %s', gone); END LOOP; END $$;
TRUNCATE surety.segment, surety.ledger_segment, surety.lane, surety.cursor, surety.block, surety.failure, surety.counter, surety.retained,
         surety.body, surety.body_chunk, surety.body_reference, surety.scheduled, surety.inbox, surety.duplicate;
UPDATE surety.checkpoint SET number = 0, at = 0, sequence = 0, segment = 1, segment_rows = 0, segment_octets = 0;
"""


class StoreNode:
    """`with StoreNode(dsn) as node:` answers requests and takes what SQL sent as long as the block lasts. Its clock stands unless `passes` moves it."""

    def __init__(self, dsn: str, *, clears: bool = True, **limits: Any) -> None:
        """`clears`: leaves nothing behind."""
        self.dsn, self._clears = dsn, clears
        self._limits = Limits(**limits)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="store node")
        self._turn = asyncio.Lock()
        """What is asked of it by a test and by the database's inbox, each as a whole: engine and store serve one at a time."""
        self._asked: set[int] = set()
        self._stop = False
        self.delivered: list[Message] = []
        self.dismissed: list[tuple[int, str]] = []
        self.discarded: list[int] = []
        self.produced: dict[int, Producers] = {}
        """Where connections send to."""

    def __enter__(self) -> Self:
        self._thread.start()
        self._await(self._begin())
        self._serving = asyncio.run_coroutine_threadsafe(self._serve(), self._loop)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop = True
        self._serving.result(20)
        self._await(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._clears:
            with psycopg.connect(self.dsn, autocommit=True) as connection:
                connection.execute(CLEAR)

    def _await(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _begin(self) -> None:
        self._lease = await Lease.acquire(self.dsn, "node-1")
        self._store = await PostgresStore.open(self._lease)
        found = await self._store.recover()
        self.engine = recover(found, self._limits, "test", decode)
        self.now = max(found.clock_ms, self.engine.shard.now)
        self._apply(c.Open(1, "guest", "client"))
        await self._flush()

    async def _end(self) -> None:
        await self._store.close()
        await self._lease.release()

    async def _serve(self) -> None:
        while not self._stop:
            await self._take()
            await asyncio.sleep(0.005)

    async def _take(self) -> None:
        async with self._turn:
            new = [r for r in await self._store.control_requests() if r.request not in self._asked]
            self._asked |= {r.request for r in new}
            sent = await self._store.inbox(100, 1 << 20)
            for request in new:
                if request.verb == "producers":
                    request.arguments["produced"] = page_of_producers(self.engine.shard, request.arguments, self.produced)
            self._apply(*sent, *(c.Control(r.request, r.verb, r.address, r.arguments) for r in new))
            await self._flush()

    def _apply(self, *commands: c.Command) -> None:
        for command in commands:
            self.engine.apply(command, self.now)

    async def _flush(self, *, report: bool = False) -> None:
        again = True
        while again:
            effects = self.engine.flush(self.now, report=report)
            report = False
            if effects.commit is not None:
                await self._store.commit(effects.commit)
            if effects.checkpoint is not None:
                await self._store.checkpoint(effects.checkpoint)
            for output in effects.outputs:
                if isinstance(output, Delivered):
                    self.delivered += output.messages
                    for message in output.messages:
                        if message.header.lane < VOLATILE and isinstance(message.body, bytes):
                            message.body = None
            self.engine.released()
            self.dismissed += effects.dismissed
            self.discarded += effects.discarded
            for read in effects.reads:
                self._apply(c.PageLoaded(read.read, *await self._store.read(read)))
            again = bool(effects.reads)

    # -- what tests do --------------------------------------------------------------------------------------------------------------------
    def does(self, *commands: c.Command, report: bool = False) -> None:
        async def work() -> None:
            async with self._turn:
                self._apply(*commands)
                await self._flush(report=report)

        self._await(work())

    def produces(self, peer: int, address: str, sent: int | None = None) -> int:
        """Its number. Of a link if something has been `sent` by it."""
        known = self.produced.setdefault(peer, Producers(peer))
        return known.open(address, self.now, None if sent is None else f"to {address}", None if sent is None else lambda: sent)

    def passes(self, ms: int) -> None:
        self.now += ms
        self.does(report=True)

    def send(
        self, *bodies: bytes | Any, address: str = "queue/orders", level: Reliability = ASSURED, priority: int = 4, expires: int = 0, delay: int = 0,
        header: Header | None = None, **headers: str,
    ) -> None:  # fmt: skip
        octets = canonical({name.replace("__", "-"): value for name, value in headers.items()})
        for body in bodies:
            made = header or Header(octets, priority, level, expires, Encoding.STOMP, delay=delay)
            size = len(body) if isinstance(body, bytes) else body.size
            self.does(c.Send(1, None, address, Message(made, body, len(made.octets) + size)))

    def large(self, *chunks: bytes) -> int:
        """The number of a large body."""

        async def work() -> int:
            async def given() -> Any:
                for chunk in chunks:
                    yield chunk

            return await self._store.write_body(given())

        return int(self._await(work()))

    def number(self, address: str = "queue/orders") -> int:
        return self.engine.shard.destinations[address].number

    def depth(self, address: str = "queue/orders") -> int:
        return self.engine.shard.destinations[address].depth


def held_by_shop(node: StoreNode) -> None:
    """Two of three messages, by consumer 7 of connection 2."""
    node.does(c.Open(2, "shop", "till"))
    node.send(b"a", b"b", b"c")
    node.does(c.Attach(2, 7, "queue/orders", credit=2, replenish=False))


def detachable(node: StoreNode) -> None:
    """Consumer 8 of connection 3, which goes on without it."""
    node.does(c.Open(3, "shop", detaches=True), c.Attach(3, 8, "queue/orders", credit=1, replenish=False))
