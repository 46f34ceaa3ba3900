"""All or none: any history of transactions over two queues, one of which is soon full, with crashes before, at and after commits, against a naive broker."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker_core.engine import commands as c
from broker_core.engine.message import STORED, Encoding, Header, Message, Reliability
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Confirmed, Delivered, Output
from broker_core.engine.refusal import Refusal
from broker_core.engine.settings import Settings
from tests.engine.naive_transactions import NaiveTransaction, NaiveTransactions, Place
from tests.engine.rig import Bench, now_of

WIDE, NARROW = "queue/wide", "queue/narrow"
LIMITS = {WIDE: 1_000, NARROW: 4}
PEERS = (1, 2, 3)
NAMES = ("a", "b")
CREDIT = 3
levels = st.sampled_from(list(Reliability))
queues = st.sampled_from((WIDE, NARROW, NARROW))


class Transactions(RuleBasedStateMachine):
    """Each peer has a link to each queue, and at most two transactions."""

    def __init__(self) -> None:
        super().__init__()
        rules = Settings(redelivery_max=-1, redelivery_delay_ms=0)
        self.bench = Bench(settings=rules, page_rows=3, window_rows=4, segment_rows=6)
        self.naive = NaiveTransactions(LIMITS)
        for queue, limit in LIMITS.items():
            self.bench.control("create", queue, max_messages=limit, limit_behavior="REJECT_NEWEST")
        self.links: dict[int, tuple[int, str]] = {}
        self.come(*PEERS)

    def come(self, *peers: int) -> None:
        for peer in peers:
            if peer not in self.bench.engine.shard.peers:
                self.bench.apply(c.Open(peer, "guest"))
            for number, queue in enumerate(LIMITS):
                link = 10 * peer + number
                self.links[link] = peer, queue
                self.bench.apply(c.Attach(peer, link, queue, credit=CREDIT))
        self.hear(self.bench.flush())

    def hear(self, outputs: list[Output]) -> list[object]:
        """Deliveries, and what was answered to the one who asks: True for done."""
        answers: list[object] = []
        for output in outputs:
            if isinstance(output, Delivered):
                for tag, message in enumerate(output.messages, output.tag):
                    self.naive.deliver((*self.links[output.link], tag), self.bench.body(message))
            elif isinstance(output, Confirmed):
                answers.append(output.token)
        return answers

    def transaction(self, data: st.DataObject) -> tuple[tuple[int, str], NaiveTransaction]:
        return data.draw(st.sampled_from(sorted(self.naive.open.items(), key=lambda item: item[0])))

    def sent(self, queue: str, level: Reliability, peer: int) -> tuple[c.Send, str]:
        name = f"m{self.naive.sent + 1}"
        return c.Send(peer, None, queue, Message(Header(b"", 4, level, 0, Encoding.STOMP), name.encode(), 10)), name

    def held_by(self, peer: int) -> list[Place]:
        return sorted(place for place in self.naive.held if place[0] == peer)

    def link(self, place: Place) -> int:
        return next(link for link, of in self.links.items() if of == place[:2])

    # -- outside of transactions ------------------------------------------------------------------------------------------------------------
    @rule(queue=queues, level=levels)
    def send(self, queue: str, level: Reliability) -> None:
        send, _ = self.sent(queue, level, 1)
        message = self.naive.made(queue, level)
        if self.naive.room(queue) > 0:
            self.naive.placed(message)
        self.bench.apply(send)
        self.hear(self.bench.flush())

    @precondition(lambda self: self.naive.held)
    @rule(data=st.data(), accepted=st.booleans())
    def settle(self, data: st.DataObject, accepted: bool) -> None:
        place = data.draw(st.sampled_from(sorted(self.naive.held)))
        self.naive.settle(place, accepted=accepted)
        outcome = Outcome.ACCEPTED if accepted else Outcome.RELEASED
        self.hear(self.bench.settle(place[2], link=self.link(place), peer=place[0], outcome=outcome))

    # -- transactions -----------------------------------------------------------------------------------------------------------------------
    @rule(peer=st.sampled_from(PEERS), name=st.sampled_from(NAMES))
    def begin(self, peer: int, name: str) -> None:
        if (peer, name) not in self.naive.open:
            self.naive.open[peer, name] = NaiveTransaction()
            self.bench.apply(c.Begin(peer, name.encode()))
            self.hear(self.bench.flush())

    @precondition(lambda self: self.naive.open)
    @rule(data=st.data(), sends=st.lists(st.tuples(queues, levels), min_size=1, max_size=4))
    def send_within(self, data: st.DataObject, sends: list[tuple[str, Reliability]]) -> None:
        (peer, name), transaction = self.transaction(data)
        for queue, level in sends:
            send, _ = self.sent(queue, level, peer)
            transaction.sends.append(self.naive.made(queue, level))
            self.bench.apply(c.Transacted(peer, name.encode(), send))
        self.hear(self.bench.flush())

    @precondition(lambda self: any(self.held_by(peer) for peer, _ in self.naive.open))
    @rule(data=st.data())
    def acknowledge_within(self, data: st.DataObject) -> None:
        (peer, name), transaction = data.draw(st.sampled_from([(key, t) for key, t in self.naive.open.items() if self.held_by(key[0])]))
        for place in data.draw(st.lists(st.sampled_from(self.held_by(peer)), min_size=1, unique=True)):
            self.naive.acknowledge(transaction, place)
            self.bench.apply(c.Transacted(peer, name.encode(), c.Settle(peer, self.link(place), [place[2]])))
        self.hear(self.bench.flush())

    @precondition(lambda self: self.naive.open)
    @rule(data=st.data(), commit=st.sampled_from((True, True, True, False)))
    def end(self, data: st.DataObject, commit: bool) -> None:
        key, _ = self.transaction(data)
        done = self.naive.end(key, commit=commit)
        self.bench.apply(c.End(key[0], key[1].encode(), commit, "ended"))
        outputs = self.bench.flush()
        assert ("ended" in self.hear(outputs)) == done
        assert self.bench.refused(outputs) == [] if done else [Refusal.DESTINATION_FULL]

    # -- failures ---------------------------------------------------------------------------------------------------------------------------
    @rule(peer=st.sampled_from(PEERS))
    def lose(self, peer: int) -> None:
        self.naive.lose(peer)
        self.bench.apply(c.PeerLost(peer))
        self.hear(self.bench.flush())
        self.come(peer)

    @rule(report=st.booleans())
    def crash(self, report: bool) -> None:
        self.bench.flush(report=report)
        self.naive.crash()
        self.bench.start()
        self.come(*PEERS)

    @precondition(lambda self: self.naive.open)
    @rule(data=st.data(), durable=st.booleans())
    def crash_at_a_commit(self, data: st.DataObject, durable: bool) -> None:
        """The store has made it, or not; nobody was told."""
        key, _ = self.transaction(data)
        self.naive.end(key, commit=durable)
        self.bench.apply(c.End(key[0], key[1].encode(), True, "ended"))
        effects = self.bench.engine.flush(self.bench.now)
        if durable and effects.commit is not None:
            now_of(self.bench.store.commit(effects.commit))
        self.naive.crash()
        self.bench.start()
        self.come(*PEERS)

    # -- what always holds --------------------------------------------------------------------------------------------------------------------
    @invariant()
    def what_is_there_is_what_was_committed(self) -> None:
        for queue in LIMITS:
            assert self.bench.depth(queue) == self.naive.depth(queue)

    @invariant()
    def who_holds_what_is_known(self) -> None:
        shard = self.bench.engine.shard
        held = {(*of, tag): self.bench.body(m) for link, of in self.links.items() for tag, m in shard.links[link].unsettled.items()}
        assert held == {place: message.name for place, message in self.naive.held.items()}

    def teardown(self) -> None:
        """What is left is what a new term finds, less what is volatile."""
        self.naive.crash()
        self.bench.start()
        for queue in LIMITS:
            self.bench.attach(99, address=queue)
            found = sorted(self.bench.body(message) for message in self.bench.engine.shard.links[99].unsettled.values())
            assert found == sorted(message.name for message in self.naive.messages.values() if message.queue == queue)
            assert all(message.level >= STORED for message in self.naive.messages.values())
            self.bench.apply(c.Detach(1, 99))


Transactions.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
TestTransactions = Transactions.TestCase
