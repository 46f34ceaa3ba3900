"""A client that speaks with the connection machine, and the engine behind it: frames in, frames out, time by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker_core.amqp.connection import Connection
from broker_core.amqp.frames import AMQP_HEADER, SASL_HEADER, ProtocolHeader, Reader, frame, sasl_frame
from broker_core.amqp.limits import Limits
from broker_core.amqp.mapping import decode
from broker_core.amqp.opening import Opening
from broker_core.amqp.performatives import (
    ACCEPTED, RECEIVER, SENDER, Attach, Begin, Coordinator, Declare, Declared, Detach, Discharge, Disposition, Flow, Open, Performative,
    SaslInit, Source, Target, Transfer,
)  # fmt: skip
from broker_core.amqp.composite import write_composite
from broker_core.amqp.incoming import BodyDropped, BodyPart
from broker_core.amqp.sasl import PLAIN, Login
from broker_core.amqp.sections import open_message
from broker_core.amqp.types import Symbol, ULong
from broker_core.engine import commands as c
from broker_core.engine.effects import Effects
from broker_core.engine.message import Encoding, Header, Message, Reliability, StoredBody
from tests.engine.rig import Bench

PEER = 7
SESSION = f"node1-1-{PEER}"
SELECTOR = (ULong(0x0000468C00000004), Symbol("apache.org:selector-filter:string"))
Cut = Callable[[bytes], list[bytes]]


def whole(octets: bytes) -> list[bytes]:
    return [octets]


def byte_by_byte(octets: bytes) -> list[bytes]:
    return [octets[at : at + 1] for at in range(len(octets))]


def convert(message: Message) -> tuple[bytes, bytes | StoredBody]:
    raise AssertionError("nothing of another protocol is here")


def message(body: bytes = b"hello", before: bytes = b"") -> bytes:
    """With one section of data."""
    return before + b"\0\x53\x75\xb0" + len(body).to_bytes(4, "big") + body


def body_of(payload: bytes) -> bytes:
    """Of a message with one section of data."""
    opening = open_message(payload)
    assert opening is not None
    return payload[opening.body_at :]


class Room(Bench):
    """A bench whose outputs are heard by clients."""

    def __init__(self, **how: Any) -> None:
        self.clients: list[Client] = []
        super().__init__(**how)

    def start(self) -> None:
        super().start()
        self.engine.shard.decode = decode

    def release(self, effects: Effects) -> None:
        for client in self.clients:
            client.machine.send([output for output in effects.outputs if output.peer == client.peer], self.now)
        super().release(effects)


class Client:
    """One client, its machine, and what is shared: a bench with the engine."""

    def __init__(
        self, bench: Room | None = None, cut: Cut = whole, limits: Limits | None = None, peer: int = PEER, mechanisms: tuple[str, ...] = (PLAIN,)
    ) -> None:
        self.bench = bench or Room()
        self.bench.clients.append(self)
        self.peer = peer
        self.cut = cut
        self.limits = limits or Limits()
        self.machine = Connection(peer, self.limits, "0.1.0", "node1", self.bench.now, mechanisms, convert)
        self.events: list[Any] = []
        """That were none for the engine."""
        self.bodies: dict[int, bytes] = {}
        """Large ones, as the store has them."""
        self._parts: dict[Any, bytes] = {}
        self._reader = Reader(1 << 20)
        self._reader._greeted = True
        self._next_delivery = 0

    # -- octets -------------------------------------------------------------------------------------------------------------------------
    def says(self, octets: bytes) -> None:
        """What comes of it goes to the engine, whose outputs come back."""
        for chunk in self.cut(octets):
            self.reads(chunk)
        while self.machine.unfinished:
            self.reads(b"")
        self.flush()

    def reads(self, octets: bytes) -> None:
        """The machine, once: the engine's outputs wait for a flush."""
        self._do(self.machine.receive_data(octets, self.bench.now))

    def _do(self, events: list[Any]) -> None:
        for event in events:
            if isinstance(event, BodyPart):
                self._parts[event.of.message] = self._parts.get(event.of.message, b"") + event.octets
            elif isinstance(event, BodyDropped):
                self._parts.pop(event.of.message, None)
            elif isinstance(event, c.Command):
                send = c.send_of(event)
                if send is not None and send.message.body is None:
                    octets = self._parts.pop(send.message)
                    self.bodies[len(self.bodies) + 1] = octets
                    send.message.keep_apart(len(self.bodies))
                self.bench.apply(event)
            else:
                self.events.append(event)

    def flush(self) -> None:
        """The engine's outputs, to whom they concern."""
        while True:
            self.bench.flush()
            commands = [command for client in self.bench.clients for command in client.machine.commands]
            for client in self.bench.clients:
                client.machine.commands = []
            if not commands:
                return
            self.bench.apply(*commands)

    def passes(self, ms: int) -> None:
        self.bench.now += ms
        self._do(self.machine.tick(self.bench.now))
        self.flush()

    def octets(self) -> bytes:
        return b"".join(self.machine.data_to_send())

    def hears(self) -> list[Any]:
        """Performatives; of transfers with their payloads."""
        heard: list[Any] = []
        for each in self._reader.receive(self.octets()):
            if isinstance(each, ProtocolHeader):
                heard.append(each)
            else:
                heard.append((each.performative, each.payload) if isinstance(each.performative, Transfer) else each.performative)
        return heard

    def hears_one(self, kind: type) -> Any:
        """The only one of that kind among what it hears."""
        found = [each for each in self.hears() if each.__class__ is kind]
        assert len(found) == 1, found
        return found[0]

    # -- the connection -----------------------------------------------------------------------------------------------------------------
    def logs_in(self) -> None:
        self.says(SASL_HEADER + sasl_frame(SaslInit(PLAIN, b"\0guest\0guest")))
        assert isinstance(self.events.pop(), Login)
        self.machine.accept("guest")
        self.says(AMQP_HEADER)

    def opens(self, container: str = "client", **how: Any) -> Client:
        """Open, and a session on channel 0."""
        self.logs_in()
        self.says(frame(0, Open(container, **how)))
        assert isinstance(self.events.pop(), Opening), self.machine.close_reason
        self.bench.apply(*self.machine.open(f"node1-1-{self.peer}", self.bench.now))
        self.begins()
        self.hears()
        return self

    def begins(self, channel: int = 0, window: int = 1000) -> None:
        self.says(frame(channel, Begin(None, 0, window, 1000)))

    def speaks(self, *performatives: Performative, channel: int = 0) -> list[Any]:
        """And hears."""
        self.says(b"".join(frame(channel, each) for each in performatives))
        return self.hears()

    # -- links --------------------------------------------------------------------------------------------------------------------------
    def consumes(self, address: str | None = "orders", handle: int = 0, credit: int = 100, *, name: str = "", channel: int = 0, **source: Any) -> list[Any]:
        """A link on which it receives; what it hears."""
        how = {each: source.pop(each) for each in ("snd_settle_mode", "rcv_settle_mode", "properties", "desired_capabilities", "unsettled") if each in source}
        attach = Attach(name or f"c{handle}", handle, RECEIVER, source=Source(address, **source), target=Target(), **how)
        said = [attach, *([self.grants(handle, credit)] if credit else [])]
        return self.speaks(*said, channel=channel)

    @staticmethod
    def grants(handle: int, credit: int, count: int | None = 0, *, drain: bool = False, echo: bool = False, window: int = 1000, seen: int = 0) -> Flow:
        return Flow(seen, window, 0, 1000, handle, count, credit, drain=drain, echo=echo)

    def produces(self, address: str | None = "orders", handle: int = 1, *, name: str = "", **how: Any) -> list[Any]:
        target = how.pop("target", Target(address))
        return self.speaks(Attach(name or f"p{handle}", handle, SENDER, source=Source(), target=target, initial_delivery_count=0, **how))

    def sends(self, octets: bytes, handle: int = 1, *, settled: bool = False, state: Any = None, more: bool = False) -> int:
        """One frame; its delivery-id."""
        number, self._next_delivery = self._next_delivery, self._next_delivery + 1
        self.says(frame(0, Transfer(handle, number, number.to_bytes(4, "big"), 0, settled, more, state=state), octets))
        return number

    def settles(self, first: int, last: int | None = None, state: Any = ACCEPTED, *, settled: bool = True) -> list[Any]:
        return self.speaks(Disposition(RECEIVER, first, last, settled, state))

    def detaches(self, handle: int, *, closed: bool = True) -> list[Any]:
        return self.speaks(Detach(handle, closed))

    # -- transactions -------------------------------------------------------------------------------------------------------------------
    def coordinates(self, handle: int = 9) -> list[Any]:
        return self.produces(handle=handle, target=Coordinator(("amqp:local-transactions",)))

    def declares(self, handle: int = 9) -> bytes:
        self.sends(b"\0\x53\x77" + write_composite(Declare()), handle)
        (answer,) = [each for each in self.hears() if isinstance(each, Disposition)]
        assert isinstance(answer.state, Declared), answer
        return answer.state.txn_id

    def discharges(self, transaction: bytes, *, fail: bool = False, handle: int = 9) -> Any:
        """The outcome."""
        number = self.sends(b"\0\x53\x77" + write_composite(Discharge(transaction, fail)), handle)
        return outcomes(self.hears())[number]


