"""A seeded history of one queue: what may happen to it, whatever its consumers ask for; every answer of the engine is compared with a naive broker's."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Output
from tests.engine.rig import QUEUE, Bench

OUTCOMES = {
    "accepted": Outcome.ACCEPTED, "released": Outcome.RELEASED, "unused": Outcome.UNUSED, "rejected": Outcome.REJECTED, "failed": Outcome.FAILED,
}  # fmt: skip


def undo(bench: Bench, naive: Any, number: int) -> list[Output]:
    """The naive broker's purge of that number comes back, and what is delivered of it."""
    kept = list(bench.engine.shard.records.known)
    assert len(kept) == len(naive.purged)
    back = naive.undo(number)
    request = bench.database.request("undo", QUEUE, {"undo": kept[number]})
    bench.apply(c.Control(request, "undo", QUEUE, {"undo": kept[number]}))
    heard = bench.flush()
    assert bench.database.answer(request) == (True, {"undo": kept[number], "restored": back})
    return heard


class QueueHistory:
    """Who derives from it says how messages are sent, how consumers join, and what the naive broker makes of it. Peers and their links have one number."""

    def __init__(self, random: Random, bench: Bench, naive: Any) -> None:
        self.random, self.bench, self.naive = random, bench, naive
        self.peers = 1
        self.counts: Counter[str] = Counter()
        self.bench.control("create", QUEUE)

    def play(self, count: int) -> None:
        """So many things happen, then everything is consumed."""
        steps = {self.send: 16, self.attach: 3, self.settle: 24, self.read: 24, self.leave: 2, self.report: 4, self.purge: 0.3, self.undo: 0.3, self.crash: 0.3}
        for _ in range(count):
            self.random.choices(list(steps), list(steps.values()))[0]()
            self.check()
        self.drain()

    def check(self) -> None:
        assert self.bench.depth() == self.naive.depth
        for number, link in self.naive.links.items():
            held = self.bench.engine.shard.links[number].unsettled
            assert {tag: message.name for tag, message in link.held.items()} == {tag: self.bench.body(message) for tag, message in held.items()}

    def threshold(self) -> int:
        """Of the consumer that is to join, percent of its credit."""
        return (100, 100, 50, 1)[self.peers % 4]

    # -- of those who derive from it ------------------------------------------------------------------------------------------------------
    def hear(self, outputs: list[Output]) -> None:
        raise NotImplementedError

    def send(self) -> None:
        raise NotImplementedError

    def attach(self) -> None:
        raise NotImplementedError

    def end(self, number: int, tags: list[int], outcome: str) -> None:
        raise NotImplementedError

    def drain(self) -> None:
        raise NotImplementedError

    # -- what may happen ------------------------------------------------------------------------------------------------------------------
    def settle(self) -> None:
        holders = [number for number, link in self.naive.links.items() if link.held]
        if holders:
            number = self.random.choice(holders)
            held = list(self.naive.links[number].held)
            self.end(number, self.random.sample(held, self.random.randint(1, len(held))), self.random.choice(["accepted", "accepted", *OUTCOMES]))

    def read(self) -> None:
        self.random.shuffle(self.bench.reads)
        self.bench.now += self.random.choice((0, 0, 1, 5))
        self.bench.read(self.random.choice((1, 1, None)))
        self.hear(self.bench.flush())

    def leave(self) -> None:
        if self.naive.links:
            self.lose(self.random.choice(list(self.naive.links)))

    def lose(self, number: int) -> None:
        self.naive.lose_link(number)
        self.bench.apply(c.PeerLost(number))
        self.hear(self.bench.flush())

    def report(self) -> None:
        self.hear(self.bench.flush(report=True))
        self.bench.maintain()

    def purge(self) -> None:
        assert self.bench.control("purge", QUEUE)["purged"] == self.naive.purge()

    def undo(self) -> None:
        if self.naive.purged:
            self.counts["undone"] += 1
            self.hear(undo(self.bench, self.naive, self.random.randrange(len(self.naive.purged))))

    def crash(self) -> None:
        self.naive.crash()
        self.bench.start()

    # -- the end --------------------------------------------------------------------------------------------------------------------------
    def settle_reads(self) -> None:
        while True:
            self.bench.now += 50
            self.hear(self.bench.flush())
            shard = self.bench.engine.shard
            if not (self.bench.reads or shard.unfinished or shard.scanning or shard.unserved):
                return
            self.bench.read()

    def take_all(self) -> None:
        """Whoever holds something acknowledges it, and gets more, until nobody holds anything; nobody who could receive waits meanwhile."""
        while any(link.held for link in self.naive.links.values()):
            for number, link in self.naive.links.items():
                if link.held:
                    self.end(number, list(link.held), "accepted")
            self.settle_reads()
            assert not self.naive.owes()
