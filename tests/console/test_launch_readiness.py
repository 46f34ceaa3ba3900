"""The supervisor believes the service's own answer and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.config import BrokerConfig
from console.launch import readiness
from console.launch.readiness import is_ready


async def asked(octets: bytes, *, stay: bool = False) -> tuple[bool, str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(octets)
        if stay:
            await reader.read()
        writer.close()
        await writer.wait_closed()
        answered.set()

    answered = asyncio.Event()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        found = await is_ready(BrokerConfig(http_port=server.sockets[0].getsockname()[1]))
        await answered.wait()
    return found


async def test_ready_is_200() -> None:
    assert await asked(b"HTTP/1.1 200 OK\r\n\r\n{}") == (True, "")


async def test_not_ready_says_why() -> None:
    assert await asked(b"HTTP/1.1 503 Service Unavailable\r\n\r\nno node holds the lease\n") == (False, "no node holds the lease")


@pytest.mark.parametrize("octets", [b"", b"nonsense", b"HTTP/1.1\r\n\r\n", b"200 200"])
async def test_what_is_no_answer_is_not_ready(octets: bytes) -> None:
    assert (await asked(octets))[0] is (octets == b"200 200")


async def test_who_does_not_listen_is_not_ready() -> None:
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    assert await is_ready(BrokerConfig(http_port=port)) == (False, "the console does not listen yet (Connect call failed ('127.0.0.1', "
                                                            f"{port}))")  # fmt: skip


async def test_who_does_not_answer_in_time_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "ANSWER_SECONDS_MAX", 0.05)
    assert await asked(b"", stay=True) == (False, "the console does not answer")