def publishes(client: Client, *names: str, address: str = "queue/orders", level: Reliability = Reliability.ASSURED, client_id: str = "") -> None:
    """Messages of one section of data, whoever sent them."""
    for name in names:
        octets = message(name.encode())
        header = Header(octets[: -len(name)], 4, level, encoding=Encoding.AMQP, client_id=client_id)
        client.bench.apply(c.Send(1, None, address, Message(header, name.encode(), len(octets))))
    client.flush()


def outcomes(heard: list[Any]) -> dict[int, Any]:
    """What a producer is told, by delivery-id."""
    told: dict[int, Any] = {}
    for each in heard:
        if isinstance(each, Disposition) and each.role == RECEIVER:
            for number in range(each.first, (each.first if each.last is None else each.last) + 1):
                told[number] = each.state
    return told


def bodies(heard: list[Any]) -> list[bytes]:
    """Of what was delivered whole."""
    return [body_of(each[1]) for each in heard if isinstance(each, tuple)]


def transfers(heard: list[Any]) -> list[Transfer]:
    return [each[0] for each in heard if isinstance(each, tuple)]


def credit_of(heard: list[Any], handle: int = 1) -> int | None:
    """The last that was given to a producer."""
    given = [each.link_credit for each in heard if isinstance(each, Flow) and each.handle == handle]
    return given[-1] if given else None


def limit_of(heard: list[Any], handle: int = 1) -> int:
    """How many messages the producer may have sent in all."""
    flow = [each for each in heard if isinstance(each, Flow) and each.handle == handle][-1]
    return int(flow.delivery_count + flow.link_credit)
