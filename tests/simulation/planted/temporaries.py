"""Temporary destinations: request and reply."""

from __future__ import annotations

from broker_core.engine import engine
from broker_core.engine.commands import Request
from broker_core.engine.sending import send
from broker_core.stomp import sections

from .plant import Plant


def replies_of_another_connection(plant: Plant) -> None:
    """Header sections that name a temporary destination are remembered by all connections together."""
    plant.put(sections, "TEMPORARY", b"\xff")


def temporary_queue_outlives_its_connection(plant: Plant) -> None:
    """What a lost connection made stays, with what it holds."""
    plant.put(engine, "end_temporaries", lambda _shard, _peer: None)


def reply_before_the_queue_is_there(plant: Plant) -> None:
    """Only a consumer makes a temporary queue: a fast responder finds none."""
    plant.put(engine, "_HANDLERS", {**engine._HANDLERS, Request: send})


BUGS = (
    replies_of_another_connection,
    temporary_queue_outlives_its_connection,
    reply_before_the_queue_is_there,
)
