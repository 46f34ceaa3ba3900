"""Selective and other consumers of one queue, with reads that are answered late and in between: seeded histories against the naive broker."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from broker_core.engine import commands as c
from broker_core.engine.destination import Settings
from broker_core.engine.effects import Delivered, Outcome, Output
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import EVERYTHING, Filter
from tests.engine.naive import NaiveBroker, NaiveLink
from tests.engine.rig import EXPRESS, QUEUE, RELIABLE, Bench

SEEDS = 60
STEPS = 250
MAXIMUM = 2
COLOURS = ("red", "red", "green", "blue", "grey", "grey", "grey")
SMALL = {"page_rows": 4, "window_rows": 5, "segment_rows": 12, "page_octets": 400, "looks": 9, "scan_rows": 3, "scan_positions": 6}
OUTCOMES = {"accepted": Outcome.ACCEPTED, "released": Outcome.RELEASED, "rejected": Outcome.REJECTED, "failed": Outcome.FAILED}


class History:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        rules = Settings(redelivery_max=MAXIMUM, redelivery_delay_ms=0)
        self.bench = Bench(slow=True, settings=rules, compact_below=0.5, memory_octets=self.random.choice((300, 1 << 20)), **SMALL)
        self.naive = NaiveBroker(MAXIMUM)
        self.peers = 1
        self.counts: Counter[str] = Counter()
        self.bench.control("create", QUEUE)

    def play(self) -> None:
        steps = {self.send: 16, self.attach: 3, self.settle: 24, self.read: 24, self.leave: 2, self.report: 4, self.purge: 0.2, self.crash: 0.3}
        for _ in range(STEPS):
            self.random.choices(list(steps), list(steps.values()))[0]()
            self.check()
        self.drain()

    def hear(self, outputs: list[Output]) -> None:
        for output in outputs:
            if isinstance(output, Delivered):
                link = self.naive.links[output.link]
                self.counts["to selective ones" if link.colour else "to others"] += len(output.messages)
                for tag, message in enumerate(output.messages, output.tag):
                    self.naive.deliver(output.link, tag, self.bench.body(message), redelivered=message.redelivered)

    def check(self) -> None:
        assert self.bench.depth() == self.naive.depth
        for number, link in self.naive.links.items():
            held = self.bench.engine.shard.links[number].unsettled
            assert {tag: message.name for tag, message in link.held.items()} == {tag: self.bench.body(message) for tag, message in held.items()}

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
        self.naive.links[self.peers] = NaiveLink(self.peers, credit, colour=colour)
        wanted = Filter(compile_selector(f"colour = '{colour}'")) if colour else EVERYTHING
        self.bench.apply(c.Open(self.peers, "guest"), c.Attach(self.peers, self.peers, QUEUE, credit=credit, wanted=wanted))
        self.hear(self.bench.flush())

    def settle(self) -> None:
        holders = [number for number, link in self.naive.links.items() if link.held]
        if holders:
            number = self.random.choice(holders)
            held = list(self.naive.links[number].held)
            self.end(number, self.random.sample(held, self.random.randint(1, len(held))), self.random.choice(["accepted", "accepted", *OUTCOMES]))

    def end(self, number: int, tags: list[int], outcome: str) -> None:
        self.naive.settle(number, tags, outcome)
        self.hear(self.bench.settle(*tags, link=number, peer=number, outcome=OUTCOMES[outcome]))

    def read(self) -> None:
        self.random.shuffle(self.bench.reads)
        self.bench.now += self.random.choice((0, 0, 1, 5))
        self.bench.read(self.random.choice((1, 1, None)))
        self.hear(self.bench.flush())

    def leave(self) -> None:
        if self.naive.links:
            number = self.random.choice(list(self.naive.links))
            self.naive.lose_link(number)
            self.bench.apply(c.PeerLost(number))
            self.hear(self.bench.flush())

    def report(self) -> None:
        self.hear(self.bench.flush(report=True))
        self.bench.maintain()

    def purge(self) -> None:
        assert self.bench.control("purge", QUEUE)["purged"] == self.naive.purge()

    def crash(self) -> None:
        self.naive.crash()
        self.bench.start()

    # -- the end --------------------------------------------------------------------------------------------------------------------------
    def drain(self) -> None:
        self.settle_reads()
        assert not self.naive.owes()
        self.join(50, "")
        self.settle_reads()
        while any(link.held for link in self.naive.links.values()):
            for number, link in self.naive.links.items():
                if link.held:
                    self.end(number, list(link.held), "accepted")
            self.settle_reads()
        assert self.naive.waiting() == []
        assert (self.bench.depth(), self.bench.destination().octets) == (0, 0)
        for scan in [scan for cursor in self.bench.destination().subscriptions[0].order for scan in cursor.scans]:
            assert not scan.is_behind
        for number in list(self.naive.links):
            self.naive.lose_link(number)
            self.bench.apply(c.PeerLost(number))
        self.bench.flush()
        assert sum(cursor.octets for cursor in self.bench.destination().subscriptions[0].order) == 0

    def settle_reads(self) -> None:
        while True:
            self.bench.now += 50
            self.hear(self.bench.flush())
            shard = self.bench.engine.shard
            if not self.bench.reads and not shard.unfinished and not shard.scanning:
                return
            self.bench.read()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_everyone_gets_what_he_wants_and_nobody_what_another_has(seed: int) -> None:
    history = History(seed)
    history.play()
    assert min(history.counts["to selective ones"], history.counts["to others"]) > 0
