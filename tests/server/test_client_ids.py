"""A client identifier belongs to one connection (checklist items 44 and 45)."""

from __future__ import annotations

import asyncio
import errno
import struct
from typing import Any

import pytest

from broker_core.server import reachable
from broker_core.server.client_ids import ClientIds
from broker_core.server.reachable import is_reachable


class Connection:
    def __init__(self, ids: ClientIds, alive: bool) -> None:
        self.ids, self.alive, self.ended = ids, alive, False

    async def is_alive(self) -> bool:
        await asyncio.sleep(0)
        return self.alive

    async def severed(self) -> None:
        self.ended = True
        await asyncio.sleep(0)


def test_an_identifier_in_use_is_refused_to_the_same_account_and_to_another() -> None:
    async def scenario() -> None:
        ids = ClientIds()
        first, second = Connection(ids, alive=True), Connection(ids, alive=True)
        assert await ids.claim("me", "guest", first) == ""
        assert await ids.claim("me", "guest", second) == "client identifier 'me' is in use by another connection"
        first.alive = False
        assert await ids.claim("me", "stranger", second) == "client identifier 'me' is in use by another account"
        assert not first.ended

    asyncio.run(scenario())


def test_a_dead_connections_identifier_is_taken_over_by_its_account() -> None:
    async def scenario() -> None:
        ids = ClientIds()
        first, second = Connection(ids, alive=False), Connection(ids, alive=True)
        await ids.claim("me", "guest", first)
        assert await ids.claim("me", "guest", second) == ""
        assert first.ended
        ids.release("me", first)
        assert await ids.claim("me", "guest", first) != ""

    asyncio.run(scenario())


def test_of_two_who_claim_a_dead_ones_identifier_at_once_one_gets_it() -> None:
    async def scenario() -> None:
        ids = ClientIds()
        await ids.claim("me", "guest", Connection(ids, alive=False))
        claims = [ids.claim("me", "guest", Connection(ids, alive=True)) for _ in range(2)]
        assert sorted(bool(problem) for problem in await asyncio.gather(*claims)) == [False, True]

    asyncio.run(scenario())


def test_an_identifier_is_free_when_its_connection_is_gone_and_none_is_nobodys() -> None:
    async def scenario() -> None:
        ids = ClientIds()
        first = Connection(ids, alive=True)
        await ids.claim("me", "guest", first)
        ids.release("me", first)
        assert await ids.claim("me", "stranger", Connection(ids, alive=True)) == ""
        assert await ids.claim("", "guest", first) == await ids.claim("", "stranger", first) == ""

    asyncio.run(scenario())


def test_connections_of_one_account_that_all_say_so_share_an_identifier() -> None:
    async def scenario() -> None:
        ids = ClientIds()
        first, second, third = [Connection(ids, alive=True) for _ in range(3)]
        assert await ids.claim("me", "guest", first, True) == await ids.claim("me", "guest", second, True) == ""
        assert "another account" in await ids.claim("me", "stranger", third, True)
        assert "connections that share it: share it too" in await ids.claim("me", "guest", third)
        ids.release("me", first)
        assert "connections that share it" in await ids.claim("me", "guest", third)
        ids.release("me", second)
        assert await ids.claim("me", "guest", third) == ""

    asyncio.run(scenario())


def test_one_that_is_not_shared_is_not_by_who_comes_later() -> None:
    async def scenario() -> None:
        ids = ClientIds()
        first, second = Connection(ids, alive=True), Connection(ids, alive=True)
        await ids.claim("me", "guest", first)
        assert (await ids.claim("me", "guest", second, True)).endswith("another connection, which does not share it")
        first.alive = False
        assert await ids.claim("me", "guest", second, True) == "" and first.ended
        assert await ids.claim("me", "guest", Connection(ids, alive=True), True) == ""

    asyncio.run(scenario())


@pytest.mark.parametrize("reads", [True, False])
def test_a_peer_whose_kernel_answers_is_reachable_whether_it_reads_or_not(reads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachable, "PROBE_SECONDS", 0.05)

    async def scenario() -> None:
        accepted: asyncio.Queue[asyncio.StreamReader] = asyncio.Queue()
        server = await asyncio.start_server(lambda reader, writer: accepted.put_nowait((reader, writer)), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        _reader, other = await accepted.get()
        if not reads:
            other.transport.pause_reading()
        assert await is_reachable(writer.transport, b"\n")
        other.transport.abort()
        await asyncio.sleep(0.01)
        assert not await is_reachable(writer.transport, b"\n")
        writer.close()
        other.close()
        server.close()
        await server.wait_closed()

    asyncio.run(scenario())


class Asked:
    """A transport whose socket answers as it is told."""

    def __init__(self, answer: bytes | OSError) -> None:
        self._answer = answer

    def write(self, _octets: bytes) -> None: ...

    def is_closing(self) -> bool:
        return False

    def get_extra_info(self, _name: str) -> Asked:
        return self

    def getsockopt(self, _level: int, _option: int, _size: int) -> bytes:
        if isinstance(self._answer, OSError):
            raise self._answer
        return self._answer


ESTABLISHED, CLOSE_WAIT = 1, 8
LONG_AGO = 60_000


def told(state: int, unacknowledged: int, data_ago: int = LONG_AGO, ack_ago: int = LONG_AGO) -> bytes:
    """The beginning of Linux's struct tcp_info."""
    return struct.pack("@8B13I", state, *[0] * 7, *[0] * 4, unacknowledged, *[0] * 6, data_ago, ack_ago)


@pytest.mark.parametrize(
    ("answer", "there"),
    [
        (told(ESTABLISHED, 0), True),
        (told(ESTABLISHED, 1), False),
        (told(ESTABLISHED, 1, data_ago=0), True),
        (told(ESTABLISHED, 1, ack_ago=0), True),
        (told(CLOSE_WAIT, 0), False),
        (told(CLOSE_WAIT, 0, ack_ago=0), False),
        (OSError(errno.EBADF, "closed meanwhile"), False),
        (OSError(errno.EOPNOTSUPP, "no TCP"), True),
        (OSError(errno.ENOPROTOOPT, "another kernel"), True),
        (told(ESTABLISHED, 1)[:4], True),
    ],
)
def test_the_kernel_is_believed_as_far_as_it_tells(answer: bytes | OSError, there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachable, "PROBE_SECONDS", 0)
    transport: Any = Asked(answer)
    assert asyncio.run(is_reachable(transport, b"\n")) is there
