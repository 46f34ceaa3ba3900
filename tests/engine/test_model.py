"""The engine, with tiny limits and a crash now and then, against a naive broker: any history of sends, settlements, losses and pauses."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker_core.engine import commands as c
from broker_core.engine.settings import Settings
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Delivered, Output
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import EVERYTHING, Filter
from tests.engine.histories import undo
from tests.engine.naive import NaiveBroker, NaiveLink
from tests.engine.rig import DEAD, EXPRESS, QUEUE, Bench

OUTCOMES = {
    "accepted": Outcome.ACCEPTED, "released": Outcome.RELEASED, "unused": Outcome.UNUSED, "rejected": Outcome.REJECTED, "failed": Outcome.FAILED,
}  # fmt: skip
MAXIMUM = 1
COLOURS = ("red", "green", "blue")


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        rules = Settings(redelivery_max=MAXIMUM, redelivery_delay_ms=0)
        small = {"page_rows": 3, "window_rows": 4, "segment_rows": 6, "memory_octets": 300, "page_octets": 128, "looks": 7, "scan_rows": 2, "scan_positions": 5}
        self.bench = Bench(settings=rules, compact_below=0.5, undo_ms=60_000, **small)
        self.naive = NaiveBroker(MAXIMUM)
        self.peers = 1
        self.bench.control("create", QUEUE)

    def hear(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Delivered):
                for tag, message in enumerate(output.messages, output.tag):
                    self.naive.deliver(output.link, tag, self.bench.body(message), redelivered=message.redelivered)

    # -- what may happen ------------------------------------------------------------------------------------------------------------------
    @rule(count=st.integers(1, 9), priority=st.sampled_from((1, 4, 4, 9)), stored=st.booleans(), colour=st.sampled_from(COLOURS))
    def send(self, count: int, priority: int, stored: bool, colour: str) -> None:
        names = [f"m{len(self.naive.messages) + number}" for number in range(count)]
        for name in names:
            self.naive.send(name, priority, stored=stored, colour=colour)
        self.hear(self.bench.send(*names, priority=priority, level=4 if stored else EXPRESS, size=12, properties={"colour": colour}))

    @rule(
        credit=st.sampled_from((1, 2, 5, 20)),
        exclusive=st.sampled_from((False, False, False, True)),
        priority=st.sampled_from((0, 0, 0, 3, -1)),
        colour=st.sampled_from(("", "", *COLOURS)),
        threshold=st.sampled_from((100, 100, 50, 1)),
    )
    def attach(self, credit: int, exclusive: bool, priority: int, colour: str, threshold: int) -> None:
        self.peers += 1
        self.naive.links[self.peers] = NaiveLink(self.peers, credit, exclusive, priority, colour, threshold)
        wanted = Filter(compile_selector(f"colour = '{colour}'")) if colour else EVERYTHING
        attach = c.Attach(self.peers, self.peers, QUEUE, credit=credit, exclusive=exclusive, priority=priority, wanted=wanted)
        attach.threshold = threshold
        self.bench.apply(c.Open(self.peers, "guest"), attach)
        self.hear(self.bench.flush())

    @precondition(lambda self: any(link.held for link in self.naive.links.values()))
    @rule(data=st.data(), outcome=st.sampled_from(["accepted", "accepted", *OUTCOMES]))
    def settle(self, data: st.DataObject, outcome: str) -> None:
        number = data.draw(st.sampled_from([number for number, link in self.naive.links.items() if link.held]))
        held = sorted(self.naive.links[number].held)
        tags = data.draw(st.lists(st.sampled_from(held), min_size=1, unique=True))
        self.naive.settle(number, tags, outcome)
        self.hear(self.bench.settle(*tags, link=number, peer=number, outcome=OUTCOMES[outcome]))

    @precondition(lambda self: any(link.held for link in self.naive.links.values()))
    @rule(data=st.data())
    def settle_up_to(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([number for number, link in self.naive.links.items() if link.held]))
        held = sorted(self.naive.links[number].held)
        upto = data.draw(st.sampled_from(held))
        self.naive.settle(number, [tag for tag in held if tag <= upto], "accepted")
        self.hear(self.bench.settle(link=number, peer=number, upto=upto))

    @precondition(lambda self: self.naive.links)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.naive.links)))
        self.naive.lose_link(number)
        self.bench.apply(c.PeerLost(number))
        self.hear(self.bench.flush())

    @rule()
    def report(self) -> None:
        self.hear(self.bench.flush(report=True))

    @rule(pause=st.booleans())
    def pause(self, pause: bool) -> None:
        self.naive.paused = pause
        number = self.bench.database.request("pause", QUEUE)
        self.bench.apply(c.Control(number, "pause" if pause else "resume", QUEUE, {"direction": "CONSUMERS"}))
        self.hear(self.bench.flush())

    @rule()
    def purge(self) -> None:
        assert self.bench.control("purge", QUEUE)["purged"] == self.naive.purge()

    @precondition(lambda self: self.naive.purged)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.naive.purged) - 1))
        self.hear(undo(self.bench, self.naive, number))

    @rule()
    def look(self) -> None:
        """A browser sees all that is not settled, wherever it is, and nothing of it is changed."""
        assert self.bench.browse(999) == self.naive.shown()
        self.bench.apply(c.Detach(1, 999))

    @rule()
    def crash(self) -> None:
        self.naive.crash()
        self.bench.start()

    # -- what always holds ----------------------------------------------------------------------------------------------------------------
    @invariant()
    def nothing_is_lost_or_made_up(self) -> None:
        assert self.bench.depth() == self.naive.depth
        for number, link in self.naive.links.items():
            held = self.bench.engine.shard.links[number].unsettled
            assert {tag: message.name for tag, message in link.held.items()} == {tag: self.bench.body(message) for tag, message in held.items()}

    @invariant()
    def nobody_waits_for_what_there_is(self) -> None:
        assert not self.naive.owes()

    @invariant()
    def the_dead_are_in_the_dead_message_queue(self) -> None:
        died = [m for m in self.naive.messages.values() if m.state == "dead"]
        assert self.bench.depth(DEAD) <= len(died)
        assert self.bench.depth(DEAD) >= sum(m.stored for m in died)


Histories.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
TestHistories = Histories.TestCase
