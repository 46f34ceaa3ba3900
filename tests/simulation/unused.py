"""What nobody has looked at comes back as if it had never left, from what the engine is asked and what it hands out: it has the flag exactly if a consumer
may have seen it, and it comes before what was never delivered. Of one term."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from broker_core.engine.commands import Command, Detach, Settle, Transacted
from broker_core.engine.cursor import Cursor
from broker_core.engine.link import Link
from broker_core.engine.message import Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Delivered, Output
from broker_core.engine.shard import Shard
from broker_core.engine.subscription import Subscription

from .audit import Broken

Place = tuple[int, int, int]
"""Subscription, lane and position."""


class Unused:
    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._seen: dict[Place, bool | None] = {}
        """Of what was delivered: whether a consumer may have seen it; None: it depends on how a transaction ends."""
        self._before: dict[Place, bool | None] = {}
        """The same before its last delivery."""
        self._back: dict[Cursor, set[int]] = {}
        """Positions that came back unused and wait."""

    # -- what is asked ----------------------------------------------------------------------------------------------------------------
    def sees(self, shard: Shard, command: Command) -> None:
        """Before it is applied."""
        if isinstance(command, Settle) and command.outcome is Outcome.UNUSED:
            self._settled(shard, command, decided=True)
        elif isinstance(command, Transacted) and isinstance(command.work, Settle):
            if command.work.outcome is Outcome.UNUSED:
                self._settled(shard, command.work, decided=False)
        elif isinstance(command, Detach) and command.outcome is Outcome.UNUSED:
            link = shard.links.get(command.link)
            if link is not None and link.peer.number == command.peer:
                for message in link.unsettled.values():
                    self._is_back(link, message, decided=True)

    def _settled(self, shard: Shard, settle: Settle, *, decided: bool) -> None:
        link = shard.links.get(settle.link)
        if link is not None and link.peer.number == settle.peer:
            for tag in settle.tags:
                if (message := link.unsettled.get(tag)) is not None:
                    self._is_back(link, message, decided=decided)

    def _is_back(self, link: Link, message: Message, *, decided: bool) -> None:
        cursor = link.subscription.cursor_of(message)
        assert cursor is not None
        place = _place(cursor, message)
        if place not in self._seen:
            return
        self._seen[place] = self._before.get(place) if decided else None
        if decided and not message.redelivered:
            self._counts["came back unused"] += 1
            self._back.setdefault(cursor, set()).add(message.position)

    # -- what is handed out -----------------------------------------------------------------------------------------------------------
    def check(self, shard: Shard, outputs: Iterable[Output]) -> None:
        """After a flush."""
        for output in outputs:
            link = shard.links.get(output.link) if isinstance(output, Delivered) else None
            if link is not None:
                for message in output.messages:
                    cursor = link.subscription.cursor_of(message)
                    if cursor is not None:
                        self._delivered(link, cursor, message)

    def _delivered(self, link: Link, cursor: Cursor, message: Message) -> None:
        place = _place(cursor, message)
        seen = self._seen.get(place)  # what is delivered first may be flagged: a mark says for many that they may have left
        if seen is not None and seen != message.redelivered:
            raise Broken(f"position {message.position} of {cursor.subscription.destination.address} is flagged: {message.redelivered}, seen: {seen}")
        back = self._back.get(cursor)
        if back:
            back.discard(message.position)
            if place not in self._seen and isinstance(link.source, Subscription) and cursor.subscription.owners is None:
                earlier = [p for p in back if p < message.position and not cursor.progress.is_settled(p) and p not in cursor.reserved]
                if earlier:
                    raise Broken(f"position {message.position} of {cursor.subscription.destination.address} came before {earlier}, which came back unused")
        self._before[place] = message.redelivered
        self._seen[place] = True


def _place(cursor: Cursor, message: Message) -> Place:
    return cursor.subscription.number, cursor.index, message.position
