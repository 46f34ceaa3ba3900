"""Message groups with everything else that may happen to a queue, reads answered late and in between: seeded histories against a naive broker."""

from __future__ import annotations

from random import Random

import pytest

from broker_core.engine import commands as c
from broker_core.engine.settings import Settings
from broker_core.engine.outputs import Delivered, Output
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import EVERYTHING, Filter
from tests.engine.histories import OUTCOMES, QueueHistory
from tests.engine.naive import NaiveLink
from tests.engine.naive_groups import GroupedBroker
from tests.engine.rig import EXPRESS, QUEUE, RELIABLE, Bench
from tests.support.seeds import soon

SEEDS = 84
FOUND = (171, 214)
"""Whose last message of a group came back, and closed the one that came after."""
STEPS = 200
MAXIMUM = 2
COLOURS = ("red", "green", "blue")
GROUPS = ("", "a", "a", "b", "b", "c", "d", "e")
SMALL = {"page_rows": 4, "segment_rows": 12, "page_octets": 400, "looks": 9, "scan_rows": 3, "scan_positions": 6}


class History(QueueHistory):
    """An odd seed has selective consumers, every third a redelivery delay, every fourth a small window, every fifth few names, every
    seventh short flushes."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.selective = seed % 2 == 1
        delay = 40 * (seed % 3 == 0)
        window = 5 if seed % 4 == 0 else 1000
        few = {"subscription_groups_max": 2} if seed % 5 == 0 else {}
        short = {"deliveries": 6} if seed % 7 == 0 else {}
        self.closing = "" if few else "e"  # what shares its owner is not closed
        rules = Settings(redelivery_max=MAXIMUM, redelivery_delay_ms=delay, redelivery_multiplier=1.0)
        memory = random.choice((300, 1 << 20))
        bench = Bench(slow=True, settings=rules, compact_below=0.5, undo_ms=600_000, memory_octets=memory, window_rows=window, **few, **short, **SMALL)
        super().__init__(random, bench, GroupedBroker(MAXIMUM, delay, window))

    def hear(self, outputs: list[Output]) -> None:
        self.naive.wake(self.bench.now)
        for output in outputs:
            if isinstance(output, Delivered):
                for tag, message in enumerate(output.messages, output.tag):
                    self.counts["of groups"] += message.header.group is not None
                    self.naive.deliver(output.link, tag, self.bench.body(message), redelivered=message.redelivered)

    def check(self) -> None:
        super().check()
        aside = sum(len(cursor.aside) for cursor in self.bench.destination().subscriptions[0].order)
        self.counts["set aside"] += len(self.naive.links) * aside

    # -- what may happen ------------------------------------------------------------------------------------------------------------------
    def send(self) -> None:
        priority, stored = self.random.choice((4, 4, 4, 8)), self.random.random() < 0.8
        for _ in range(self.random.choice((1, 2, 5, 12))):
            name, colour, group = f"m{len(self.naive.messages)}", self.random.choice(COLOURS), self.random.choice(GROUPS)
            closes = group != "" and group == self.closing and self.random.random() < 0.3
            if group == self.closing:
                priority, stored, colour = 4, True, "red"
            self.naive.send_grouped(name, priority, stored=stored, colour=colour, group=group, closes=closes)
            level = RELIABLE if stored else EXPRESS
            self.hear(self.bench.send(name, priority=priority, level=level, size=20, properties={"colour": colour}, group=group, closes=closes))

    def attach(self) -> None:
        if len(self.naive.links) < 5:
            colour = self.random.choice(("", "red", "red", "green")) if self.selective else ""
            self.join(self.random.choice((1, 2, 5, 20)), colour, exclusive=self.random.random() < 0.05, priority=self.random.choice((0, 0, 0, 3)))

    def join(self, credit: int, colour: str = "", *, exclusive: bool = False, priority: int = 0) -> None:
        self.peers += 1
        threshold = self.threshold()
        self.naive.join(self.peers, NaiveLink(self.peers, credit, exclusive, priority, colour, threshold))
        wanted = Filter(compile_selector(f"colour = '{colour}'")) if colour else EVERYTHING
        attach = c.Attach(self.peers, self.peers, QUEUE, credit=credit, wanted=wanted, exclusive=exclusive, priority=priority, threshold=threshold)
        self.bench.apply(c.Open(self.peers, "guest"), attach)
        self.hear(self.bench.flush())

    def end(self, number: int, tags: list[int], outcome: str) -> None:
        self.naive.settle(number, tags, outcome, self.bench.now)
        self.hear(self.bench.settle(*tags, link=number, peer=number, outcome=OUTCOMES[outcome]))

    # -- the end --------------------------------------------------------------------------------------------------------------------------
    def drain(self) -> None:
        """Whoever is there takes all that he may, until nothing is left; one more has joined, for what nobody else takes."""
        self.settle_reads()
        assert not self.naive.owes()
        for number in [number for number, link in self.naive.links.items() if link.exclusive]:
            self.lose(number)
        self.join(50)
        self.settle_reads()
        self.take_all()
        assert self.naive.depth == 0
        assert (self.bench.depth(), self.bench.destination().octets) == (0, 0)
        for number in list(self.naive.links):
            self.lose(number)
        subscription = self.bench.destination().subscriptions[0]
        assert sum(cursor.octets for cursor in subscription.order) == 0
        assert (subscription.owners, self.bench.engine.shard.owned) == (None, 0)

@pytest.mark.parametrize("seed", [*FOUND, *soon(range(SEEDS), 24)])
def test_a_group_has_one_consumer_at_a_time_and_nobody_starves(seed: int) -> None:
    history = History(seed)
    history.play(STEPS)
    assert history.counts["of groups"] > 0


def test_in_some_histories_messages_are_set_aside_for_owners_without_room() -> None:
    histories = [History(seed) for seed in range(8)]
    for history in histories:
        history.play(STEPS)
    assert sum(history.counts["set aside"] > 0 for history in histories) > 3
