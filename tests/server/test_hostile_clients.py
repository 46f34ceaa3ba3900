"""Several clients that say anything at any time, cut anywhere, against a whole node: it goes on, its state stays sound, a healthy client is served."""

from __future__ import annotations

import asyncio
import random

import pytest

from broker_core.engine import Limits
from broker_core.engine.settings import Settings
from broker_core.engine.invariants import check
from broker_core.server import backlog, host
from broker_core.stomp import connection
from broker_core.stomp.frames import serialise
from broker_core.stomp.limits import Limits as StompLimits
from tests.stomp.plausible import Talk, mutated

from .conftest import Run
from .rig import Broker, Client, turns

LARGE = 1024
CLIENTS = 4
LIMITS = Limits(
    memory_octets=20_000, window_rows=20, page_rows=5, link_octets=8_000, transactions_max=2, transaction_messages_max=20,
    transaction_octets_max=10_000, settings=Settings(redelivery_delay_ms=100, redelivery_max=3),
)  # fmt: skip


class Hostile:
    """One that comes again under another connection whenever its former one has ended."""

    def __init__(self, broker: Broker, chance: random.Random, number: int) -> None:
        self.broker, self.chance, self.number = broker, chance, number
        self._begin()

    def _begin(self) -> None:
        chance = self.chance
        self.client: Client = self.broker.connect(reads=chance.random() < 0.8)
        self.client.version = chance.choice(("1.0", "1.1", "1.2", "1.2"))
        self._talk = Talk(chance, self.client.version.encode(), oddity=chance.choice((0, 0, 0.01)), large=LARGE + 1)
        self._corrupt = chance.random() < 0.1
        self._waiting = self._talk.connect(chance.choice((b"", b"c%d" % self.number)))

    def speaks(self) -> None:
        chance, wire = self.chance, self.client.wire
        if wire.gone:
            self._begin()
        elif chance.random() < 0.005:
            wire.lose()
        elif chance.random() < 0.05:
            wire.read_all()
        elif not wire.is_closing() and not wire.paused:
            self._hears()
            while len(self._waiting) < 3_000:
                self._waiting += self._talk.frame()
            size = chance.choice((1, 3, 100, 500, 3_000, self._waiting.find(b"\0") or 1))  # the last: its end comes in a packet of its own
            said = self._waiting[:size]
            self.client.octets(mutated(chance, said) if self._corrupt and chance.random() < 0.05 else said)
            self._waiting = self._waiting[size:]

    def _hears(self) -> None:
        for command, headers, _ in self.client.take():
            if command == "MESSAGE":
                wire = serialise("", [("message-id", headers["message-id"])], b"", self.client.version)
                self._talk.hears(int(headers["subscription"]), headers.get("ack", "").encode(), wire.split(b"\n")[1].partition(b":")[2])


@pytest.mark.parametrize("slices", ["large", "small"])
@pytest.mark.parametrize("seed", range(25))
def test_no_clients_bring_a_node_down(run: Run, monkeypatch: pytest.MonkeyPatch, seed: int, slices: str) -> None:
    chance = random.Random(seed)
    if slices == "small":
        for module, name in ((host, "SLICE_EFFORT"), (backlog, "TURN_EFFORT"), (connection, "EFFORT_MAX"), (connection, "FRAMES_MAX")):
            monkeypatch.setattr(module, name, chance.randrange(1, 50))

    async def story() -> None:
        broker = Broker()
        broker.stomp_limits = StompLimits(large_body_octets=LARGE, part_octets_max=4 * LARGE, unconfirmed_max=50)
        await broker.start(LIMITS)
        hostile = [Hostile(broker, chance, number) for number in range(CLIENTS)]
        for step in range(600):
            chance.choice(hostile).speaks()
            if chance.random() < 0.5:
                await turns(chance.randrange(1, 20))
            if chance.random() < 0.02:
                await asyncio.sleep(chance.choice((0.01, 0.2, 2, 40)))
            if broker.running.done():
                broker.running.result()
                pytest.fail(f"the node ended at step {step}")
        await asyncio.sleep(1)
        check(broker.engine)
        healthy = await broker.client("healthy")
        healthy.send(b"m", "1", "healthy")
        await turns(200)
        message, = (frame for frame in healthy.take() if frame[0] == "MESSAGE")
        healthy.ack(message, "2")
        await turns(200)
        assert healthy.receipts() == ["2"]
        await broker.end()

    run(story())
