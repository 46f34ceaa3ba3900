"""Any history of delayed sends, of time, slow reads and crashes, with tiny limits: each message becomes visible once, in order, and no earlier."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker_core.engine import commands as c
from broker_core.engine.message import STORED, Header, Message, Reliability
from tests.engine.rig import ASSURED, BEST_EFFORT, EXPRESS, QUEUE, Bench

DELAYS = st.sampled_from((1, 1, 5, 20, 20, 50, 200, 1000))
OTHER = "queue/other"


class Delays(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(slow=True, page_rows=2, schedule_rows=5, schedule_octets=1600, schedule_ahead_ms=30, page_octets=2000)
        self.bench.control("create", QUEUE)
        self.bench.control("create", OTHER)
        self.waiting: dict[str, tuple[int, int, str, Reliability]] = {}
        """Name -> (due, order, address, level)."""
        self.sent = 0
        self.seen: dict[Message, None] = {}

    def flush(self) -> None:
        self.bench.flush()
        self.look()

    def look(self) -> None:
        """What has become visible, in order: what is stored is in a commit, what is volatile in memory."""
        stored = [message for effects in self.bench.effects if effects.commit for message in effects.commit.messages]
        self.bench.effects.clear()
        for address in (QUEUE, OTHER):
            (subscription,) = self.bench.destination(address).subscriptions
            cursor = subscription.cursors[14]
            for message in [*stored, *(cursor.ready if cursor else ())]:
                if message.destination == subscription.destination.number and message not in self.seen:
                    self.seen[message] = None
                    self.becomes_visible(bytes(message.body).decode(), address)

    def becomes_visible(self, name: str, address: str) -> None:
        assert name in self.waiting, f"{name} became visible a second time"
        due, order, where, level = self.waiting.pop(name)
        assert where == address
        assert due <= self.bench.now, f"{name} is due in {due - self.bench.now} ms"
        same = [other for other in self.waiting.values() if other[2] == where and (other[3] >= STORED) == (level >= STORED)]
        assert all(other[:2] > (due, order) for other in same), f"{name} overtook one of {same}"

    @rule(count=st.integers(1, 6), delay=DELAYS, level=st.sampled_from((BEST_EFFORT, EXPRESS, ASSURED, ASSURED)), address=st.sampled_from((QUEUE, OTHER)))
    def send(self, count: int, delay: int, level: Reliability, address: str) -> None:
        for _ in range(count):
            name = f"m{self.sent}"
            self.sent += 1
            before = self.bench.destination(address).scheduled
            self.bench.apply(c.Send(1, None, address, Message(Header(b"", 4, level, delay=delay), name.encode(), 10)))
            if self.bench.destination(address).scheduled > before:
                self.waiting[name] = (self.bench.now + delay, self.sent, address, level)
            else:
                assert level == BEST_EFFORT, f"{name} was dropped"
        self.flush()

    @rule(ms=st.sampled_from((1, 3, 20, 100, 1000)))
    def time_passes(self, ms: int) -> None:
        self.bench.now += ms
        self.flush()

    @precondition(lambda self: self.bench.reads)
    @rule()
    def the_store_answers(self) -> None:
        self.bench.read(1)
        self.flush()

    @rule()
    def crash(self) -> None:
        self.bench.start()
        self.waiting = {name: known for name, known in self.waiting.items() if known[3] >= STORED}
        self.flush()

    @rule()
    def destroyed_and_made_again(self) -> None:
        self.bench.control("destroy", OTHER)
        self.bench.control("create", OTHER)
        self.bench.flush(report=True)
        self.bench.maintain()
        self.look()
        self.waiting = {name: known for name, known in self.waiting.items() if known[2] != OTHER}

    @invariant()
    def what_waits_is_counted(self) -> None:
        for address in (QUEUE, OTHER):
            waiting = [known for known in self.waiting.values() if known[2] == address]
            assert self.bench.destination(address).scheduled == len(waiting)

    def teardown(self) -> None:
        """Sooner or later everything is due."""
        while self.bench.reads or self.bench.engine.next_deadline() is not None:
            self.bench.read()
            self.bench.now = max(self.bench.now, self.bench.engine.next_deadline() or 0)
            self.flush()
        assert not self.waiting
        assert self.bench.database.tables.scheduled == {}
        assert self.bench.engine.shard.schedule.memory == 0


Delays.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
TestDelays = Delays.TestCase
