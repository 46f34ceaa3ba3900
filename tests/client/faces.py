"""The two faces of the client runtime behind one: whatever a scenario asks for is awaited, and done by a thread or by the loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

from broker_core import client
from broker_core.client import aio
from tests.client.listening import SECONDS, ListeningBroker

OF_FACES = tuple(
    getattr(room, name)
    for room in (client, aio)
    for name in ("Connection", "Session", "MessageConsumer", "MessageProducer", "QueueBrowser", "SubscriptionBrowser")
)
LISTENERS = ("message_listener", "exception_listener")


class Face:
    """`wrap`ped, an object's methods are coroutines; its listeners are coroutine functions."""

    module: Any

    async def call(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError

    def listener(self, listener: Callable[..., Any]) -> Callable[..., Any]:
        raise NotImplementedError

    def iterate(self, iterable: Any) -> AsyncIterator[Any]:
        raise NotImplementedError

    async def set_client_id(self, connection: Any, client_id: Any) -> None:
        raise NotImplementedError

    def wrap(self, it: Any) -> Any:
        return Wrapped(self, it) if isinstance(it, OF_FACES) else it

    def factory(self, broker: ListeningBroker | str, **settings: Any) -> Any:
        address = broker if isinstance(broker, str) else broker.address
        return self.module.ConnectionFactory(**({"address_list": address} | settings))

    async def opened(self, broker: ListeningBroker | str, **settings: Any) -> Any:
        """A connection that is not started; who asks for it closes it."""
        return self.wrap(await self.call(self.factory(broker, **settings).create_connection))

    @asynccontextmanager
    async def connection(self, broker: ListeningBroker | str, **settings: Any) -> AsyncIterator[Any]:
        async with await self.opened(broker, **settings) as connection:
            yield connection


class Wrapped:
    def __init__(self, face: Face, it: Any) -> None:
        vars(self).update(_face=face, it=it)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.it, name)
        if not callable(value):
            return value

        async def call(*arguments: Any, **named: Any) -> Any:
            return self._face.wrap(await self._face.call(value, *arguments, **named))

        return call

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.it, name, self._face.listener(value) if name in LISTENERS else value)

    async def __aenter__(self) -> Self:
        if hasattr(self.it, "start"):
            await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._face.iterate(self.it)


class Threads(Face):
    """Each call is made by a thread."""

    module = client

    async def call(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return await asyncio.to_thread(method, *arguments, **named)

    async def set_client_id(self, connection: Any, client_id: Any) -> None:
        await asyncio.to_thread(setattr, connection.it, "client_id", client_id)

    def listener(self, listener: Callable[..., Any]) -> Callable[..., Any]:
        loop = asyncio.get_running_loop()
        return lambda it: asyncio.run_coroutine_threadsafe(listener(it), loop).result()

    async def iterate(self, iterable: Any) -> AsyncIterator[Any]:
        iterator = iter(iterable)
        while (message := await asyncio.to_thread(next, iterator, None)) is not None:
            yield message


class Tasks(Face):
    """Each call is made here, and awaited if it is to be."""

    module = aio

    async def call(self, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        result = method(*arguments, **named)
        return await result if inspect.isawaitable(result) else result

    async def set_client_id(self, connection: Any, client_id: Any) -> None:
        await connection.set_client_id(client_id)

    def listener(self, listener: Callable[..., Any]) -> Callable[..., Any]:
        return listener

    def iterate(self, iterable: Any) -> AsyncIterator[Any]:
        return aiter(iterable)


QUIET = 0.1
"""Seconds after which nothing more is expected."""


def doing(call: Any) -> asyncio.Task[Any]:
    return asyncio.ensure_future(call)


async def is_waiting(task: asyncio.Task[Any]) -> bool:
    await asyncio.sleep(QUIET)
    return not task.done()


async def ends(task: asyncio.Task[Any]) -> Any:
    async with asyncio.timeout(SECONDS):
        return await task


async def told(broker: ListeningBroker, command: str) -> Any:
    """The next frame with this command that the broker hears."""
    return await asyncio.to_thread(broker.hears, command)


async def becomes(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
