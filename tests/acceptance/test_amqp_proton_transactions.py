"""Local transactions with python-qpid-proton, which has words of its own for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.service import Service

# isort: split
from tests.acceptance.proton_client import Within, connect, connected, gets_nothing, receive

# isort: split
from proton import ConnectionException, Message
from proton.utils import BlockingConnection


@pytest.fixture
def connection(service: Service) -> Iterator[BlockingConnection]:
    with connected(service) as made:
        yield made


def test_what_is_sent_in_a_transaction_is_there_when_it_is_committed(connection: BlockingConnection, queue: str) -> None:
    sender, receiver = connection.create_sender(queue), connection.create_receiver(queue, credit=5)
    lost = Within(connection)
    lost.send(sender, Message(body="never", durable=True))
    lost.roll_back()
    kept = Within(connection)
    for body in ("a", "b"):
        kept.send(sender, Message(body=body, durable=True))
    gets_nothing(receiver)
    kept.commit()
    assert [receive(receiver).body, receive(receiver).body] == ["a", "b"]


def test_what_was_taken_in_a_transaction_that_is_rolled_back_comes_again(connection: BlockingConnection, queue: str) -> None:
    connection.create_sender(queue).send(Message(body="a", durable=True))
    receiver = connection.create_receiver(queue, credit=5)
    first = Within(connection)
    assert first.receive(receiver).delivery_count == 0
    first.roll_back()
    second = Within(connection)
    assert second.receive(receiver).delivery_count == 1
    second.commit()
    gets_nothing(receiver)


def test_a_commit_that_cannot_be_done_is_rolled_back(connection: BlockingConnection, queue: str) -> None:
    receiver = connection.create_receiver(queue, credit=5)
    wrong = Within(connection)
    wrong.send(connection.create_sender(queue), Message(body="never", durable=True))
    wrong.send(connection.create_sender("mq.sys.dmq"), Message(body="not there", durable=True))
    wrong.commit("not committed")
    gets_nothing(receiver)


def test_a_transaction_whose_node_is_killed_never_was_and_is_done_again(mortal: Service) -> None:
    lost = connect(mortal)
    lost.create_sender("killed.from").send(Message(body="a", durable=True))
    transaction = Within(lost)
    assert transaction.receive(lost.create_receiver("killed.from", credit=1)).body == "a"
    transaction.send(lost.create_sender("killed.to"), Message(body="never", durable=True))
    mortal.kill_and_await_another("node")
    transaction.transaction.commit()
    with pytest.raises(ConnectionException):
        lost.wait(lambda: transaction.said == "committed")
    with connected(mortal) as connection:
        transaction = Within(connection)
        again = transaction.receive(connection.create_receiver("killed.from", credit=5))
        assert (again.body, again.delivery_count >= 1) == ("a", True)
        transaction.send(connection.create_sender("killed.to"), Message(body="a!", durable=True))
        transaction.commit()
        results = connection.create_receiver("killed.to", credit=5)
        assert receive(results).body == "a!"
        gets_nothing(results)
        gets_nothing(connection.create_receiver("killed.from", credit=5, name="looks"))
