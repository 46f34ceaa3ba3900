"""Recovery equals the engine of before, less what is volatile: at any moment of any history of a queue, a topic and prepared branches, with tiny limits,
whether checkpoints were written or not. What a second recovery knows is the same; what is left is then found by consumers."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from broker_core.engine import commands as c
from broker_core.engine.commands import Verb
from broker_core.engine.message import Encoding, Header, Message, Reliability
from broker_core.engine.outcome import Outcome
from broker_core.engine.selector import compile_selector
from broker_core.engine.settings import Settings
from broker_core.engine.subscription import EVERYTHING, Filter
from tests.engine.picture import picture
from tests.engine.rig import QUEUE, Bench

TOPIC = "topic/prices"
DURABLE = {"all": "", "red": "red"}
"""Subscriptions of the topic, and the colour that each takes."""
COLOURS = ("red", "green")
OUTCOMES = st.sampled_from((Outcome.ACCEPTED, Outcome.ACCEPTED, Outcome.RELEASED, Outcome.FAILED, Outcome.REJECTED))
addresses = st.sampled_from((QUEUE, TOPIC))
levels = st.sampled_from(list(Reliability))


class Recoveries(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        rules = Settings(redelivery_max=2, redelivery_delay_ms=50)
        small = {"page_rows": 3, "window_rows": 4, "segment_rows": 6, "memory_octets": 400, "page_octets": 128, "looks": 7, "scan_rows": 2, "scan_positions": 5}
        self.bench = Bench(settings=rules, compact_below=0.5, undo_ms=600_000, **small)
        self.sent = self.numbers = 0
        self.branches: list[str] = []
        self.bench.control("create", QUEUE)
        for name in DURABLE:
            self.subscribe(name)
            self.bench.apply(c.PeerLost(self.numbers + 10))
        self.bench.flush()

    # -- what may happen --------------------------------------------------------------------------------------------------------------------
    @rule(address=addresses, count=st.integers(1, 9), level=levels, priority=st.sampled_from((4, 4, 9)), colour=st.sampled_from(COLOURS))
    def send(self, address: str, count: int, level: Reliability, priority: int, colour: str) -> None:
        names = [f"m{self.sent + number}" for number in range(count)]
        self.sent += count
        self.bench.send(*names, address=address, level=level, priority=priority, size=12, properties={"colour": colour})

    @rule(credit=st.sampled_from((1, 3, 20)))
    def consume(self, credit: int) -> None:
        self.numbers += 1
        self.bench.apply(c.Open(self.numbers + 10, "guest"))
        self.bench.attach(self.numbers, peer=self.numbers + 10, credit=credit)

    @rule(name=st.sampled_from(list(DURABLE)))
    def subscribe(self, name: str, credit: int = 3) -> None:
        """Its consumer comes, unless it is there."""
        self.numbers += 1
        wanted = Filter(compile_selector(f"colour = '{DURABLE[name]}'")) if DURABLE[name] else EVERYTHING
        self.bench.apply(c.Open(self.numbers + 10, "guest", f"client-{name}"))
        self.bench.attach(self.numbers, peer=self.numbers + 10, address=TOPIC, name=name, durable=True, credit=credit, wanted=wanted)

    def holding(self) -> list[Any]:
        return [link for link in self.bench.engine.shard.links.values() if link.unsettled]

    @precondition(lambda self: self.holding())
    @rule(data=st.data(), outcome=OUTCOMES)
    def settle(self, data: st.DataObject, outcome: Outcome) -> None:
        link = self.holding()[data.draw(st.integers(0, len(self.holding()) - 1))]
        tags = data.draw(st.lists(st.sampled_from(sorted(link.unsettled)), min_size=1, unique=True))
        self.bench.settle(*tags, link=link.number, peer=link.peer.number, outcome=outcome)

    @precondition(lambda self: self.bench.engine.shard.links)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        numbers = sorted({link.peer.number for link in self.bench.engine.shard.links.values()})
        self.bench.apply(c.PeerLost(data.draw(st.sampled_from(numbers))))
        self.bench.flush()

    @precondition(lambda self: self.holding())
    @rule(data=st.data(), kinds=st.lists(levels, max_size=3), verb=st.sampled_from((Verb.PREPARE, Verb.PREPARE, Verb.COMMIT_ONE)))
    def branch(self, data: st.DataObject, kinds: list[Reliability], verb: Verb) -> None:
        link = self.holding()[data.draw(st.integers(0, len(self.holding()) - 1))]
        peer, xid = link.peer.number, f"1.aa.{self.sent:04}"
        self.sent += 1
        self.bench.apply(c.BeginBranch(peer, b"t", xid, None, 0, None))
        for level in kinds:
            message = Message(Header(b"colour:red", 4, level, 0, Encoding.STOMP), b"m%d" % self.sent, 12)
            self.bench.apply(c.Transacted(peer, b"t", c.Send(peer, None, QUEUE, message)))
        tag = data.draw(st.sampled_from(sorted(link.unsettled)))
        self.bench.apply(c.Transacted(peer, b"t", c.Settle(peer, link.number, [tag])), c.EndBranch(peer, xid, verb, None))
        self.bench.flush()
        if verb is Verb.PREPARE:
            self.branches.append(xid)

    @precondition(lambda self: self.branches)
    @rule(data=st.data(), verb=st.sampled_from((Verb.COMMIT, Verb.ROLL_BACK)))
    def ends(self, data: st.DataObject, verb: Verb) -> None:
        xid = data.draw(st.sampled_from(self.branches))
        self.branches.remove(xid)
        self.bench.apply(c.EndBranch(1, xid, verb, None))
        self.bench.flush()

    @rule(ms=st.sampled_from((1, 60, 500)))
    def time_passes(self, ms: int) -> None:
        self.bench.passes(ms)

    @rule()
    def checkpoint(self) -> None:
        self.bench.flush(report=True)

    @rule(address=addresses)
    def purge(self, address: str) -> None:
        self.bench.control("purge", address)

    @precondition(lambda self: self.bench.engine.shard.records.known)
    @rule(data=st.data(), verb=st.sampled_from(("undo", "undo", "give_up")))
    def undo(self, data: st.DataObject, verb: str) -> None:
        record = data.draw(st.sampled_from(list(self.bench.engine.shard.records.known.values())))
        assert self.bench.control(verb, record.address, undo=record.number)["undo"] == record.number

    @rule(direction=st.sampled_from(("CONSUMERS", "PRODUCERS", "ALL")), verb=st.sampled_from(("pause", "resume", "resume")))
    def pause(self, direction: str, verb: str) -> None:
        self.bench.control(verb, QUEUE, **({"direction": direction} if verb == "pause" else {}))

    @rule(again=st.booleans())
    def recovers(self, again: bool) -> None:
        before = picture(self.bench)
        self.bench.start()
        assert picture(self.bench) == before
        if again:
            self.bench.flush(report=True)
            self.bench.start()
            assert picture(self.bench) == before

    # -- the end ------------------------------------------------------------------------------------------------------------------------------
    def teardown(self) -> None:
        """Each subscription has exactly what was unsettled."""
        self.recovers(again=True)
        for xid in self.branches:
            self.bench.apply(c.EndBranch(1, xid, Verb.ROLL_BACK, None))
        self.bench.flush()
        self.bench.control("resume", QUEUE)
        self.bench.passes(60_000)
        self.bench.flush()
        owed = {s.number: s.depth for address in (QUEUE, TOPIC) for s in self.bench.destination(address).subscriptions if s.durable}
        self.bench.attach(999, credit=10_000)
        for name in DURABLE:
            self.subscribe(name, credit=10_000)
        shard = self.bench.engine.shard
        while self.bench.reads or shard.unfinished or shard.unserved or shard.scanning:
            self.bench.read()
            self.bench.passes(50)
        found = {link.subscription.number: len(link.unsettled) for link in self.bench.engine.shard.links.values()}
        assert found == owed


Recoveries.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
TestRecoveries = Recoveries.TestCase
