"""The WebSocket of an open page: it says what it shows, and is told what that is now and whatever becomes of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import DatabaseError

from .board import Subject
from .feed import Feed
from .person import Person, is_ours, person, session_key
from .topics import pulse, read, subject_of

SUBJECTS_MAX = 500
TEXT_CHARACTERS_MAX = 1 << 16
CHECKED_SECONDS = 15
"""So long a session that has ended elsewhere may still be told something."""
LOGGED_OUT, WRONG, LATER = 4401, 4400, 1013
"""Codes of closing: the page goes to the login; the page is not one of ours; who asks cannot be found out now, and the page comes again."""


def _apart(function: Any) -> Any:
    """In a thread that waits for nobody else's query."""
    return database_sync_to_async(function, thread_sensitive=False)


feed = Feed(_apart(read), _apart(pulse))


def _name_for(who: Person) -> str:
    """Of the feed as he is told it: versions of one that showed something else mean nothing, also when a page comes back with them."""
    return f"{feed.name}-{hash(who.rights)}"


class LiveSocket(AsyncWebsocketConsumer):
    async def connect(self) -> None:
        self._subjects: frozenset[Subject] = frozenset()
        self._version: int | None = None
        self._task: asyncio.Task[None] | None = None
        if not is_ours(dict(self.scope["headers"])):
            await self.close()  # before it was accepted: 403
            return
        await self.accept()
        self._key = session_key(self.scope["cookies"])
        who = await self._who()
        if who is not None:
            self._name = _name_for(who)
            self._task = asyncio.create_task(self._speak(who))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """`{"watch": [subjects], "feed": name, "since": version}`: what the page shows, and what it has been told; the last two may be missing."""
        if self._task is None:
            return
        asked = _parsed(text_data)
        if asked is None:
            await self.close(WRONG)
            return
        self._subjects, self._version = asked[0], asked[2] if asked[1] == self._name else None
        feed.watch(self, self._subjects)

    async def disconnect(self, code: int) -> None:
        feed.forget(self)
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _who(self) -> Person | None:
        """Who has opened it, now. None: it is closed."""
        try:
            who: Person | None = await _apart(person)(self._key)
        except DatabaseError:
            await self.close(LATER)
            return None
        if who is None:
            await self.close(LOGGED_OUT)
        return who

    async def _speak(self, who: Person) -> None:
        """After each reading what has changed, or only that nothing has. Who reads slowly is told less often, and then more at once."""
        checked = asyncio.get_running_loop().time()
        while True:
            await feed.turned(self)
            now = asyncio.get_running_loop().time()
            if now - checked > CHECKED_SECONDS:
                checked, again = now, await self._who()
                if again is None:
                    return
                who = again
                if self._name != _name_for(who):
                    self._name, self._version = _name_for(who), None
            change = feed.board.since(self._version, self._subjects, who.shows)
            self._version = change.version
            await self.send(json.dumps({"feed": self._name, "version": change.version, "full": change.full, "cells": change.cells}))


def _parsed(text: str | None) -> tuple[frozenset[Subject], object, int | None] | None:
    """None: no page of ours says this."""
    if text is None or len(text) > TEXT_CHARACTERS_MAX:
        return None
    try:
        asked = json.loads(text)
    except (ValueError, RecursionError):
        return None
    watch = asked.get("watch") if isinstance(asked, dict) else None
    if not isinstance(watch, list) or len(watch) > SUBJECTS_MAX:
        return None
    subjects = [subject_of(each) for each in watch]
    since = asked.get("since")
    if None in subjects or not (since is None or type(since) is int):
        return None
    return frozenset(subject for subject in subjects if subject is not None), asked.get("feed"), since
