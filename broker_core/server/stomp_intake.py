"""What a STOMP client asks for that takes a while."""

from __future__ import annotations

from broker_core.engine.message import Message
from broker_core.stomp.connection import BodyPart, Event
from broker_core.stomp.login import Login

from .intake import Intake

SLOW = frozenset((Login, BodyPart))
"""Events that are none for the engine."""


class StompIntake(Intake[Event, Login]):
    """Of large bodies one is under way: a frame has no other within it."""

    async def _do(self, event: Event) -> None:
        if isinstance(event, Login):
            await self._begin(event)
        elif isinstance(event, BodyPart):
            await self._store_part(None, event.octets)
        else:
            await self._apply(event)

    def _key_of(self, message: Message) -> None:
        return None
