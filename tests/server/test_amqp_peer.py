"""AMQP clients' sockets: a node without sockets and threads, on virtual time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from broker_core.amqp.connection import FRAMES_MAX
from broker_core.amqp.frames import AMQP_HEADER, EMPTY_FRAME, SASL_HEADER, Frame, Reader, frame, sasl_frame
from broker_core.amqp.performatives import (
    ACCEPTED, RECEIVER, SENDER, Attach, Begin, Close, Disposition, Flow, Open, SaslCode, SaslInit, SaslOutcome, Source, Target, Transfer,
)  # fmt: skip
from broker_core.engine import Limits
from broker_core.engine.settings import Settings
from broker_core.server.amqp_peer import AmqpPeer
from tests.amqp.conversation import body_of, message
from tests.server.rig import Broker, Wire, turns

Story = Callable[[Coroutine[Any, Any, None]], None]


class Client:
    def __init__(self, broker: Broker) -> None:
        self.wire = Wire()
        self.peer = self.wire.peer = AmqpPeer(broker.node)
        self._taken = 0
        self._reader = Reader(1 << 22)
        self._reader._greeted = True
        self.peer.connection_made(self.wire)

    async def says(self, octets: bytes) -> list[Any]:
        """What it hears then; of transfers with their payloads."""
        for at in range(0, len(octets), 100_000):
            self.peer.data_received(octets[at : at + 100_000])
            await turns(5)
        return await self.hears()

    async def hears(self) -> list[Any]:
        await turns()
        new, self._taken = bytes(self.wire.heard[self._taken :]), len(self.wire.heard)
        frames = [each for each in self._reader.receive(new) if isinstance(each, Frame)]
        return [(each.performative, each.payload) if isinstance(each.performative, Transfer) else each.performative for each in frames]

    async def opens(self, container: str = "client", login: str = "guest", **how: Any) -> Client:
        await self.says(SASL_HEADER + sasl_frame(SaslInit("PLAIN", f"\0{login}\0x".encode())))
        heard = await self.says(AMQP_HEADER + frame(0, Open(container, **how)) + frame(0, Begin(None, 0, 1000, 1000)))
        assert [type(each) for each in heard] == [Open, Begin], heard
        return self

    async def consumes(self, address: str = "q", handle: int = 0, credit: int = 100, **how: Any) -> list[Any]:
        attach = Attach(f"c{handle}", handle, RECEIVER, source=Source(address), **how)
        return await self.says(frame(0, attach) + frame(0, Flow(0, 1000, 0, 1000, handle, 0, credit)))

    async def produces(self, address: str = "q", handle: int = 1) -> None:
        await self.says(frame(0, Attach(f"p{handle}", handle, SENDER, target=Target(address), initial_delivery_count=0)))

    async def sends(self, octets: bytes, number: int = 0, handle: int = 1, size: int = 60_000) -> list[Any]:
        frames = [
            frame(0, Transfer(handle, number if at == 0 else None, b"t" if at == 0 else None, 0, more=at + size < len(octets)), octets[at : at + size])
            for at in range(0, len(octets), size)
        ]
        return await self.says(b"".join(frames))


def told(story: Callable[[Broker], Coroutine[Any, Any, None]], limits: Limits | None = None, **settings: Any) -> None:
    async def play() -> None:
        broker = await Broker(**settings).start(limits)
        await story(broker)
        assert not broker.running.done(), "the node goes on"
        await broker.end()

    asyncio.run(play())


def test_a_message_goes_through_a_node() -> None:
    async def story(broker: Broker) -> None:
        client = await Client(broker).opens()
        await client.produces()
        assert Disposition(RECEIVER, 0, None, True, ACCEPTED) in await client.sends(message(b"hello"))
        heard = await client.consumes()
        assert body_of(heard[-1][1]) == b"hello"
        await client.says(frame(0, Disposition(RECEIVER, 0, None, True, ACCEPTED)))
        assert broker.engine.shard.destinations["queue/q"].depth == 0
        assert await client.says(frame(0, Close())) == [Close()]
        await turns()
        assert client.wire.gone
        assert broker.engine.shard.peers == {}

    told(story)


def test_wrong_credentials_are_refused_and_counted() -> None:
    async def story(broker: Broker) -> None:
        broker.accounts.refused.add("stranger")
        client = Client(broker)
        heard = await client.says(SASL_HEADER + sasl_frame(SaslInit("PLAIN", b"\0stranger\0x")))
        assert heard[-1] == SaslOutcome(SaslCode.AUTH)
        assert broker.metrics.refused_logins == 1
        assert client.wire.gone

    told(story)


@pytest.mark.parametrize("size", [300_000, 3_000_000])
def test_a_large_body_goes_through_the_store(size: int) -> None:
    async def story(broker: Broker) -> None:
        client = await Client(broker).opens(max_frame_size=100_000)
        await client.produces()
        body = bytes(range(250)) * (size // 250)
        octets = message(body).replace(b"\0\x53\x75", b"\0\x53\x70\xc0\x02\x01\x41\0\x53\x75", 1)
        heard = await client.sends(octets)
        assert Disposition(RECEIVER, 0, None, True, ACCEPTED) in heard
        heard = await client.consumes()
        for _ in range(20):
            heard += await client.hears()
        payload = b"".join(each[1] for each in heard if isinstance(each, tuple))
        assert body_of(payload) == body
        await client.says(frame(0, Disposition(RECEIVER, 0, None, True, ACCEPTED)))
        assert broker.engine.shard.destinations["queue/q"].depth == 0

    told(story)


def test_a_large_body_whose_client_goes_is_not_kept() -> None:
    async def story(broker: Broker) -> None:
        client = await Client(broker).opens()
        await client.produces()
        await client.says(frame(0, Transfer(1, 0, b"t", 0, more=True), message(bytes(100_000))))
        for _ in range(5):
            await client.says(frame(0, Transfer(1, more=True), bytes(100_000)))
        client.wire.lose()
        await turns()
        assert not broker.store._tables.bodies
        other = await Client(broker).opens("other")
        await other.produces()
        assert await other.sends(message(b"x"))

    told(story)


def test_a_large_body_whose_client_goes_before_its_end_is_read_passes_for_no_message() -> None:
    async def story(broker: Broker) -> None:
        client = await Client(broker).opens()
        await client.produces()
        await client.says(frame(0, Transfer(1, 0, b"t", 0, more=True), message(bytes(100_000))))
        for _ in range(20):
            await client.says(frame(0, Transfer(1, more=True), bytes(100_000)))
        tedious = frame(0, Flow(0, 1000, 1, 1000)) * FRAMES_MAX
        client.peer.data_received(tedious + frame(0, Transfer(1, more=False)))
        assert client.peer._backlog, "its end is read in a later turn"
        client.peer.connection_lost(None)
        await turns()
        assert not broker.store._tables.bodies
        assert broker.engine.shard.destinations.get("queue/q") is None

    told(story, large_body_octets=4096, body_chunk_octets=65_536)


def test_large_bodies_on_two_links_come_in_turns() -> None:
    async def story(broker: Broker) -> None:
        client = await Client(broker).opens()
        await client.produces("a", 1)
        await client.produces("b", 2)
        one, two = message(b"1" * 400_000), message(b"2" * 500_000)
        parts = [(1, 0, one), (2, 1, two)]
        octets = b""
        for at in range(0, 600_000, 50_000):
            for handle, number, whole in parts:
                if at < len(whole):
                    first = at == 0
                    transfer = Transfer(handle, number if first else None, b"%d" % number if first else None, 0, more=at + 50_000 < len(whole))
                    octets += frame(0, transfer, whole[at : at + 50_000])
        heard = await client.says(octets)
        assert len([each for each in heard if isinstance(each, Disposition)]) in (1, 2)
        assert len(broker.store._tables.bodies) == 2

    told(story)


def test_a_client_that_does_not_read_is_sent_no_more_than_a_buffer_full() -> None:
    async def story(broker: Broker) -> None:
        producer = await Client(broker).opens("producer")
        await producer.produces()
        client = await Client(broker).opens()
        client.wire.reads = False
        await client.consumes(credit=1000)
        for number in range(60):
            await producer.sends(message(bytes(50_000)), number)
        assert len(client.wire.waiting) < 1_200_000
        client.wire.read_all()
        heard = await client.hears()
        for _ in range(10):
            heard += await client.hears()
        assert len([each for each in heard if isinstance(each, tuple)]) == 60

    told(story, send_buffer_octets_max=1 << 20)


def test_a_container_that_is_alone_takes_its_identifier_over_from_a_connection_that_is_dead() -> None:
    async def story(broker: Broker) -> None:
        stomp = await broker.client(**{"client-id": "one"})
        client = Client(broker)
        await client.says(SASL_HEADER + sasl_frame(SaslInit("PLAIN", b"\0guest\0x")))
        await client.says(AMQP_HEADER + frame(0, Open("one", desired_capabilities=("sole-connection-for-container",))))
        await asyncio.sleep(1.5)
        (opened,) = await client.hears()
        assert opened.properties == {"product": "Surety", "version": "test"}
        assert stomp.wire.gone, "no kernel says that it is still there"
        other = await Client(broker).opens("one")
        assert not other.wire.gone, "who does not ask to be alone is not"

    told(story)


def test_a_node_that_stops_says_so() -> None:
    async def story(broker: Broker) -> None:
        client = await Client(broker).opens()
        await broker.node.close("the broker is shutting down")
        (closed,) = await client.hears()
        assert (closed.error.condition, closed.error.description) == ("amqp:connection:forced", "the broker is shutting down")

    told(story)


def test_what_waits_in_a_full_destination_stops_nothing_else_of_its_connection() -> None:
    async def story(broker: Broker) -> None:
        client = await Client(broker).opens()
        await client.produces("full")
        await client.produces("other", handle=2)
        octets = message(b"x" * 50_000)
        for number in range(35):
            await client.sends(octets, number)
        assert broker.node.host.waits_for_room(client.peer._number)
        assert not client.wire.paused
        assert Disposition(RECEIVER, 100, None, True, ACCEPTED) in await client.sends(message(), 100, handle=2)
        heard = await client.consumes("full", credit=40)
        assert sum(isinstance(each, tuple) for each in heard) == 2

    told(story, Limits(settings=Settings(redelivery_delay_ms=0, max_messages=2)))


def test_who_closes_its_end_of_the_socket_behind_its_close_is_answered_when_all_is_done() -> None:
    async def story(broker: Broker) -> None:
        ours, theirs = socket.socketpair()
        await asyncio.get_running_loop().connect_accepted_socket(lambda: AmqpPeer(broker.node), ours)
        reader, writer = await asyncio.open_connection(sock=theirs)
        writer.write(SASL_HEADER + sasl_frame(SaslInit("PLAIN", b"\0guest\0x")))
        await turns()
        door = broker.store.shut("commit")
        attach = frame(0, Attach("p", 1, SENDER, target=Target("q"), initial_delivery_count=0))
        writer.write(AMQP_HEADER + frame(0, Open("client")) + frame(0, Begin(None, 0, 1000, 1000)) + attach)
        await reader.readuntil(frame(0, Flow(0, (1 << 31) - 1, 0, (1 << 31) - 1, 1, 0, 64)))
        writer.write(frame(0, Transfer(1, 0, b"t", 0), b"\0\x53\x70\xc0\x02\x01\x41" + message()) + frame(0, Close()))
        writer.write_eof()
        await turns()
        assert not reader.at_eof()
        door.set()
        assert await reader.read() == frame(0, Close())
        writer.close()
        await turns()
        assert broker.engine.shard.peers == {}

    told(story)


def test_one_connection_too_many_is_turned_away() -> None:
    async def story(broker: Broker) -> None:
        await Client(broker).opens()
        client = Client(broker)
        await turns()
        assert client.wire.gone

    told(story, connections_max=1)


def test_octets_of_every_kind_harm_nobody() -> None:
    async def story(broker: Broker) -> None:
        neighbour = await Client(broker).opens("neighbour")
        await neighbour.produces()
        hostile = [b"\0" * 8, b"AMQP\0\1\0\0" + bytes(100), SASL_HEADER + b"\xff" * 64, SASL_HEADER + EMPTY_FRAME * 10]
        for octets in hostile:
            client = Client(broker)
            await client.says(octets)
            client.wire.lose()
        for octets in (bytes([value]) * 40 for value in range(0, 256, 5)):
            client = await Client(broker).opens("hostile")
            await client.says(frame(0, Transfer(0, 0, b"t"), octets) + octets)
            client.wire.lose()
        await turns()
        assert Disposition(RECEIVER, 0, None, True, ACCEPTED) in await neighbour.sends(message())

    told(story)
