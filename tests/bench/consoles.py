"""Consoles that are open and that nobody touches: `python -m tests.bench.consoles PORT COOKIE COUNT PATH ...`, until standard input ends.

Each does what the script of a page does: it says over its WebSocket what the page shows, is told of it, and fetches those parts again that are not told, or of
which it is told that they are others. The pages are taken in turn. Prints a line when all of them are told something, and at the end what they had.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from dataclasses import dataclass, field

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError

POLL_SECONDS, PACE_SECONDS, AGAIN_SECONDS = 5.0, (0, 1, 2, 3, 5), (0.5, 1, 2, 5, 10)
"""As live.js has them: for parts without a shape; for those whose shape changes all the time; after a WebSocket that was lost."""
OPENED_SECONDS = 0.15
"""From one console to the next: nobody opens a hundred at once."""
_KEY = re.compile(r'data-(?:live|live-state|live-value|shape)="([^"]+)"')
_PART = re.compile(r"<[a-z]+[^>]*\sdata-refresh\b[^>]*>")
_SHAPE, _EVERY, _NAME = (re.compile(rf'\s{name}="([^"]+)"') for name in ("data-shape", "data-every", "id"))


@dataclass(slots=True)
class Had:
    """By all consoles together."""

    told: int = 0
    cells: int = 0
    fetched: int = 0
    lost: int = 0
    failed: int = 0
    open: int = 0
    all_told: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True, frozen=True)
class Part:
    name: str
    shape: str
    seconds: float | None
    """Fetched so often; None: only when its shape is another."""


class Console:
    def __init__(self, port: int, cookie: str, path: str, had: Had) -> None:
        self._port, self._cookie, self._path, self._had = port, cookie, path, had
        self._shapes: dict[str, str | None] = {}
        self._changed: set[Part] = set()
        self._feed: str | None = None
        self._version: int | None = None

    async def run(self) -> None:
        page = ""
        while not page:
            page = await self._get()
        parts = [_part(tag) for tag in _PART.findall(page)]
        watch = sorted({key.rpartition("/")[0] for key in _KEY.findall(page)})
        async with asyncio.TaskGroup() as tasks:
            for part in parts:
                tasks.create_task(self._refresh(part))
            for pause in (*AGAIN_SECONDS, None):
                try:
                    await self._listen(watch, parts)
                except ConnectionClosedError:
                    if pause is None:
                        raise
                    self._had.lost += 1
                    await asyncio.sleep(pause)

    async def _listen(self, watch: list[str], parts: list[Part]) -> None:
        address, origin = f"ws://127.0.0.1:{self._port}/live", f"http://127.0.0.1:{self._port}"
        async with connect(address, origin=origin, additional_headers={"Cookie": self._cookie}, proxy=None) as socket:
            await socket.send(json.dumps({"watch": watch, "feed": self._feed, "since": self._version}))
            async for text in socket:
                told = json.loads(text)
                if self._version is None:
                    self._had.open += 1
                    self._had.all_told.set()
                self._feed, self._version = told["feed"], told["version"]
                self._had.told += 1
                self._had.cells += len(told["cells"])
                for part in [part for part in parts if part.shape in told["cells"]]:
                    before = self._shapes.get(part.shape)
                    self._shapes[part.shape] = told["cells"][part.shape]
                    if before not in (None, told["cells"][part.shape]):
                        self._changed.add(part)

    async def _refresh(self, part: Part) -> None:
        """Again and again, or when its shape is another: soon if it has not been so for long, else less and less often."""
        fetched, pace = time.monotonic() - random.random() * POLL_SECONDS, 0
        while True:
            await asyncio.sleep(0.25)
            since = time.monotonic() - fetched
            if since > 2 * POLL_SECONDS:
                pace = 0
            due = part in self._changed and since >= PACE_SECONDS[pace]
            if due or (part.seconds is not None and since >= part.seconds):
                pace = min(pace + 1, len(PACE_SECONDS) - 1) if due else pace
                self._changed.discard(part)
                fetched = time.monotonic()
                await self._get(part)

    async def _get(self, part: Part | None = None) -> str:
        """The page, or as htmx asks for a part of it; empty: it could not be had."""
        asks = f"HX-Request: true\r\nHX-Target: {part.name}\r\n" if part else ""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nCookie: {self._cookie}\r\n{asks}Connection: close\r\n\r\n".encode())
        answer = (await reader.read()).decode(errors="replace")
        writer.close()
        self._had.fetched += part is not None
        if answer.startswith("HTTP/1.1 5") or not answer:
            self._had.failed += 1
            await asyncio.sleep(AGAIN_SECONDS[0])
            return ""
        if not answer.startswith("HTTP/1.1 200"):
            raise RuntimeError(f"{self._path}: {answer[:200]}")
        return answer


def _part(tag: str) -> Part:
    shape, every, name = (found[1] if (found := each.search(tag)) else "" for each in (_SHAPE, _EVERY, _NAME))
    return Part(name, shape, float(every) if every and shape else None if shape else POLL_SECONDS)


async def main(port: int, cookie: str, count: int, paths: list[str]) -> None:
    had = Had()
    consoles = []
    for number in range(count):
        consoles.append(asyncio.create_task(Console(port, cookie, paths[number % len(paths)], had).run()))
        await asyncio.sleep(OPENED_SECONDS)
    while had.open < count:
        had.all_told.clear()
        await asyncio.wait([asyncio.create_task(had.all_told.wait()), *consoles], return_when=asyncio.FIRST_COMPLETED)
        _raise_failure(consoles)
    had.told = had.cells = had.fetched = 0
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    _raise_failure(consoles)
    print(json.dumps({"told": had.told, "cells": had.cells, "fetched": had.fetched, "lost": had.lost, "failed": had.failed}), flush=True)
    for console in consoles:
        console.cancel()
    await asyncio.gather(*consoles, return_exceptions=True)


def _raise_failure(consoles: list[asyncio.Task[None]]) -> None:
    for console in consoles:
        if console.done():
            console.result()
            raise RuntimeError("the WebSocket was closed")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
