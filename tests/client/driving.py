"""What tests of the client over real sockets share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from broker_core.client import Connection, ConnectionFactory, DeliveryMode, JMSException, Queue
from tests.client.listening import SECONDS, ListeningBroker

A = Queue("a")
NON_PERSISTENT = DeliveryMode.NON_PERSISTENT
QUIET = 0.1


def connect(broker: ListeningBroker, **settings: Any) -> Connection:
    return ConnectionFactory(**({"address_list": broker.address} | settings)).create_connection()


class Doing:
    """Something done by another thread: whether it is through, and what came of it."""

    def __init__(self, what: Callable[[], object]) -> None:
        self.result: object = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(what,), daemon=True)
        self._thread.start()

    def _run(self, what: Callable[[], object]) -> None:
        try:
            self.result = what()
        except JMSException as error:
            self.error = error

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def ends(self) -> object:
        self._thread.join(SECONDS)
        assert self.is_over, "it still waits"
        if self.error is not None:
            raise self.error
        return self.result
