"""The heart of a node: inbox -> apply -> commit -> release.

Commands are applied as they arrive, while the commit before is still on its way; when it returns, its outputs are released, the open batch is
flushed and its commit starts. So the batch grows with the load (group commit), outputs leave in order, and rule 1 (write before you speak) is
this one loop. Rule 2 (a commit not known to have succeeded: forget everything) is the exception that leaves it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Protocol

from broker_core.engine import Engine
from broker_core.engine.commands import Command, PageLoaded, Request, Send
from broker_core.engine.effects import Effects
from broker_core.engine.foreign import routes
from broker_core.engine.outputs import Output
from broker_core.engine.presence import page_of_producers
from broker_core.engine.producers import PER_PEER, Producers
from broker_core.engine.reads import Read
from broker_core.engine.transactions import places
from broker_core.engine.writes import Commit
from broker_core.store import SpaceExhausted, Store

from .clock import Clock
from .dead_log import DeadLog
from .held import HeldSends
from .janitor import Janitor
from .metrics import Metrics, gauges
from .open_batch import OpenBatch
from .reporter import Reporter
from .space import SPACE_RETRY_SECONDS, Space

log = logging.getLogger("surety.host")

SLICE_EFFORT = 20_000
"""Of one peer's commands at a time, in microseconds: so long others wait for it, and for one command more. Half of it would cost a topic of 1,000
filters a third of its rate: what they left out is settled batch by batch."""
SLICE_COMMANDS = 5_000
"""As many take half as long."""
SLICE_HELD = 100
"""While sends wait for disk space."""
PROOF_POLL_SECONDS = 0.05

Done = tuple[Effects, "list[asyncio.Future[None]]"]


class Receiver(Protocol):
    """A connected peer, as the host knows it."""

    def deliver(self, outputs: list[Output]) -> None:
        """Outputs of one release, in order. Bodies are taken from the messages before it returns."""

    def resume(self) -> None:
        """Read again: the batch that was too large has been flushed."""



class Connected(Receiver, Protocol):
    def shut(self, sentence: str) -> None:
        """Say why, and close when that is read."""

    @property
    def origin(self) -> tuple[str, str]:
        """Where it connects from, and by which protocol."""

    @property
    def producers(self) -> Producers:
        """Where it sends to."""

    @property
    def is_held_up(self) -> bool:
        """It is not read from, for now."""


class Lease(Protocol):
    def is_fresh(self, now_monotonic: float) -> bool: ...


class Host:
    """Owns the engine. All methods are called on the node's event loop."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        clock: Clock,
        lease: Lease,
        metrics: Metrics,
        space: Space,
        report_seconds: float,
        publish: Callable[[Effects], Coroutine[Any, Any, None]],
    ) -> None:
        self._engine = engine
        self._store = store
        self._clock = clock
        self._lease = lease
        self._metrics = metrics
        self._space = space
        self._receivers: dict[int, Connected] = {}
        self._wanted = asyncio.Event()
        self._wanted.set()  # what recovery left to write, and a first report: until then operators see "unknown"
        self._janitor = Janitor(store, space, self.submit, self.fail)
        self._reporter = Reporter(store, space, report_seconds, publish)
        self._dead_log = DeadLog()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting: dict[int, Receiver] = {}
        self._open = OpenBatch()
        self._held = HeldSends(self.discard_body, partial(places, engine.shard))
        self._stopping = False
        self._flushed: list[asyncio.Future[None]] = []
        self._durable: deque[Done] = deque()
        """Committed, to be released; if the next batch is open already, while the database works on that one."""

    # -- inbox --------------------------------------------------------------------------------------------------------------------------
    def join(self, peer: int, receiver: Connected) -> None:
        self._receivers[peer] = receiver

    def leave(self, peer: int) -> None:
        self._receivers.pop(peer, None)
        self._waiting.pop(peer, None)

    def submit(self, commands: Sequence[Command]) -> None:
        """Apply to the open batch, in order."""
        if self._space.low:
            commands = self._held.hold(commands)
        elif self._held:
            commands = [*self._held.release(), *commands]
        self._apply(commands, inf)

    def submit_slice(self, commands: Sequence[Command]) -> Sequence[Command]:
        """The same for no longer than others may wait. Returns what is left; it is to be submitted before anything else of its peer."""
        if self._space.low or self._held:
            self.submit(commands[:SLICE_HELD])
            return commands[SLICE_HELD:]
        if len(commands) > SLICE_COMMANDS:
            return [*self._apply(commands[:SLICE_COMMANDS], SLICE_EFFORT), *commands[SLICE_COMMANDS:]]
        return self._apply(commands, SLICE_EFFORT)

    def _apply(self, commands: Sequence[Command], most: float) -> Sequence[Command]:
        """Returns those that were too many."""
        apply, now, shard = self._engine.apply, self._clock.now(), self._engine.shard
        shard.effort = octets = sends = 0
        left = iter(commands)
        try:
            for command in left:
                if command.__class__ is Send or command.__class__ is Request:
                    octets += command.message.size
                    sends += 1
                apply(command, now)
                if shard.effort > most:
                    break
        except Exception as error:
            self.fail(error)  # the engine is broken: a callback's exception, which asyncio would only log, must end the node
            raise
        rest = list(left)
        self._open.add(octets, sends, len(commands) - len(rest) - sends, shard.effort)
        self._wanted.set()
        return rest

    @property
    def effort(self) -> int:
        """Of the last commands that were submitted, about, in microseconds, beside what every command takes."""
        return self._engine.shard.effort

    def discard_body(self, body: int) -> None:
        """Delete a large body whose message never came here."""
        self._janitor.discard([body])

    def held_octets(self, peer: int) -> int:
        """Of this peer's sends that wait for disk space; 0 if none does."""
        return self._held.octets(peer)

    def knows(self, peer: int) -> bool:
        """It has logged in."""
        return peer in self._engine.shard.peers

    def compaction(self) -> dict[str, Any] | None:
        """How far the one is that an operator asked for last."""
        asked = self._engine.shard.compaction
        return asked.told() if asked is not None else None

    def unsettled(self, peer: int) -> int:
        """Deliveries to it that are not settled, of all its links together."""
        known = self._engine.shard.peers.get(peer)
        return sum(len(link.unsettled) for link in known.links.values()) if known is not None else 0

    def open_transactions(self, peer: int) -> int:
        """Begun and not ended, and of a distributed one's branches those that are not prepared."""
        known = self._engine.shard.peers.get(peer)
        return len({*map(id, known.transactions.values()), *map(id, known.branches.values())}) if known is not None else 0

    def waits_for_room(self, peer: int) -> bool:
        """Something that it has sent waits in a full destination."""
        known = self._engine.shard.peers.get(peer)
        return known is not None and bool(known.blocked)

    @property
    def congested(self) -> bool:
        """The open batch is large enough: whoever sends should not be read from until `resume`."""
        return self._open.is_large

    @property
    def space_low(self) -> bool:
        """Nothing that takes disk space is begun now (R21)."""
        return self._space.low

    def exhausted(self, reason: str) -> None:
        """The store refused a write for want of space."""
        self._space.exhausted(reason)

    def wait_for_flush(self, peer: int, receiver: Receiver) -> None:
        """`resume` it after the next flush, or when its sends no longer wait for disk space."""
        self._waiting[peer] = receiver

    # -- the loop -----------------------------------------------------------------------------------------------------------------------
    async def run(self) -> None:
        """Until `stop` and everything is flushed, or a failure (CommitLost and what else breaks), which it raises."""
        loop = asyncio.create_task(self._loop(), name="host")
        try:
            await asyncio.wait({loop, self._failed}, return_when=asyncio.FIRST_COMPLETED)
            if not self._failed.done() and (error := loop.exception()) is not None:
                self.fail(error)
            if self._failed.done():
                self._failed.result()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for task in [loop, *self._tasks]:
                task.cancel()
            self._janitor.cancel()
            self._dead_log.finish()
            await asyncio.gather(loop, self._janitor.ended(), *self._tasks, return_exceptions=True)

    async def flushed(self) -> None:
        """Returns when everything submitted so far is committed and its outputs are released. Raises what ends `run` before."""
        flushed = asyncio.get_running_loop().create_future()
        self._flushed.append(flushed)
        self._wanted.set()
        await asyncio.wait({flushed, self._failed}, return_when=asyncio.FIRST_COMPLETED)
        if not flushed.done():
            self._failed.result()

    def foreign_routes(self) -> dict[str, tuple[str, str]]:
        """See engine.foreign."""
        return routes(self._engine.shard)

    def address_of(self, destination: int) -> str:
        """Of the destination of this number; empty: it is gone."""
        found = self._engine.shard.numbered.get(destination)
        return found.address if found is not None else ""

    def origins(self, only: int | None = None) -> dict[str, tuple[str, str, int]]:
        """Of connected peers, by number: where each connects from, by which protocol, and how many producers it has."""
        wanted = self._receivers if only is None else {only: self._receivers[only]} if only in self._receivers else {}
        return {str(number): (*receiver.origin, len(receiver.producers)) for number, receiver in wanted.items()}

    def producers(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """See engine.presence.list_producers."""
        found = page_of_producers(self._engine.shard, arguments, {number: receiver.producers for number, receiver in self._receivers.items()})
        connections = {number // PER_PEER for number, *_ in found["rows"]}
        return found | {"held_up": [number for number in connections if self._receivers[number].is_held_up]}

    def gauges(self) -> dict[str, Any]:
        return {**gauges(self._engine.shard), "sends_waiting_for_space": len(self._held)}

    def stop(self) -> None:
        """Flush what is open, write a last checkpoint, then end `run`."""
        self._stopping = True
        self._reporter.hurry()
        self._wanted.set()

    async def _loop(self) -> None:
        while True:
            await self._wanted.wait()
            if self._failed.done():
                return  # the open batch may be half applied
            self._wanted.clear()
            stopping, flushed = self._stopping, self._flushed
            self._flushed = []
            if self._held and not self._space.low:
                self.submit(())
            effects = self._engine.flush(self._clock.now(), report=self._reporter.is_due(), tell=self._reporter.tells(), space_low=self._space.low)
            self._reporter.begin(effects)
            self._open = OpenBatch()
            if self._waiting:
                for peer in [peer for peer in self._waiting if not self._held.octets(peer)]:
                    self._waiting.pop(peer).resume()
            if effects.commit is not None:
                await self._commit(effects.commit)
            else:
                self._on_its_way()
            await self._prove()
            self._durable.append((effects, flushed))
            if stopping or not self._wanted.is_set():
                self._finish()
            if stopping:
                self._janitor.cancel()
                while self._tasks:
                    await asyncio.gather(*self._tasks)
                return
            self._arm()

    async def _commit(self, commit: Commit) -> None:
        """Make it durable. What is durable already is released as soon as this commit is on its way."""
        began = time.perf_counter()
        while True:
            try:
                await self._store.commit(commit, self._meanwhile)
                break
            except SpaceExhausted as error:
                log.error("The database has no room (%s); this commit waits until there is some.", error)
                self._space.exhausted(str(error))
                self._on_its_way()
                await asyncio.sleep(SPACE_RETRY_SECONDS)
        self._metrics.committed(commit, time.perf_counter() - began)

    def _on_its_way(self) -> None:
        """Release while the database works; unless sending took so long (a table had to be made) that the lease must be proved again."""
        if self._lease.is_fresh(time.monotonic()):
            self._finish()

    def _meanwhile(self) -> None:
        """What is done while the database works. Without a commit nothing is done ahead: this loop would never wait, and nobody else would have a turn."""
        self._on_its_way()
        if not self._stopping and self._engine.work_ahead(self._clock.now(), space_low=self._space.low):
            self._wanted.set()

    def _finish(self) -> None:
        """Release what is durable."""
        while self._durable:
            effects, flushed = self._durable.popleft()
            self._release(effects.outputs)
            self._engine.released()
            self._perform(effects)
            for waiter in flushed:
                if not waiter.done():
                    waiter.set_result(None)

    async def _prove(self) -> None:
        """Nothing leaves while the lease may have gone to another node (R11)."""
        while not self._lease.is_fresh(time.monotonic()):
            await asyncio.sleep(PROOF_POLL_SECONDS)

    def _release(self, outputs: list[Output]) -> None:
        by_peer: dict[int, list[Output]] = {}
        for output in outputs:
            if output.peer in by_peer:
                by_peer[output.peer].append(output)
            else:
                by_peer[output.peer] = [output]
        for peer, mine in by_peer.items():
            receiver = self._receivers.get(peer)
            if receiver is not None:
                receiver.deliver(mine)

    # -- after the commit -----------------------------------------------------------------------------------------------------------------
    def _perform(self, effects: Effects) -> None:
        for read in effects.reads:
            self.spawn(self._read(read))
        for peer, sentence in effects.dismissed:
            if peer in self._receivers:
                self._receivers[peer].shut(sentence)
        if effects.discarded or effects.maintenance:
            self._janitor.take(effects)
        self._dead_log.write(effects, time.monotonic())
        for number, address, octets in effects.given_up:
            log.warning("disk space is low: purge %d of %s cannot be undone any more, which frees %d octets", number, address, octets)
        if effects.reports:
            self.spawn(self._report(effects))

    async def _report(self, effects: Effects) -> None:
        await self._reporter.write(effects)
        self._arm()

    async def _read(self, read: Read) -> None:
        messages, complete = await self._store.read(read)
        self.submit([PageLoaded(read.read, messages, complete)])

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it beside the loop; its failure is the node's."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Something the node cannot go on without has failed: `run` raises it."""
        if not self._failed.done():
            self._failed.set_exception(error)

    def _arm(self) -> None:
        """One timer for the engine's next deadline and for the next report; while one is under way none is due."""
        report = self._reporter.seconds_left()
        delays = [] if report is None else [report]
        if self._held or self._space.low:
            delays.append(SPACE_RETRY_SECONDS)
        if (deadline := self._engine.next_deadline()) is not None:
            delays.append((deadline - self._clock.now()) / 1000)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(min(delays), 0.001), self._wanted.set) if delays else None
