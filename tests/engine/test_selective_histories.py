"""Selective and other consumers of one queue, with reads that are answered late and in between: seeded histories against the naive broker."""

from __future__ import annotations

from random import Random

import pytest

from broker_core.engine import commands as c
from broker_core.engine.settings import Settings
from broker_core.engine.outputs import Delivered, Output
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import EVERYTHING, Filter
from tests.engine.histories import OUTCOMES, QueueHistory
from tests.engine.naive import NaiveBroker, NaiveLink
from tests.engine.rig import EXPRESS, QUEUE, RELIABLE, Bench
from tests.support.seeds import soon

SEEDS = 60
STEPS = 250
MAXIMUM = 2
COLOURS = ("red", "red", "green", "blue", "grey", "grey", "grey")
SMALL = {"page_rows": 4, "window_rows": 5, "segment_rows": 12, "page_octets": 400, "looks": 9, "scan_rows": 3, "scan_positions": 6}


class History(QueueHistory):
    def __init__(self, seed: int) -> None:
        random = Random(seed)
        rules = Settings(redelivery_max=MAXIMUM, redelivery_delay_ms=0)
        bench = Bench(slow=True, settings=rules, compact_below=0.5, undo_ms=600_000, memory_octets=random.choice((300, 1 << 20)), **SMALL)
        super().__init__(random, bench, NaiveBroker(MAXIMUM))

    def hear(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Delivered):
                link = self.naive.links[output.link]
                self.counts["to selective ones" if link.colour else "to others"] += len(output.messages)
                for tag, message in enumerate(output.messages, output.tag):
                    self.naive.deliver(output.link, tag, self.bench.body(message), redelivered=message.redelivered)

    # -- what may happen ------------------------------------------------------------------------------------------------------------------
    def send(self) -> None:
        priority, stored = self.random.choice((4, 4, 4, 8)), self.random.random() < 0.8
        for _ in range(self.random.choice((1, 2, 5, 12))):
            name, colour = f"m{len(self.naive.messages)}", self.random.choice(COLOURS)
            self.naive.send(name, priority, stored=stored, colour=colour)
            self.hear(self.bench.send(name, priority=priority, level=RELIABLE if stored else EXPRESS, size=20, properties={"colour": colour}))

    def attach(self) -> None:
        if len(self.naive.links) < 5:
            self.join(self.random.choice((1, 2, 5, 20)), self.random.choice(("", "red", "red", "green", "blue")))

    def join(self, credit: int, colour: str) -> None:
        self.peers += 1
        self.naive.links[self.peers] = NaiveLink(self.peers, credit, colour=colour, threshold=self.threshold())
        wanted = Filter(compile_selector(f"colour = '{colour}'")) if colour else EVERYTHING
        self.bench.apply(c.Open(self.peers, "guest"), c.Attach(self.peers, self.peers, QUEUE, credit=credit, wanted=wanted, threshold=self.threshold()))
        self.hear(self.bench.flush())

    def end(self, number: int, tags: list[int], outcome: str) -> None:
        self.naive.settle(number, tags, outcome)
        self.hear(self.bench.settle(*tags, link=number, peer=number, outcome=OUTCOMES[outcome]))

    # -- the end --------------------------------------------------------------------------------------------------------------------------
    def drain(self) -> None:
        self.settle_reads()
        assert not self.naive.owes()
        self.join(50, "")
        self.settle_reads()
        self.take_all()
        assert self.naive.waiting() == []
        assert (self.bench.depth(), self.bench.destination().octets) == (0, 0)
        for scan in [scan for cursor in self.bench.destination().subscriptions[0].order for scan in cursor.scans]:
            assert not scan.is_behind
        for number in list(self.naive.links):
            self.lose(number)
        assert sum(cursor.octets for cursor in self.bench.destination().subscriptions[0].order) == 0

@pytest.mark.parametrize("seed", soon(range(SEEDS), 20))
def test_everyone_gets_what_he_wants_and_nobody_what_another_has(seed: int) -> None:
    history = History(seed)
    history.play(STEPS)
    assert min(history.counts["to selective ones"], history.counts["to others"]) > 0
