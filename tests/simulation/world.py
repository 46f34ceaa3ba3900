"""One seed: a database that outlives its nodes, clients, faults, and an end in which everything must drain."""

from __future__ import annotations

import asyncio
import hashlib
import traceback
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from broker_core.engine.invariants import check
from broker_core.engine.message import VOLATILE, StoredBody
from broker_core.store import CommitLost
from broker_core.store.memory import MemoryDatabase

from .amqp_clients import AmqpClient, AmqpDrainer, AmqpSubscriber
from .audit import HELD, RELIABLE, Auditor, Broken
from .branches import Manager
from .climates import climate_of
from .crowding import Crowd
from .clients import ADDRESSES, BRIEF, QUEUES, WINDOWS, Client, Drainer, Founder, Stranger
from .curating import Curated
from .faults import Faults
from .guarding import Guardian
from .looks import Looks
from .loop import VirtualLoop, virtual_time
from .managing import Steward
from .operating import Keeper, Operators
from .outsiders import Outsider
from .repeating import Repeater
from .requests import Requester, Responder
from .session import DURABLES, TOPIC
from .slow_store import SlowStore
from .subscribers import Subscriber
from .term import Term, eager_reports, quiet
from .turns import ALIAS

BEGAN_MS = 1_700_000_000_000
COMMANDS = 1_300
"""Of a seed; the last second of everything is not counted."""
DRAIN_SECONDS = 60.0
PARTS = ("colour = 'red'", "NOT colour = 'red'")
SEEDS_FOR_ALL = 96
"""So many seeds have everything of MUST_HAPPEN among them; fewer may leave out some of it."""
MUST_HAPPEN = (
    "pages",
    "bodies read again",
    "checkpoints",
    "segments dropped",
    "segments compacted",
    "retained sweeps",
    "retained rows swept behind unsettled ones",
    "spilled",
    "spilled and found by a sweep",
    "dead copies",
    "discarded as they wished",
    "failures",
    "settled UNDELIVERABLE",
    "settled REJECTED",
    "settled EXPIRED",
    "settled EXCLUDED",
    "due",
    "delayed in a message group",
    "schedule read",
    "kills",
    "replies to who has gone",
    "exclusive consumers followed by another",
    "browsed to the end",
    "scans",
    "portions left for later",
    "returns left for later",
    "returns of message groups left for later",
    "message groups that got another owner",
    "message groups with two owners, by what they take",
    "NACK in a transaction",
    "REJECT in a transaction",
    "transactions ended by COMMIT",
    "transactions ended by ABORT",
    "transactions abandoned",
    "transactions in doubt, done",
    "transactions in doubt, not done",
    "transactions refused, delivery not outstanding",
    "transactions refused, transaction timed out",
    "kills behind a COMMIT",
    "branches prepared",
    "branches in doubt",
    "branches ended by hand",
    "branches refused, XA_HEURCOM",
    "branches refused, XA_HEURRB",
    "branches refused, XAER_NOTA",
    "kept for several",
    "kept for others than who took it",
    "subscriptions left for later",
    "subscriptions that waited for back-offs while memory was full",
    "volatile subscriptions",
    "subscriptions of patterns",
    "durable subscriptions taken up again",
    "durable subscriptions redefined",
    "durable subscriptions ended",
    "messages that were owed and came",
    "duplicates dropped",
    "names deleted",
    "sent by SQL",
    "outsiders' transactions rolled back",
    "commits lost that took from the inbox",
    "refused to outsiders",
    "sends waited for room",
    "served while backups stood by",
    "settled OLDEST",
    "said by its alias",
    "waited for beside large bodies",
    "waited for while memory was full",
    "settled MOVED",
    "settled RESTORED",
    "purges undone",
    "operations done",
    "consumers closed by a rule",
    "connections closed by operators",
    "messages taken back by operators",
    "durable subscriptions made by operators",
    "durable subscriptions purged by operators",
    "durable subscriptions ended by operators",
    "nodes quiesced",
    "nodes drained",
    "nodes taken over",
    "operations cancelled",
    "operations that went on after a crash",
    "operations that skipped something",
    "sent by AMQP",
    "received by AMQP",
    "came back unused",
    "drained",
    "transfers aborted",
    "transactions declared",
)


