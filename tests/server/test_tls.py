"""TLS: a connection counts from the moment at which it is accepted. Real sockets, on both loops that the node may run on."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from broker_core.amqp.frames import SASL_HEADER, sasl_frame
from broker_core.amqp.performatives import SaslCode, SaslInit, SaslOutcome
from broker_core.config import BrokerConfig
from broker_core.server import listening
from broker_core.server.amqp_peer import AmqpPeer
from broker_core.server.certificate import ends_at
from broker_core.server.stomp_peer import StompPeer
from broker_core.server.tls import TlsListener
from tests.support.certificates import certificate as made_certificate

from .rig import Broker
from .test_listening import free_port

PATIENCE = 10
CONNECT = b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\n\n\0SEND\ndestination:/queue/q\nreceipt:1\n\nhi\0"
Story = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    cert, key = made_certificate(tmp_path_factory.mktemp("tls"))
    return str(cert), str(key)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def tell(request: pytest.FixtureRequest) -> Story:
    def tell(story: Coroutine[Any, Any, None]) -> None:
        failures: list[object] = []
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.get_loop().set_exception_handler(lambda _loop, context: failures.append(context))
            runner.run(asyncio.wait_for(story, 60))
        assert not failures

    return tell


async def serving(certificate: tuple[str, str], **settings: Any) -> Broker:
    cert, key = certificate
    ports = {name: free_port() for name in ("stomp_port", "stomp_tls_port", "amqp_port", "amqp_tls_port")}
    broker = await Broker(tls_cert=cert, tls_key=key, **ports, **settings).start()
    await broker.node.listen(StompPeer, AmqpPeer)
    return broker


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(PATIENCE * 100):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not happen")


def silent(broker: Broker) -> socket.socket:
    """A stranger who opens a connection and says nothing."""
    return socket.create_connection(("127.0.0.1", broker.config.stomp_tls_port), PATIENCE)


async def encrypted(broker: Broker) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context(cafile=broker.config.tls_cert)
    context.check_hostname = False
    return await asyncio.open_connection("127.0.0.1", broker.config.stomp_tls_port, ssl=context)


def test_handshakes_that_never_end_count_as_connections_and_are_given_up_in_time(tell: Story, certificate: tuple[str, str]) -> None:
    async def story() -> None:
        broker = await serving(certificate, connections_max=2, login_seconds=1)
        strangers = [silent(broker), silent(broker)]
        await until(lambda: broker.metrics.connections == 2)
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.config.stomp_port)
        assert b"ERROR\nmessage:the broker has 2 connections and takes no more" in await reader.read()
        writer.close()
        third = silent(broker)
        third.setblocking(False)
        assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(third, 1), 0.5) == b"", "closed before it costs memory"
        await until(lambda: broker.metrics.connections == 0)
        reader, writer = await encrypted(broker)
        writer.write(CONNECT)
        assert (await reader.readuntil(b"\0")).startswith(b"CONNECTED")
        writer.close()
        for stranger in (*strangers, third):
            stranger.close()
        await broker.node.close("the broker is shutting down")
        await broker.end()

    tell(story())


def test_whoever_speaks_no_tls_is_closed_and_counts_no_longer(tell: Story, certificate: tuple[str, str]) -> None:
    async def story() -> None:
        broker = await serving(certificate)
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.config.stomp_tls_port)
        writer.write(CONNECT)
        await reader.read()
        writer.close()
        await until(lambda: broker.metrics.connections == 0)
        assert {name: told["up"] for name, told in broker.node.listeners.items()} == dict.fromkeys(("stomp", "stomp+tls", "amqp", "amqp+tls"), True)
        await broker.node.close("the broker is shutting down")
        await broker.end()

    tell(story())


def test_that_nobody_is_accepted_any_more_for_a_bug_is_told(tell: Story) -> None:
    told: list[BaseException] = []

    def factory() -> asyncio.Protocol:
        raise LookupError("a bug")

    async def story() -> None:
        listener = TlsListener(ssl.create_default_context(), 1, factory, lambda _protocol: True, lambda _protocol: None, told.append)
        port = free_port()
        await listener.listen("127.0.0.1", port, 5)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()
        assert not listener.is_serving()
        listener.close()

    tell(story())
    assert [str(error) for error in told] == ["a bug"]


def test_the_last_place_is_taken_by_a_client_with_tls_that_speaks_at_once(tell: Story, certificate: tuple[str, str]) -> None:
    async def story() -> None:
        broker = await serving(certificate, connections_max=1)
        reader, writer = await encrypted(broker)
        writer.write(CONNECT)
        assert (await reader.readuntil(b"\0")).startswith(b"CONNECTED")
        assert b"receipt-id:1" in await reader.readuntil(b"\0")
        await until(lambda: broker.metrics.connections == 1)
        await broker.node.close("the broker is shutting down")
        assert b"ERROR\nmessage:the broker is shutting down" in await reader.read()
        writer.close()
        await broker.end()

    tell(story())


def test_nothing_comes_behind_the_handshake_that_a_client_did_not_ask_for(tell: Story, certificate: tuple[str, str]) -> None:
    """A session ticket would: a client that writes CONNECT in one thread while another reads it may lose the CONNECT within its TLS library."""
    heard: list[tuple[str, bool]] = []

    async def story() -> None:
        broker = await serving(certificate)
        reader, writer = await encrypted(broker)
        writer.write(CONNECT)
        assert (await reader.readuntil(b"\0")).startswith(b"CONNECTED")
        encryption = writer.get_extra_info("ssl_object")
        heard.append((encryption.version(), encryption.session.has_ticket))
        await broker.node.close("the broker is shutting down")
        writer.close()
        await broker.end()

    tell(story())
    assert heard == [("TLSv1.3", False)]


def test_a_node_that_closes_gives_up_handshakes_and_its_port(tell: Story, certificate: tuple[str, str]) -> None:
    async def story() -> None:
        broker = await serving(certificate)
        stranger = silent(broker)
        await until(lambda: broker.metrics.connections == 1)
        await broker.node.close("the broker is shutting down")
        await until(lambda: broker.metrics.connections == 0)
        assert not any(told["up"] for told in broker.node.listeners.values())
        with pytest.raises(OSError, match="refused"):
            silent(broker)
        stranger.close()
        await broker.end()

    tell(story())


def test_a_handshake_that_is_given_up_before_its_first_step_is_closed_and_no_longer_counted(tell: Story, certificate: tuple[str, str]) -> None:
    async def story() -> None:
        loop, ended = asyncio.get_running_loop(), list[asyncio.Protocol]()

        def begins(_protocol: asyncio.Protocol) -> bool:
            loop.call_soon(listener.close)
            return True

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        listener = TlsListener(context, PATIENCE, asyncio.Protocol, begins, ended.append, pytest.fail)
        port = free_port()
        await listener.listen("127.0.0.1", port, 5)
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as stranger:
            await until(lambda: bool(ended))
            assert await loop.run_in_executor(None, stranger.recv, 1) == b""

    tell(story())


def test_a_tls_port_that_is_taken_is_an_error_of_the_system(tell: Story, certificate: tuple[str, str]) -> None:
    async def story() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            cert, key = certificate
            broker = await Broker(tls_cert=cert, tls_key=key, stomp_port=free_port(), amqp_port=free_port(), stomp_tls_port=taken.getsockname()[1]).start()
            with pytest.raises(OSError, match="already in use"):
                await broker.node.listen(StompPeer, AmqpPeer)
            await broker.node.close("the broker cannot start")
            await broker.end()

    tell(story())


# -- AMQP: clients with certificates --------------------------------------------------------------------------------------------------
async def mechanisms(broker: Broker, context: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """Of SASL, those that the client is offered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.config.amqp_tls_port, ssl=context)
    writer.write(SASL_HEADER)
    assert await reader.readexactly(8) == SASL_HEADER
    return reader, writer, await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big") - 4)


