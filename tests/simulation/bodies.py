"""Large bodies of volatile messages: as no commit names them, the engine alone knows when they may go. Each must be of one message or gone."""

from __future__ import annotations

from collections.abc import Iterator

from broker_core.engine.commands import Command, Send
from broker_core.engine.cursor import Cursor
from broker_core.engine.keeping import bodies_behind
from broker_core.engine.message import VOLATILE, StoredBody
from broker_core.engine.shard import Shard
from broker_core.engine.waiting import waiting

from .audit import Broken


class Bodies:
    """Of one term."""

    def __init__(self) -> None:
        self._sent: set[int] = set()
        self._discarded: set[int] = set()

    def sees(self, command: Command) -> None:
        """Those of delayed messages are looked for at the end only: until they are due the store's schedule names them."""
        if not isinstance(command, Send) or command.message.header.delay:
            return
        if command.message.header.lane >= VOLATILE and isinstance(command.message.body, StoredBody):
            self._sent.add(command.message.body.body)

    def check(self, shard: Shard, discarded: list[int]) -> None:
        """After a flush that says what is to be `discarded`."""
        self._discarded.update(discarded)
        pinned = {m.body.body for peer in shard.peers.values() for m in peer.pins.values() if isinstance(m.body, StoredBody)}
        kept = pinned | {body for s in shard.subscriptions.values() for cursor in s.order if not cursor.stored for body in _kept(cursor)}
        waiting_for_room = [what for d in shard.blocked if d.capacity is not None for what in d.capacity.waiting if isinstance(what, Send)]
        kept |= {send.message.body.body for send in waiting_for_room if isinstance(send.message.body, StoredBody)}
        if kept & self._discarded:
            raise Broken(f"large bodies {kept & self._discarded} are discarded and have messages")
        if self._sent - kept - self._discarded:
            raise Broken(f"large bodies {self._sent - kept - self._discarded} are of no message and are not discarded")


def _kept(cursor: Cursor) -> Iterator[int]:
    yield from (body.body for body in bodies_behind(cursor))
    outstanding = [m for link in cursor.subscription.links.values() for m in link.unsettled.values() if m.header.lane == cursor.index]
    for message in [*waiting(cursor), *cursor.reserved.values(), *outstanding]:
        if isinstance(message.body, StoredBody):
            yield message.body.body
