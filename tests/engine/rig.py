"""An engine with a memory store and a clock by hand: what a host does, one step at a time, with the invariants checked after every flush."""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Iterable
from typing import Any

from broker_core.engine import Engine, Limits, recover
from broker_core.engine import commands as c
from broker_core.engine.cursor import Cursor
from broker_core.engine.destination import Destination
from broker_core.engine.settings import Settings
from broker_core.engine.definitions import UndoEnded
from broker_core.engine.effects import Effects
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Confirmed, Delivered, Output, Refused
from broker_core.engine.invariants import check
from broker_core.engine.message import VOLATILE, Encoding, Header, Message, Reliability, StoredBody
from broker_core.engine.message_group import GROUP_ID, GROUP_SEQUENCE, group_of
from broker_core.engine.reads import Read
from broker_core.engine.refusal import Refusal
from broker_core.engine.upkeep import CompactSegment, DiscardScheduled, DropSegment, FreezeSegment, Maintenance, TrimDuplicates
from broker_core.engine.writes import Commit
from broker_core.store.memory import MemoryDatabase, MemoryStore

QUEUE = "queue/orders"
DEAD = "queue/mq.sys.dmq"
START = 1_000_000
ASSURED, RELIABLE, EXPRESS, BEST_EFFORT = Reliability.ASSURED, Reliability.RELIABLE, Reliability.EXPRESS, Reliability.BEST_EFFORT


def decode(header: Header) -> dict[str, str]:
    """Header sections of these tests: `name:value` lines."""
    return dict(line.split(":") for line in header.octets.decode().split("\n") if line)