@pytest.mark.parametrize(("refused", "code"), [((), SaslCode.OK), (("robot",), SaslCode.AUTH)])
def test_a_client_with_a_certificate_logs_in_as_the_account_that_it_names(
    tell: Story, certificate: tuple[str, str], tmp_path: Path, refused: tuple[str, ...], code: SaslCode
) -> None:
    async def story() -> None:
        own, key = made_certificate(tmp_path, "robot")
        broker = await serving(certificate, tls_client_ca=str(own))
        broker.accounts.refused.update(refused)
        context = ssl.create_default_context(cafile=certificate[0])
        context.load_cert_chain(own, key)
        reader, writer, offered = await mechanisms(broker, context)
        assert b"EXTERNAL" in offered
        writer.write(sasl_frame(SaslInit("EXTERNAL")))
        outcome = sasl_frame(SaslOutcome(code))
        assert await reader.readexactly(len(outcome)) == outcome
        writer.close()
        await broker.node.close("the broker is shutting down")
        await broker.end()

    tell(story())


def test_a_client_without_a_certificate_needs_a_password_and_one_of_another_authority_does_not_come_in(
    tell: Story, certificate: tuple[str, str], tmp_path: Path
) -> None:
    async def story() -> None:
        trusted, _ = made_certificate(tmp_path, "robot")
        broker = await serving(certificate, tls_client_ca=str(trusted))
        context = ssl.create_default_context(cafile=certificate[0])
        _, writer, offered = await mechanisms(broker, context)
        assert b"EXTERNAL" not in offered
        writer.close()
        strangers = tmp_path / "strangers"
        strangers.mkdir()
        context.load_cert_chain(*made_certificate(strangers, "robot"))
        reader, writer = await asyncio.open_connection("127.0.0.1", broker.config.amqp_tls_port, ssl=context)
        writer.write(SASL_HEADER)
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            assert await reader.read() == b""
        writer.close()
        await broker.node.close("the broker is shutting down")
        await broker.end()

    tell(story())


