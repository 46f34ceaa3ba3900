"""What is being opened: awaited, or entered."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar


class Closing(Protocol):
    """What closes when its block ends."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


T = TypeVar("T", bound=Closing)


class Opening(Generic[T]):
    """`await` it to have what is opened and close it yourself, or use it in `async with`. Nothing happens before."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._opened: T

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> T:
        self._opened = await self._coroutine
        try:
            return await self._opened.__aenter__()
        except BaseException as error:  # nobody else will close it
            await self._opened.__aexit__(type(error), error, error.__traceback__)
            raise

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._opened.__aexit__(kind, error, trace)
