"""What tests of the client share."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.client.aio import Connection, ConnectionFactory
from tests.client.broker import Cut, byte_by_byte, whole
from tests.client.faces import Face, Tasks, Threads
from tests.client.listening import ListeningBroker
from tests.support.certificates import certificate


@pytest.fixture(params=[whole, byte_by_byte], ids=["whole", "byte by byte"])
def cut(request: pytest.FixtureRequest) -> Cut:
    return request.param


@pytest.fixture(params=[Threads, Tasks], ids=["threads", "asyncio"])
def face(request: pytest.FixtureRequest) -> Face:
    return request.param()


@pytest.fixture
def broker() -> Iterator[ListeningBroker]:
    with ListeningBroker() as listening:
        yield listening


@pytest.fixture
async def connection(face: Face, broker: ListeningBroker) -> AsyncIterator[Any]:
    async with face.connection(broker) as connection:
        yield connection


@pytest.fixture
async def of_tasks(broker: ListeningBroker) -> AsyncIterator[Connection]:
    """A started connection of asyncio's face."""
    async with ConnectionFactory(address_list=broker.address).create_connection() as connection:
        yield connection


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate and its key."""
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def encrypted(pair: tuple[Path, Path]) -> Iterator[ListeningBroker]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    with ListeningBroker(context) as listening:
        yield listening