def test_a_certificate_that_goes_while_it_is_looked_at_changes_nothing(tell: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        files = made_certificate(tmp_path, "first")
        broker = await serving((str(files[0]), str(files[1])))
        ends, loaded = broker.node.certificate_ends_at, listening._tls
        made_certificate(tmp_path, "second", days=2)

        def then_it_goes(config: BrokerConfig, client_ca: str) -> ssl.SSLContext:
            context = loaded(config, client_ca)
            files[0].unlink(missing_ok=True)
            return context

        with monkeypatch.context() as renewal:
            renewal.setattr(listening, "_tls", then_it_goes)
            broker.node.follow_certificates()
        assert not files[0].exists(), "it was looked at, and went"
        assert broker.node.certificate_ends_at == ends is not None
        broker.node.follow_certificates()
        await broker.node.close("over")
        await broker.end()

    tell(story())


def test_a_new_certificate_is_shown_to_who_comes_from_then_on_and_a_broken_one_to_nobody(
    tell: Story, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def connect(broker: Broker) -> asyncio.StreamWriter:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return (await asyncio.open_connection("127.0.0.1", broker.config.stomp_tls_port, ssl=context))[1]

    async def shown(broker: Broker) -> bytes:
        writer = await connect(broker)
        octets: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return octets

    async def story() -> None:
        files = made_certificate(tmp_path, "first")
        broker = await serving((str(files[0]), str(files[1])))
        connected = await connect(broker)
        first = await shown(broker)
        broker.node.follow_certificates()
        assert await shown(broker) == first
        old = files[0].read_bytes()
        files[0].write_bytes(b"-----BEGIN CERTIFICATE-----\nhalf of it")
        broker.node.follow_certificates()
        assert await shown(broker) == first
        assert "stays as it is" in caplog.text
        files[0].write_bytes(old)
        assert broker.node.certificate_ends_at == ends_at(old.decode())
        made_certificate(tmp_path, "second", days=2)
        broker.node.follow_certificates()
        second = await shown(broker)
        assert second != first
        assert broker.node.certificate_ends_at == ends_at(files[0].read_text()) != ends_at(old.decode())
        await until(lambda: broker.metrics.connections == 1)
        assert not connected.is_closing(), "who is connected stays"
        connected.close()
        await broker.node.close("over")
        await broker.end()

    tell(story())
