"""A ledger such as a broker under load writes: queues with consumers, messages accepted, offered, settled, some failed and dead, in commits of some ranges."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from broker_core.engine.outcome import Outcome
from tests.pipeline.ledgers import LedgerDatabase

LANE = 4


@dataclass(slots=True)
class Shape:
    """What traffic it is."""

    destinations: int = 20
    ranges: int = 8
    """Queues that one commit concerns."""
    run: int = 20
    """Messages of a range, at the most."""
    failing: float = 0.01
    """How many of the ranges have a delivery that fails."""
    seed: int = 1


@dataclass(slots=True)
class _Queue:
    accepted: int = 0
    offered: int = 0
    settled: int = 0


@dataclass(slots=True)
class _Traffic:
    queues: dict[int, _Queue] = field(default_factory=dict)


def fill(database: LedgerDatabase, shape: Shape, events: int) -> int:
    """Append commits with at least so many events, octets not counted; positions go on where an earlier call was. The number of events."""
    chance = random.Random(shape.seed + database.number)
    traffic: _Traffic = database.__dict__.setdefault("traffic", _Traffic())
    for number in range(1, shape.destinations + 1):
        if number not in traffic.queues:
            traffic.queues[number] = _Queue()
            database.queue(number, number, f"queue/load.{number}")
    made = 0
    with database.connection.transaction():
        while made < events:
            accepted, offered, settled, failures = [], [], [], []
            for number in chance.sample(sorted(traffic.queues), min(shape.ranges, len(traffic.queues))):
                queue = traffic.queues[number]
                count = chance.randint(1, shape.run)
                accepted.append((number, LANE, queue.accepted, queue.accepted + count - 1))
                queue.accepted += count
                if queue.offered > queue.settled:
                    last = queue.offered - 1
                    outcome = Outcome.UNDELIVERABLE if chance.random() < shape.failing / 10 else Outcome.ACCEPTED
                    settled.append((number, LANE, queue.settled, last, outcome))
                    if chance.random() < shape.failing:
                        failures.append((number, LANE, last, 1))
                    queue.settled = queue.offered
                offered.append((number, LANE, queue.offered, queue.accepted - 1, number))
                queue.offered = queue.accepted
            database.commit(accepted=accepted, offered=offered, settled=settled, failures=failures)
            made += len(accepted) + len(offered) + len(settled) + len(failures)
    return made
