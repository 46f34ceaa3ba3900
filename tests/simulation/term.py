"""One term of a node: the real engine, host and peers; recovery, service, and its end in good or bad order (as server.supervisor does it)."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from broker_core.config import BrokerConfig
from broker_core.engine import Engine, Limits, maintenance, recover
from broker_core.engine.commands import Command, Control
from broker_core.engine.effects import Effects
from broker_core.engine.invariants import check
from broker_core.engine.settlement import Returning
from broker_core.server import reporter
from broker_core.server.clock import Clock
from broker_core.server.host import Host
from broker_core.server.inbox import Inbox
from broker_core.server.listening import Node
from broker_core.server.managing import VERBS as NODE_VERBS
from broker_core.server.managing import Managing
from broker_core.server.metrics import Metrics
from broker_core.server.space import Space
from broker_core.engine.levels import UNMAPPED, LevelMapping
from broker_core.amqp.limits import Limits as AmqpLimits
from broker_core.stomp.limits import Limits as StompLimits
from broker_core.conversion import decode

from .amqp_speech import FRAME_OCTETS
from .bodies import Bodies
from .guarding import Guard
from .managing import OtherNodes, Watch
from .slow_store import SlowStore
from .turns import Turns
from .unused import Unused
from .wire import Wire

REPORT_SECONDS = 0.010
"""A commit takes about 3 ms: a checkpoint every few of them."""
CONTROL_SECONDS = 0.020
LOOK_SECONDS = 0.200
CHECK_EVERY = 5
"""Flushes between two checks of the invariants."""

STOMP_LIMITS = StompLimits(large_body_octets=1024, part_octets_max=512, unconfirmed_max=12, unconfirmed_octets_max=6000, sections_max=8)

AMQP_LIMITS = AmqpLimits(
    frame_octets_max=FRAME_OCTETS, large_body_octets=1024, part_octets_max=512, large_bodies_max=2, section_octets_max=1500, credit=9, credit_octets=4000,
    unconfirmed_max=12, unconfirmed_octets_max=6000, subscriber_unconfirmed_factor=2, waiting_octets_max=1500,
)  # fmt: skip


@contextmanager
def eager_reports() -> Iterator[None]:
    """The time that a checkpoint takes here is an invention: no pauses are made up from it, so that there is one every few commits. Nor does the sweep of
    the retained table rest: a history is over before the second round."""
    before = reporter.SHARE, maintenance.SWEEP_EVERY
    reporter.SHARE, maintenance.SWEEP_EVERY = 1, 0
    try:
        yield
    finally:
        reporter.SHARE, maintenance.SWEEP_EVERY = before


@contextmanager
def quiet() -> Iterator[None]:
    """What nodes say about faults that were planned is no news. Afterwards they are heard again: other tests of the same process read the log."""
    log = logging.getLogger("surety")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


class Watched(Engine):
    """Counts, and checks its invariants after flushes."""

    __slots__ = ("bodies", "counts", "dropped", "flushes", "gone", "guard", "host", "log", "turns", "unused", "watch")

    def __init__(self, engine: Engine, counts: Counter[str], log: Callable[[object], None]) -> None:
        super().__init__(engine.shard)
        self.counts, self.log, self.flushes = counts, log, 0
        self.host: Host | None = None
        self.bodies = Bodies()
        self.turns = Turns(counts, engine.shard.limits.settings.max_active_consumers)
        self.unused = Unused(counts)
        self.guard = Guard(counts)
        self.watch: Watch
        self.gone = self.dropped = 0

    def apply(self, command: Command, now: int) -> None:
        self.counts["commands"] += 1
        self.bodies.sees(command)
        self.turns.sees(command)
        self.unused.sees(self.shard, command)
        self.guard.sees(command)
        self.watch.sees(self.shard, command)
        super().apply(command, now)

    def flush(self, now: int, *, report: bool = False, tell: bool = False, space_low: bool = False) -> Effects:
        effects = super().flush(now, report=report, tell=tell, space_low=space_low)
        self.flushes += 1
        self.bodies.check(self.shard, effects.discarded)
        self.turns.check(effects.outputs)
        self.guard.check(effects.outputs)
        self.watch.check(effects.outputs)
        self.unused.check(self.shard, effects.outputs)
        self._count()
        if self.flushes % CHECK_EVERY == 0:
            check(self)
        if effects.commit is not None:
            self.log(("commit", effects.commit.number, len(effects.commit.messages), effects.commit.settled, len(effects.outputs)))
        return effects

    def _count(self) -> None:
        shard, counts = self.shard, self.counts
        counts["replies to who has gone"] += shard.sends_to_the_gone - self.gone
        self.gone = shard.sends_to_the_gone
        counts["portions left for later"] += bool(shard.handing)
        returning = [work._subscription for work in shard.handing if isinstance(work, Returning)]
        counts["returns left for later"] += len(returning)
        counts["returns of message groups left for later"] += sum(subscription.owners is not None for subscription in returning)
        counts["sends waited for room"] += len(shard.blocked)
        counts["subscriptions left for later"] += len(shard.unserved)
        counts["subscriptions that waited for back-offs while memory was full"] += len(shard.cooling)
        counts["duplicates dropped"] += shard.duplicates.dropped - self.dropped
        self.dropped = shard.duplicates.dropped
        for lane in shard.keeping:
            if lane.kept:
                durable = [cursor.horizon for s in lane.destination.subscriptions if s.durable and (cursor := s.cursors[lane.index]) is not None]
                behind = [horizon for horizon in durable if horizon <= next(iter(lane.kept))]
                counts["kept for several"] += len(behind) > 1
                counts["kept for others than who took it"] += 0 < len(behind) < len(durable)


class _Fresh:
    """The lease is proved by every commit; how it is lost is tests/server's matter."""

    def is_fresh(self, _now: float) -> bool:
        return True


