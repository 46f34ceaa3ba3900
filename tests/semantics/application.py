"""An application with the client runtime at one end and the real node at the other, on virtual time. What either says on the wire is written down."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from broker_core.client import AcknowledgeMode, JMSException, Message, Queue, TextMessage, Topic
from broker_core.client.machine import Confirmation, ConnectionMachine, ConsumerMachine, Phase, ProducerMachine, SessionMachine, Subscription
from broker_core.client.settings import Settings
from broker_core.stomp.frames import Parser
from broker_core.stomp.sections import CLIENT_COMMANDS, SERVER_COMMANDS
from tests.client.broker import LIMITS, frames_in, short
from tests.server.rig import START, Broker, turns

AUTO, CLIENT, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE, TRANSACTED = (
    AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.NO_ACKNOWLEDGE,
    AcknowledgeMode.SESSION_TRANSACTED,
)  # fmt: skip
Q = Queue("q")
T = Topic("t")


class Application:
    """`wire` is what was said, in order: `> SEND /queue/q?` by the client, `< RECEIPT of SEND /queue/q` by the broker. Several applications may
    write into one."""

    def __init__(self, node: Broker, wire: list[str] | None = None, client_id: str = "", **settings: Any) -> None:
        self.node = node
        self.wire = [] if wire is None else wire
        self.payloads: list[tuple[str, int]] = []
        """Of every frame the command, and the octets of its body."""
        self.machine = ConnectionMachine(Settings(**({"ping_interval": 0.0} | settings)), "guest", "guest", client_id)
        self.machine.owner = self
        self._socket = node.connect()
        self._taken = 0
        self._writes, self._reads = Parser(LIMITS, CLIENT_COMMANDS), Parser(LIMITS, SERVER_COMMANDS)
        self._asked: dict[str, str] = {}

    @classmethod
    async def connected(cls, node: Broker, wire: list[str] | None = None, client_id: str = "", **settings: Any) -> Self:
        made = cls(node, wire, client_id, **settings)
        made.machine.connect("broker", made.now)
        await made.turn()
        assert made.machine.phase is Phase.OPEN, made.machine.failure
        made.wire.clear()
        made.payloads.clear()
        return made

    @property
    def now(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)

    # -- the wire -----------------------------------------------------------------------------------------------------------------------
    async def turn(self) -> None:
        """Both say what they have to say, until neither has anything."""
        machine, wire = self.machine, self._socket.wire
        while True:
            octets = machine.data_to_send()
            if octets:
                self._wrote(octets)
                self._socket.octets(octets)
            await turns()
            heard = b"" if machine.wants_pause else bytes(wire.heard[self._taken :])
            if heard:
                self._taken += len(heard)
                self._heard(heard)
                machine.receive_data(heard, self.now)
                while machine.has_more:
                    machine.proceed(self.now)
            if not octets and not heard:
                return

    def _wrote(self, octets: bytes) -> None:
        for frame in frames_in(self._writes, octets):
            self._writes.version = "1.2"
            if frame.receipt is not None:
                self._asked[frame.receipt] = short(frame).rstrip("?")
            self.wire.append(f"> {short(frame)}")
            self.payloads.append((frame.command, len(frame.body)))

    def _heard(self, octets: bytes) -> None:
        for section, _, body in self._reads.events(octets):
            self._reads.version = "1.2"
            headers = section.headers
            if section.command == "RECEIPT":
                said = f"RECEIPT of {self._asked[headers['receipt-id']]}"
            elif section.command == "MESSAGE":
                said = f"MESSAGE {(body or b'').decode()}" + (" again" if headers.get("redelivered") == "true" else "")
            else:
                said = section.command
            self.wire.append(f"< {said}")
            self.payloads.append((section.command, len(body or b"")))

    def said(self, command: str = "") -> list[str]:
        """Since the last time, by the client; only this command, if one is named."""
        frames = [line[2:] for line in self.wire if line.startswith(f"> {command}")]
        self.wire.clear()
        return frames

    async def passes(self, seconds: float) -> None:
        """So much time; the client does what is due when it is due."""
        until = self.now + round(seconds * 1000)
        while (due := self.machine.next_deadline()) <= until:
            await asyncio.sleep(max(0, due - self.now) / 1000)
            self.machine.tick(self.now)
            await self.turn()
        await asyncio.sleep(max(0, until - self.now) / 1000)
        self.machine.tick(self.now)
        await self.turn()

    async def dies(self) -> None:
        """The process is gone, and says nothing more."""
        self._socket.wire.lose()
        self.machine.lost(JMSException("killed", "CONNECTION_LOST"), self.now)
        await turns()

    # -- what it does -------------------------------------------------------------------------------------------------------------------
    def session(self, mode: AcknowledgeMode = AUTO) -> SessionMachine:
        session = self.machine.open_session(mode)
        session.owner = self
        return session

    async def consumer(self, session: SessionMachine, destination: Queue | Topic = Q, **what: Any) -> ConsumerMachine:
        consumer, confirmation = session.create_consumer(Subscription(destination=destination, **what))
        await self.turn()
        confirmation.check()
        assert confirmation.is_settled
        return consumer

    async def send(self, *bodies: str, destination: Queue | Topic = Q, **how: Any) -> list[Confirmation]:
        """What of it is waited for."""
        producer = ProducerMachine(self.session(), destination)
        waited = [producer.send(TextMessage(body), START, **how) for body in bodies]
        await self.turn()
        return [each for each in waited if each is not None]

    async def receive(self, consumer: ConsumerMachine) -> tuple[Message, Confirmation | None]:
        """The message, and what receive() waits for before it returns it."""
        taken = consumer.receive(self.now, START)
        assert taken is not None, f"there is no message: {self.wire}"
        await self.turn()
        return taken

    async def consume(self, consumer: ConsumerMachine, count: int) -> list[str]:
        return [(await self.receive(consumer))[0].body for _ in range(count)]

    def waiting(self, consumer: ConsumerMachine) -> list[str]:
        """What was delivered to it and not received; `again` behind what may have been delivered before."""
        found = []
        while (taken := consumer.next(START)) is not None:
            found.append(taken[0].body + (" again" if taken[0].jms_redelivered else ""))
        return found


async def node(earlier: Broker | None = None) -> Broker:
    """A node that serves. `earlier`: one that has ended; what it had stored is there."""
    return await Broker(earlier.database if earlier is not None else None).start()


def depth(node: Broker, destination: Queue | Topic = Q) -> int:
    """Messages that are not acknowledged, over all subscriptions, as the broker counts them."""
    found = node.engine.shard.destinations.get(destination.address[1:])
    return found.depth if found is not None else 0