def now_of(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


class Bench:
    """Peer 1 is open. `reads` and `steps` are done at once unless `slow` says that they wait for `read` and `maintain`."""

    def __init__(self, *, slow: bool = False, settings: Settings | None = None, **limits: Any) -> None:
        self.limits = Limits(**limits, settings=settings if settings is not None else Settings(redelivery_delay_ms=0))
        self.slow = slow
        self.now = START
        self.database = MemoryDatabase()
        self.reads: list[Read] = []
        self.steps: list[Maintenance] = []
        self.outputs: list[Output] = []
        self.effects: list[Effects] = []
        self.start()

    def start(self) -> None:
        """A new term: recover from what is durable."""
        self.store: MemoryStore = self.database.open(self.now)
        found = now_of(self.store.recover())
        self.engine: Engine = recover(found, self.limits, "test", decode)
        self.reads, self.steps, self.outputs = [], [], []
        check(self.engine)
        self.apply(c.Open(1, "guest"))

    # -- commands -------------------------------------------------------------------------------------------------------------------------
    def apply(self, *commands: c.Command) -> None:
        for command in commands:
            self.engine.apply(command, self.now)

    def flush(self, *, report: bool = False) -> list[Output]:
        """Flush, commit, release; then whatever the store has to do, until nothing more comes of it. The outputs of all."""
        outputs: list[Output] = []
        while True:
            effects = self.engine.flush(self.now, report=report)
            check(self.engine)
            self._check_arrivals(effects.commit)
            self.effects.append(effects)
            self._commit(effects)
            outputs += effects.outputs
            self.release(effects)
            report = False
            shard = self.engine.shard
            waits = self.reads or self.steps or shard.expiring or shard.browsing.turns or shard.unfinished or shard.unserved or shard.handing
            waits = waits or shard.operations.is_due
            if self.slow or not (waits or self._has_to_scan()):
                self.outputs += outputs
                return outputs
            self.read()
            self.maintain()

    def _check_arrivals(self, commit: Commit | None) -> None:
        """The octets that are said to have come are those of the rows; of a topic once a subscription, and more where a purge was undone."""
        if commit is None:
            return
        told = {number: arrived for number, _, arrived in commit.octets}
        came: Counter[int] = Counter()
        for message in [*commit.messages, *(copy.target for copy in commit.copies)]:
            came[message.destination] += message.size
        for bulk in commit.bulk_copies:
            came[bulk.destination] += bulk.octets
        undone = any(isinstance(one, UndoEnded) for one in commit.definitions)
        for number in told.keys() | came.keys():
            destination, arrived = self.engine.shard.numbered.get(number), told.get(number, 0)
            exact = not (undone or destination is None or destination.is_topic)
            assert arrived == came[number] or (arrived > came[number] and not exact), f"{arrived} octets are said to have come to {number}: {came[number]}"

    def _has_to_scan(self) -> bool:
        """Scans rest while there is other traffic; the rest is taken at once."""
        shard = self.engine.shard
        if not shard.scanning or shard.scan_began:
            return False
        self.now = max(self.now, shard.scan_at)
        return True

    def _commit(self, effects: Effects) -> None:
        if effects.commit is not None:
            now_of(self.store.commit(effects.commit))
        if effects.checkpoint is not None:
            now_of(self.store.checkpoint(effects.checkpoint))
        self.reads += effects.reads
        self.steps += effects.maintenance

    def release(self, effects: Effects) -> None:
        """As a protocol machine does: framed bodies of stored messages leave memory."""
        for output in effects.outputs:
            if isinstance(output, Delivered):
                for message in output.messages:
                    if message.header.lane < VOLATILE and isinstance(message.body, bytes):
                        message.holders -= 1
                        if message.holders <= 0:
                            message.body = None
        self.engine.released()

    def read(self, count: int | None = None) -> None:
        """Answer reads that wait, the oldest first."""
        reads, self.reads = self.reads[:count], self.reads[count:] if count is not None else []
        for read in reads:
            self.apply(c.PageLoaded(read.read, *now_of(self.store.read(read))))

    def maintain(self) -> None:
        steps, self.steps = self.steps, []
        for step in steps:
            if isinstance(step, DropSegment):
                assert now_of(self.store.drop_segment(step.segment))
                self.apply(c.SegmentDropped(step.segment))
            elif isinstance(step, FreezeSegment):
                now_of(self.store.freeze_segment(step.segment))
            elif isinstance(step, CompactSegment):
                now_of(self.store.compact_segment(step))
                self.apply(c.SegmentCompacted(step.segment))
            elif isinstance(step, DiscardScheduled):
                now_of(self.store.discard_scheduled(step.destination))
            elif isinstance(step, TrimDuplicates):
                now_of(self.store.trim_duplicates(step))
            else:
                now_of(self.store.sweep_retained(step))

    def passes(self, ms: int) -> list[Output]:
        """Time passes, and the timers that are due fire."""
        self.now += ms
        return self.flush()

    # -- what clients do ------------------------------------------------------------------------------------------------------------------
    def send(
        self,
        *bodies: str,
        address: str = QUEUE,
        level: Reliability = ASSURED,
        priority: int = 4,
        expires: int = 0,
        size: int = 10,
        properties: dict[str, str] | None = None,
        client_id: str = "",
        delay: int = 0,
        duplicate_id: str = "",
        group: str = "",
        closes: bool = False,
    ) -> list[Output]:
        properties = (properties or {}) | ({GROUP_ID: group} if group else {}) | ({GROUP_SEQUENCE: "-1"} if closes else {})
        lines = "\n".join([f"{name}:{value}" for name, value in properties.items()])
        for body in bodies:
            header = Header(
                lines.encode(), priority, level, expires, Encoding.STOMP,
                client_id=client_id, delay=delay, duplicate_id=duplicate_id, group=group_of(properties),
            )  # fmt: skip
            self.apply(c.Send(1, body, address, Message(header, body.encode(), size)))
        return self.flush()

    def attach(self, link: int = 1, *, peer: int = 1, address: str = QUEUE, credit: int = 1000, **how: Any) -> list[str]:
        self.apply(c.Attach(peer, link, address, credit=credit, **how))
        return self.bodies(self.flush())

    def browse(self, link: int = 1, *, peer: int = 1, address: str = QUEUE, **how: Any) -> list[str]:
        self.apply(c.Browse(peer, link, address, **how))
        return self.bodies(self.flush())

    def settle(self, *tags: int, link: int = 1, peer: int = 1, upto: int = 0, outcome: Outcome = Outcome.ACCEPTED, token: Any = None) -> list[Output]:
        self.apply(c.Settle(peer, link, list(tags), upto, outcome, token))
        return self.flush()

    def control(self, verb: str, address: str = "", /, **arguments: Any) -> dict[str, Any]:
        """Ask, and the answer; refused ones carry `refusal`."""
        number = self.database.request(verb, address, arguments)
        self.apply(c.Control(number, verb, address, arguments))
        self.flush()
        answer = self.database.answer(number)
        assert answer is not None
        return answer[1]

    # -- what comes of it -----------------------------------------------------------------------------------------------------------------
    def bodies(self, outputs: Iterable[Output]) -> list[str]:
        """Of what was delivered, in order. Bodies have left memory by then: the store knows them by sequence."""
        return [self.body(message) for output in outputs if isinstance(output, Delivered) for message in output.messages]

    def body(self, message: Message) -> str:
        if isinstance(message.body, bytes):
            return message.body.decode()
        if isinstance(message.body, StoredBody):
            return f"body {message.body.body}"
        found = [row.body for row in self.database.tables.rows() if row.sequence == message.sequence]
        assert found and isinstance(found[0], bytes)
        return found[0].decode()

    @staticmethod
    def delivered(outputs: Iterable[Output]) -> list[Message]:
        return [message for output in outputs if isinstance(output, Delivered) for message in output.messages]

    @staticmethod
    def confirmed(outputs: Iterable[Output]) -> list[Any]:
        return [output.token for output in outputs if isinstance(output, Confirmed)]

    @staticmethod
    def refused(outputs: Iterable[Output]) -> list[Refusal]:
        return [output.refusal for output in outputs if isinstance(output, Refused)]

    def destination(self, address: str = QUEUE) -> Destination:
        return self.engine.shard.destinations[address]

    def cursor(self, *, address: str = QUEUE, lane: int = 4) -> Cursor:
        cursor = self.destination(address).subscriptions[0].cursors[lane]
        assert cursor is not None
        return cursor

    def depth(self, address: str = QUEUE) -> int:
        return self.destination(address).depth


def deliveries(effects: Effects) -> int:
    """Messages that one flush handed out."""
    return sum(len(output.messages) for output in effects.outputs if isinstance(output, Delivered))


def received(bench: Bench, effects: Iterable[Effects]) -> dict[int, list[str]]:
    """Bodies by link, of these flushes."""
    bodies: dict[int, list[str]] = {}
    for each in effects:
        for output in each.outputs:
            if isinstance(output, Delivered):
                bodies.setdefault(output.link, []).extend(bench.body(message) for message in output.messages)
    return bodies
