"""Listening sockets, on a real loop."""

from __future__ import annotations

import asyncio
import socket

import pytest

from broker_core.server import socket_peer
from broker_core.server.amqp_peer import AmqpPeer
from broker_core.server.stomp_peer import StompPeer

from .rig import Broker, turns


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def sends_and_closes_its_end(broker: Broker) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.Event]:
    """A client sends a message, says DISCONNECT and closes its end; the commit stands at the door that is given, shut."""
    ours, theirs = socket.socketpair()
    await asyncio.get_running_loop().connect_accepted_socket(lambda: StompPeer(broker.node), ours)
    reader, writer = await asyncio.open_connection(sock=theirs)
    writer.write(b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\n\n\0")
    await reader.readuntil(b"\0")
    door = broker.store.shut("commit")
    writer.write(b"SEND\ndestination:/queue/q\npersistent:true\n\nhi\0DISCONNECT\nreceipt:bye\n\n\0")
    writer.write_eof()
    return reader, writer, door


def test_a_port_that_is_taken_is_an_error_of_the_system() -> None:
    async def story() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            broker = await Broker(stomp_port=taken.getsockname()[1], amqp_port=free_port()).start()
            with pytest.raises(OSError, match="address already in use"):
                await broker.node.listen(StompPeer, AmqpPeer)
            assert not any(told["up"] for told in broker.node.listeners.values())
            await broker.end()

    asyncio.run(story())


def test_a_client_is_served_until_the_node_closes_and_then_nobody_is() -> None:
    async def story() -> None:
        port = free_port()
        broker = await Broker(stomp_port=port, amqp_port=free_port()).start()
        await broker.node.listen(StompPeer, AmqpPeer)
        assert {name: told["up"] for name, told in broker.node.listeners.items()} == {"stomp": True, "amqp": True}
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\n\n\0SEND\ndestination:/queue/q\nreceipt:1\n\nhi\0")
        assert (await reader.readuntil(b"\0")).startswith(b"CONNECTED")
        assert b"receipt-id:1" in await reader.readuntil(b"\0")
        await broker.node.close("the broker is shutting down")
        assert b"ERROR\nmessage:the broker is shutting down" in await reader.read()
        writer.close()
        assert {name: told["up"] for name, told in broker.node.listeners.items()} == {"stomp": False, "amqp": False}
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection("127.0.0.1", port)
        await broker.end()

    asyncio.run(story())


def test_who_does_so_and_has_gone_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """His message waits for room."""
    monkeypatch.setattr(socket_peer, "LEAVING_SECONDS", 0.01)

    async def story() -> None:
        broker = await Broker().start()
        reader, writer, door = await sends_and_closes_its_end(broker)
        assert await reader.read() == b""
        door.set()
        writer.close()
        await turns()
        assert (broker.engine.shard.peers, broker.node.connections) == ({}, 0)
        await broker.end()

    asyncio.run(story())


def test_who_closes_its_end_of_the_socket_behind_disconnect_has_its_receipt_when_all_is_done() -> None:
    async def story() -> None:
        broker = await Broker().start()
        reader, writer, door = await sends_and_closes_its_end(broker)
        await turns()
        assert not reader.at_eof()
        door.set()
        assert await reader.read() == b"RECEIPT\nreceipt-id:bye\n\n\0"
        writer.close()
        await turns()
        assert broker.engine.shard.peers == {}
        await broker.end()

    asyncio.run(story())
