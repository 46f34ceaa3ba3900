"""Sessions of the database that send within their own transactions (R17): a number is taken when a message is sent, and its row is there when the
transaction has ended, which may be later than that of others, or never."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker_core.engine.commands import TakeOver
from broker_core.engine.message import Encoding, Header, Message
from broker_core.stomp.escaping import canonical

from .audit import Known
from .clients import PRIORITIES, QUEUES, Client
from .session import COLOURS, LEVELS, TOPIC, owed

if TYPE_CHECKING:
    from .world import World


class Outsider(Client):
    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self._orders = 0

    async def run(self) -> None:
        """It needs no node."""
        random = self.random
        while not self.stopping:
            await asyncio.sleep(random.random() * 0.200)
            sent = [self._send() for _ in range(random.choice((1, 1, 2, 5, 9)))]
            await asyncio.sleep(random.random() * random.choice((0.002, 0.100)))
            if random.random() < 0.2:
                self.world.counts["outsiders' transactions rolled back"] += 1
                continue
            for known, _ in sent:
                known.confirmed = True
                self.world.auditor.sends(known)
                self.world.log(("sent by SQL", known.uid, known.address))
            self.world.database.send(*(arrival for _, arrival in sent))
            self.world.counts["sent by SQL"] += len(sent)

    def _send(self) -> tuple[Known, TakeOver]:
        random, world, database = self.random, self.world, self.world.database
        address = random.choice((*QUEUES, TOPIC) if world.founded else QUEUES)
        level, priority, colour = random.choice((1, 3, 4, 4, 4)), random.choice(PRIORITIES), random.choice(COLOURS)
        entry, now = database.number(), world.now_ms()
        uid = f"m{self.name}.{self._orders}"
        body = (uid + " ").encode().ljust(40 + random.randrange(260), b"x")
        known = Known(uid, body, address, self.name, self._orders, level, priority, 0, owed=owed(address, priority), colour=colour, by_sql=True)
        known.delay = random.choice((3, 60, 150)) if random.random() < world.climate.delayed else 0
        known.due = now + known.delay if known.delay else 0
        self._orders += 1
        lines = canonical({"destination": f"/{address}", "reliability": LEVELS[level], "priority": str(priority), "colour": colour})
        header = Header(lines, priority, level, 0, Encoding.STOMP, f"ID:sim-sql-{entry}", delay=known.delay)
        return known, TakeOver(entry, address, Message(header, body, len(lines) + len(body)), now)
