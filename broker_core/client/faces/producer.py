"""Sending: less the waiting."""

from __future__ import annotations

from broker_core.client.destinations import Queue, Topic
from broker_core.client.machine import ProducerMachine
from broker_core.client.settings import DeliveryMode


class ProducerFace:
    """Its delivery mode, priority, time to live and delivery delay hold for all it sends."""

    def __init__(self, machine: ProducerMachine) -> None:
        self._machine = machine

    @property
    def destination(self) -> Queue | Topic | None:
        """None: each send() names its own."""
        return self._machine.destination

    @property
    def delivery_mode(self) -> DeliveryMode:
        return self._machine.delivery_mode

    @delivery_mode.setter
    def delivery_mode(self, mode: DeliveryMode) -> None:
        self._machine.set_delivery_mode(mode)

    @property
    def priority(self) -> int:
        """0 to 9, 4 unless set."""
        return self._machine.priority

    @priority.setter
    def priority(self, priority: int) -> None:
        self._machine.set_priority(priority)

    @property
    def time_to_live(self) -> float:
        """Seconds after which a message expires; 0: never."""
        return self._machine.time_to_live

    @time_to_live.setter
    def time_to_live(self, seconds: float) -> None:
        self._machine.set_time_to_live(seconds)

    @property
    def delivery_delay(self) -> float:
        """Seconds for which the broker keeps a message back."""
        return self._machine.delivery_delay

    @delivery_delay.setter
    def delivery_delay(self, seconds: float) -> None:
        self._machine.set_delivery_delay(seconds)
