"""What an AMQP client asks for that takes a while."""

from __future__ import annotations

from broker_core.amqp.connection import Event
from broker_core.amqp.incoming import BodyDropped, BodyPart
from broker_core.amqp.opening import Opening
from broker_core.amqp.sasl import Login, Proof

from .intake import Intake

SLOW = frozenset((Login, Proof, Opening, BodyPart, BodyDropped))
"""Events that are none for the engine."""


class AmqpIntake(Intake[Event, Login | Proof | Opening]):
    """Of large bodies several may be under way: their parts come in turns, each on a link of its own."""

    async def _do(self, event: Event) -> None:
        if isinstance(event, Login | Proof | Opening):
            await self._begin(event)
        elif isinstance(event, BodyPart):
            assert event.of.message is not None, "a large body belongs to a message"
            await self._store_part(event.of.message, event.octets)
        elif isinstance(event, BodyDropped):
            self._drop(event)
        else:
            await self._apply(event)

    def _drop(self, dropped: BodyDropped) -> None:
        message = dropped.of.message
        body = self._bodies.pop(message, None) if message is not None else None
        if body is not None:
            body.cancel()
