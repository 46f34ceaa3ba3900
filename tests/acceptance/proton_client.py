"""python-qpid-proton, an AMQP client that nobody here wrote, as an application uses it. Without a C compiler it is not installed, and its tests are skipped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.service import Service

proton = pytest.importorskip("proton", reason="python-qpid-proton is built where there is a C compiler")

from proton import Message  # noqa: E402
from proton.handlers import TransactionHandler  # noqa: E402
from proton.reactor import Container, LinkOption, Transaction  # noqa: E402
from proton.utils import BlockingConnection  # noqa: E402

PATIENCE = 20
NOTHING = 0.3


def connect(service: Service, login: str = "guest:guest", mechanism: str = "PLAIN", container: str = "", **how: Any) -> BlockingConnection:
    """`container`: its identifier; empty: one that nobody else has."""
    if container:
        how["container"] = Container()
        how["container"].container_id = container
    return BlockingConnection(f"amqp://{login}@127.0.0.1:{service.amqp_port}", timeout=PATIENCE, allowed_mechs=mechanism, **how)


@contextmanager
def connected(service: Service, **how: Any) -> Iterator[BlockingConnection]:
    connection = connect(service, **how)
    try:
        yield connection
    finally:
        connection.close()


def receive(receiver: Any, *, accept: bool = True) -> Message:
    message = receiver.receive(timeout=PATIENCE)
    if accept:
        receiver.accept()
    return message


def gets_nothing(receiver: Any) -> None:
    with pytest.raises(proton.Timeout):
        receiver.receive(timeout=NOTHING)


def await_true(connection: BlockingConnection, condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends
        connection.container.do_work(0.05)


class Capable(LinkOption):
    """Of a source."""

    def __init__(self, *capabilities: str) -> None:
        self._capabilities = [proton.symbol(each) for each in capabilities]

    def apply(self, link: Any) -> None:
        data = link.source.capabilities
        data.put_array(False, proton.Data.SYMBOL)
        data.enter()
        for each in self._capabilities:
            data.put_symbol(each)
        data.exit()


class Within(TransactionHandler):
    """A local transaction of this connection."""

    def __init__(self, connection: BlockingConnection) -> None:
        super().__init__()
        self.connection = connection
        self.said = ""
        self.transaction: Transaction = connection.container.declare_transaction(connection.conn, self)
        self._await("declared")

    def on_transaction_declared(self, event: Any) -> None:
        self.said = "declared"

    def on_transaction_committed(self, event: Any) -> None:
        self.said = "committed"

    def on_transaction_aborted(self, event: Any) -> None:
        self.said = "rolled back"

    def on_transaction_commit_failed(self, event: Any) -> None:
        self.said = "not committed"

    def _await(self, said: str) -> None:
        await_true(self.connection, lambda: self.said == said)

    def send(self, sender: Any, message: Message) -> None:
        delivery = self.transaction.send(sender.link, message)
        await_true(self.connection, lambda: delivery.settled)

    def receive(self, receiver: Any) -> Message:
        message = receiver.receive(timeout=PATIENCE)
        self.transaction.accept(receiver.fetcher.unsettled.popleft())
        return message

    def commit(self, said: str = "committed") -> None:
        self.transaction.commit()
        self._await(said)

    def roll_back(self) -> None:
        self.transaction.abort()
        self._await("rolled back")
