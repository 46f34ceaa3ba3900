"""Receiving: less the waiting."""

from __future__ import annotations

from typing import Generic, TypeVar

from broker_core.client.destinations import Queue, Topic
from broker_core.client.machine import ConsumerMachine
from broker_core.client.messages import Message

L = TypeVar("L")
"""What a message listener is."""


class ConsumerFace(Generic[L]):
    def __init__(self, machine: ConsumerMachine) -> None:
        self._machine = machine
        self._listener: L | None = None

    @property
    def destination(self) -> Queue | Topic:
        return self._machine.what.destination

    @property
    def message_selector(self) -> str:
        return self._machine.what.selector

    @property
    def no_local(self) -> bool:
        return self._machine.what.no_local

    # -- listeners ----------------------------------------------------------------------------------------------------------------------
    @property
    def message_listener(self) -> L | None:
        """Called with each message, one at a time in a session. If it raises, a session that acknowledges by itself gives the message back."""
        return self._listener

    @message_listener.setter
    def message_listener(self, listener: L | None) -> None:
        if listener is not None:
            self._machine.session.check_listening()
        self._listen(listener)

    def _listen(self, listener: L | None) -> None:
        raise NotImplementedError

    @property
    def has_listener(self) -> bool:
        return self._listener is not None

    def next_for_listener(self, now: int, instant: int) -> Message | None:
        """For the session: the next message, which the listener is about to get."""
        return self._machine.next_for_listener(now, instant) if self._listener is not None else None