@dataclass
class Verdict:
    """What one seed came to."""

    seed: int
    problem: str = ""
    where: str = ""
    trace: str = ""
    counts: Counter[str] = field(default_factory=Counter)


class World:
    def __init__(self, seed: int, loop: VirtualLoop, commands: int, climate: str = "") -> None:
        self.seed, self.loop, self._commands = seed, loop, commands
        self.climate = climate_of(seed, climate)
        self.counts: Counter[str] = Counter()
        limits, changing = self.climate.limits, self.climate.changes > 0
        self.auditor = Auditor(limits.transaction_ms_max, self.counts, limits.settings, changing=changing)
        self.looks = Looks(self.auditor, self.counts)
        self.faults = Faults(self, self.random("faults"))
        self.database = MemoryDatabase(self.faults.choose, "sim")
        self.term: Term | None = None
        self.ended = False
        self._found: set[str] = set()
        self.manager = Manager(self, "x")
        self.named = 0
        """Messages that were given names."""
        self._windows: dict[str, int] = {}
        """The requests for them, by address."""
        self._alias = 0
        """The request for it; 0: none was made yet."""
        self._aliased = False
        self.strangers: list[str] = []
        """What accounts have done to others' subscriptions."""
        self._digest = hashlib.blake2b(digest_size=16)
        self._stores = self.random("stores")
        self._protocols = self.random("protocols")
        self.events: list[object] | None = None

    def random(self, name: str) -> Random:
        return Random(f"{self.seed} {name}")

    def now_ms(self) -> int:
        return BEGAN_MS + int(self.loop.time() * 1000)

    def log(self, event: object) -> None:
        line = (round(self.loop.now, 6), event)
        self._digest.update(repr(line).encode())
        if self.events is not None:
            self.events.append(line)

    @property
    def trace(self) -> str:
        return self._digest.hexdigest()

    def serving(self) -> Term | None:
        return self.term if self.term is not None and self.term.serving else None

    @property
    def founded(self) -> bool:
        """The topic has all its durable subscriptions."""
        return len(self._found) == len(DURABLES)

    def found(self, name: str) -> None:
        self._found.add(name)

    def detects(self, address: str) -> bool:
        """Whether duplicates are detected there by now; an operator is asked for it as soon as he can do it."""
        if address not in self._windows:
            if address == TOPIC and not self.founded:
                return False
            self._windows[address] = self.database.request("update" if address == TOPIC else "create", address, {"duplicate_window_ms": WINDOWS[address]})
        answer = self.database.answer(self._windows[address])
        assert answer is None or answer[0], answer
        return answer is not None

    def said(self, address: str) -> str:
        """The alias of one queue, every other time, once an operator has made it."""
        if address != QUEUES[0]:
            return address
        if self._alias == 0:
            self._alias = self.database.request("create_alias", ALIAS, {"target": address})
        answer = self.database.answer(self._alias)
        assert answer is None or answer[0], answer
        self._aliased = not self._aliased
        if answer is None or not self._aliased:
            return address
        self.counts["said by its alias"] += 1
        return ALIAS

    # -- the life of nodes ----------------------------------------------------------------------------------------------------------------
    async def _serve(self) -> None:
        """Term after term. Whatever ends one but CommitLost is a bug."""
        while not self.ended:
            store = SlowStore(self.database.open(self.now_ms()), self._stores, self.climate.slow_in, self.counts)
            store.calm = self.faults.calm
            self.term = Term(store, self.now_ms(), self.climate.limits, self.counts, self.log, self.auditor.lets_go)
            try:
                await self.term.run()
            except CommitLost as lost:
                self.log(("stepped down", str(lost)))
                self.counts["terms lost"] += 1
            self.auditor.excuse("volatile, and its node ended", below=RELIABLE)
            await asyncio.sleep(0.010)

    def _either(self, stomp: type[Any], amqp: type[Any]) -> type[Any]:
        """By the protocol that the client is to speak."""
        return amqp if self.climate.amqp and self._protocols.random() < self.climate.amqp else stomp

    async def play(self) -> None:
        serving = asyncio.create_task(self._serve())
        clients = [Founder(self, "f"), Stranger(self, "e"), *(self._either(Client, AmqpClient)(self, f"c{number}") for number in range(5))]
        clients += [Requester(self, "q1"), Requester(self, "q2"), Responder(self, "r")]
        clients += [self._either(Subscriber, AmqpSubscriber)(self, f"u{number}") for number in range(self.climate.subscribers)]
        clients += [Outsider(self, f"o{number}") for number in range(2)]
        clients += [Repeater(self, f"n{number}") for number in range(self.climate.repeaters)]
        clients += [Curated(self, f"p{number}") for number in range(2 if self.climate.managed else 0)]
        clients += [Keeper(self, f"k{number}") for number in range(self.climate.keepers)]
        operators, guardian, steward = Operators(self), Guardian(self), Steward(self)
        playing = [asyncio.create_task(client.run()) for client in clients]
        managing = [asyncio.create_task(self.manager.run())] if self.climate.branches else []
        operating = [asyncio.create_task(operators.run())] if self.climate.keepers else []
        operating += [asyncio.create_task(guardian.run())] if self.climate.guarded else []
        operating += [asyncio.create_task(steward.run())] if self.climate.managed else []
        troubling = asyncio.create_task(self.faults.run())
        await self._until(lambda: self.counts["commands"] >= self._commands, [serving, troubling, *playing, *managing, *operating], 3600.0)
        troubling.cancel()
        await self.faults.stop()
        for client in clients:
            client.stopping = True
        await self._until(lambda: all(task.done() for task in playing), [serving, *playing, *managing], 60.0)
        operators.stopping = guardian.stopping = steward.stopping = True
        await self._until(lambda: all(task.done() for task in operating), [serving, *operating], 60.0)
        await self._drain([serving, *managing])
        self.manager.stopping = True
        await self._until(lambda: all(task.done() for task in managing), [serving, *managing], 60.0)
        if self.climate.crowded:
            await self._crowd(serving)
        await self._kill_and_look(serving)
        self.ended = True
        if self.term is not None:
            self.term.kill()
        await serving

    async def _until(self, holds: Any, tasks: list[asyncio.Task[None]], seconds: float) -> None:
        deadline = self.loop.time() + seconds
        while True:
            for task in tasks:
                if task.done():
                    task.result()
            if self.strangers:
                raise Broken(f"an account {self.strangers[0]}, which is another's")
            if self.loop.failures:
                raise self.loop.failures[0]
            if holds():
                return
            if self.loop.time() > deadline:
                raise Broken(f"it was not done within {seconds} virtual seconds: {self._what_remains()}")
            await asyncio.sleep(0.020)

    # -- the end --------------------------------------------------------------------------------------------------------------------------
    async def _drain(self, serving: list[asyncio.Task[None]]) -> None:
        """Faults are off: the transaction manager ends what is prepared, consumers take everything, of queues two that want a part each, then nothing may be
        left anywhere."""
        addresses = (*ADDRESSES, *HELD) if self.climate.keepers else ADDRESSES
        places = [(address, selector) for address in addresses for selector in (PARTS if address in QUEUES else ("",))]
        drainers = [self._either(Drainer, AmqpDrainer)(self, f"d{number}", *place) for number, place in enumerate(places)]
        draining = [asyncio.create_task(drainer.run()) for drainer in drainers]
        await self._until(lambda: not self._what_remains(), [*serving, *draining], DRAIN_SECONDS)
        for drainer in drainers:
            drainer.stopping = True
        await self._until(lambda: all(task.done() for task in draining), [*serving, *draining], 60.0)
        self.auditor.check_end()
        self.looks.check_end()

    async def _crowd(self, serving: asyncio.Task[None]) -> None:
        """There is nothing else: memory is as full as this client makes it."""
        crowding = asyncio.create_task(Crowd(self, "w").run())
        await self._until(lambda: crowding.done() and not self._what_remains(), [serving, crowding], 60.0)

    def _what_remains(self) -> list[str]:
        term = self.serving()
        if term is None:
            return ["no node serves"]
        shard = term.engine.shard
        remains = [f"{d.address} has {d.depth} messages, {d.octets} octets" for d in shard.destinations.values() if d.depth or d.octets]
        remains += [f"{d.address} is there and its connection is not" for d in shard.destinations.values() if d.address.startswith("temp-")]
        if shard.schedule.is_waiting:
            remains.append(f"{shard.schedule.rows} delayed messages and {len(shard.schedule.unwritten)} unwritten ones")
        segments = shard.segments
        if segments.closed or segments.leaving or segments.retained:
            remains.append(f"segments {list(segments.closed)}, leaving {list(segments.leaving)}, retained {segments.retained}")
        if shard.branches.known or self.database.tables.prepared:
            remains.append(f"branches {[branch.xid for branch in shard.branches.known.values()]}, {len(self.database.tables.prepared)} rows of them")
        if shard.memory:
            remains.append(f"{shard.memory} octets in memory")
        tables = self.database.tables
        brief = shard.destinations.get(BRIEF)
        if brief is not None and any(number == brief.number for number, _, _ in tables.duplicates):
            remains.append(f"names of {BRIEF}")
        if tables.inbox:
            remains.append(f"{len(tables.inbox)} rows of the inbox")
        if tables.scheduled:
            remains.append(f"{len(tables.scheduled)} rows of the schedule")
        if tables.retained or min(tables.segments, default=segments.current) < segments.current:  # later ones were made ahead of need
            remains.append(f"tables {sorted(tables.segments)}, {len(tables.retained)} retained rows")
        named = {row.body.body for row in tables.rows() if isinstance(row.body, StoredBody) and row.header.lane < VOLATILE}
        if tables.bodies.keys() - named:
            remains.append(f"large bodies {sorted(tables.bodies.keys() - named)} that no stored message names")
        held = term.host.gauges()["sends_waiting_for_space"]
        if held:
            remains.append(f"{held} sends wait for disk space")
        waiting = [request.request for request in tables.requests.values() if request.answer is None]
        return remains + [f"requests {waiting} are not answered" for _ in waiting[:1]]

    async def _kill_and_look(self, serving: asyncio.Task[None]) -> None:
        """After a last kill nothing comes back."""
        assert self.term is not None
        killed = self.term
        killed.kill()
        await self._until(lambda: self.term is not killed and self.serving() is not None, [serving], 60.0)
        term = self.serving()
        assert term is not None
        check(term.engine)
        depths = {d.address: (d.depth, d.octets) for d in term.engine.shard.destinations.values() if d.depth or d.octets}
        if depths:
            raise Broken(f"after the last kill messages came back: {depths}")


def run_seed(seed: int, *, commands: int = COMMANDS, climate: str = "", keep_events: bool = False) -> tuple[Verdict, list[object]]:
    """Play one seed from its start to its end, in the climate of this name or in its own."""
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    world = World(seed, loop, commands, climate)
    world.events = [] if keep_events else None
    verdict = Verdict(seed, counts=world.counts)
    with virtual_time(loop), eager_reports(), quiet():
        try:
            loop.run_until_complete(world.play())
        except Exception as error:  # noqa: BLE001 - whatever breaks is the seed's result
            verdict.problem = f"{type(error).__name__}: {error}"
            verdict.where = "".join(traceback.format_exception(error))
        finally:
            _cancel_all(loop)
            loop.close()
            asyncio.set_event_loop(None)
    verdict.trace = world.trace
    return verdict, world.events or []


def _cancel_all(loop: VirtualLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