class _Everybody:
    async def check(self, login: str, _passcode: str, _remote: str) -> tuple[str, str]:
        await asyncio.sleep(0.001)
        return login, ""

    def mapping(self, _name: str) -> LevelMapping:
        return UNMAPPED

    def shown(self, _name: str) -> None:
        """No passwords here."""

    def sessions_max(self, _name: str) -> int:
        return 0


class Term:
    def __init__(
        self, store: SlowStore, clock_ms: int, limits: Limits, counts: Counter[str], log: Callable[[object], None], released: Callable[[str], None]
    ) -> None:
        """`released`: told of the address where an operator takes back what a consumer holds."""
        self.store, self.limits, self.counts, self.log, self._released = store, limits, counts, log, released
        self.handed_over = False
        """To another node, as an operator wanted."""
        self._clock_ms, self._began = clock_ms, asyncio.get_running_loop().time()
        self.wires: list[Wire] = []
        self.serving = False
        self.killed = asyncio.get_running_loop().create_future()
        self._asked: set[int] = set()

    async def run(self) -> None:
        """Until it is killed (returns), or ends as a real term ends: raises CommitLost, or what is a bug."""
        await self._recover()
        store: Any = self.store
        tasks = [asyncio.create_task(work) for work in (self.host.run(), self._take_requests(), self._look(), Inbox(store, self.host).run())]
        succeeded = asyncio.create_task(self.managing.successor.wait())
        tasks.append(asyncio.create_task(self._hand_over(succeeded, tasks[0])))
        self.serving = True
        try:
            await asyncio.wait({self.killed, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            if self.handed_over and not self.killed.done():
                await asyncio.wait({self.killed, tasks[-1]}, return_when=asyncio.FIRST_COMPLETED)
                if tasks[-1].done():
                    tasks[-1].result()
        except BaseException:
            self.serving = False
            await self.node.close("the broker is stepping down; connect again")
            raise
        finally:
            self.serving = False
            self.store.dead = True
            for wire in self.wires:
                wire.kill()
            for task in [*tasks, succeeded]:
                task.cancel()
            await asyncio.gather(*tasks, succeeded, return_exceptions=True)
            await self.managing.close()
            for wire in self.wires:
                wire.peer.connection_lost(None)

    async def _hand_over(self, succeeded: asyncio.Task[bool], running: asyncio.Task[None]) -> None:
        """As server.supervisor does it: what was taken in is committed and answered, then everybody is told and closed."""
        await succeeded
        self.handed_over = True
        self.log("hands over")
        await self.managing.close()
        self.node.wind_down()
        await self.host.flushed()
        await self.node.close("another node takes over; connect again")
        self.host.stop()
        await running

    async def _recover(self) -> None:
        found = await self.store.recover()
        self.engine = Watched(recover(found, self.limits, found.instance, decode), self.counts, self.log)
        clock = Clock(self._clock_ms, self._began)
        clock.not_before(self.engine.shard.now)
        self.space = Space(None, 0)
        store: Any = self.store
        metrics = Metrics()
        self.host = Host(self.engine, store, clock, _Fresh(), metrics, self.space, REPORT_SECONDS, self._publish)
        self.engine.host = self.host
        accounts: Any = _Everybody()
        config = dataclasses.replace(BrokerConfig(), unconfirmed_octets_max=4096)
        self.node = Node(config, self.host, store, clock, accounts, metrics, "simulated", found.instance, found.epoch)
        self.node.stomp_limits, self.node.amqp_limits = STOMP_LIMITS, AMQP_LIMITS
        self.managing = Managing(self.node, self.host, OtherNodes(), "simulated", found.epoch)
        self.engine.watch = Watch(self.managing, self.node, self.counts, self._released)
        self.log(("recovered", found.epoch, self.engine.shard.commit_number, self.engine.shard.sequence))

    async def _publish(self, _effects: Effects) -> None:
        await asyncio.sleep(0)
        self.host.destroyed = False

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.space.look()

    async def _take_requests(self) -> None:
        while True:
            waiting = await self.store.control_requests()
            new = [request for request in waiting if request.request not in self._asked]
            self._asked = {request.request for request in waiting}
            for request in [request for request in new if request.verb in NODE_VERBS]:
                self.host.spawn(self.managing.do(request))
            new = [request for request in new if request.verb not in NODE_VERBS]
            if new:
                self.host.submit([Control(r.request, r.verb, r.address, r.arguments, r.deadline) for r in new])
            await asyncio.sleep(CONTROL_SECONDS)

    def kill(self) -> None:
        """As SIGKILL: nothing more is written, nothing more is told."""
        self.store.dead = True
        self.serving = False
        for wire in self.wires:
            wire.kill()
        if not self.killed.done():
            self.killed.set_result(None)
