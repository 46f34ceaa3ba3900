"""An XA session in transactions of the package `transaction`: when it joins, what it says at the vote and at the end, and what becomes of it when
others fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import transaction
from transaction.interfaces import IDataManager, TransactionFailedError
from zope.interface.verify import verifyObject

from broker_core.client import JMSException, MessageProducer, Queue, TransactionRolledBackException, XAConnectionFactory, XASession, Xid
from broker_core.client.data_manager import XADataManager
from tests.client.driving import Doing
from tests.client.listening import SECONDS, ListeningBroker

A = Queue("a")
XID = Xid(1, b"order")


class Other:
    """Another party, which keeps what it is told; it fails where it is to."""

    transaction_manager = None

    def __init__(self, fails: str = "", sort_key: str = "z") -> None:
        self.told: list[str] = []
        self.fails, self._sort_key = fails, sort_key

    def sortKey(self) -> str:  # noqa: N802  # the interface's name
        return self._sort_key

    def __getattr__(self, name: str) -> Any:
        if name not in ("abort", "tpc_begin", "commit", "tpc_vote", "tpc_finish", "tpc_abort"):
            raise AttributeError(name)

        def tell(_: Any) -> None:
            self.told.append(name)
            if name == self.fails:
                raise LookupError(name)

        return tell


@pytest.fixture
def manager() -> transaction.TransactionManager:
    return transaction.TransactionManager()


@pytest.fixture
def session(broker: ListeningBroker, manager: transaction.TransactionManager) -> Iterator[XASession]:
    factory = XAConnectionFactory(address_list=broker.address, reconnect_enabled=True, reconnect_attempts=5, reconnect_interval=0.05)
    with factory.create_xa_connection() as connection, connection.create_xa_session() as session:
        XADataManager(session, manager, make_xid=lambda: XID)
        yield session


@pytest.fixture
def producer(session: XASession) -> MessageProducer:
    return session.create_producer(A)


def check_said(broker: ListeningBroker, *expected: str) -> None:
    """This, in short, and nothing else since the last time."""
    frames = [broker.frames.get(timeout=SECONDS) for _ in expected]
    assert [" ".join([frame.command, *(frame.headers[name] for name in ("phase",) if name in frame.headers)]) for frame in frames] == list(expected)
    assert broker.frames.empty()


def test_it_is_a_data_manager(session: XASession) -> None:
    assert verifyObject(IDataManager, XADataManager(session))


def test_what_is_done_in_a_transaction_is_prepared_at_its_vote_and_committed_at_its_end(
    broker: ListeningBroker, manager: transaction.TransactionManager, producer: MessageProducer
) -> None:
    other = Other()
    for _ in range(2):
        with manager as current:
            current.join(other)
            producer.send("x")
            producer.send("y")
        check_said(broker, "BEGIN", "SEND", "SEND", "COMMIT prepare", "COMMIT two")
    assert other.told == ["tpc_begin", "commit", "tpc_vote", "tpc_finish"] * 2


def test_a_message_that_is_received_joins_and_one_that_does_not_come_does_not(
    broker: ListeningBroker, manager: transaction.TransactionManager, session: XASession
) -> None:
    consumer = session.create_consumer(A)
    subscription = broker.hears("SUBSCRIBE").headers["id"]
    with manager:
        assert consumer.receive(0.05) is None
    check_said(broker)
    broker.delivers(subscription, b"x")
    with manager:
        assert consumer.receive(5) is not None
    check_said(broker, "BEGIN", "ACK", "COMMIT prepare", "COMMIT two")


def test_what_is_aborted_is_rolled_back(broker: ListeningBroker, manager: transaction.TransactionManager, producer: MessageProducer) -> None:
    manager.begin()
    producer.send("x")
    manager.abort()
    check_said(broker, "BEGIN", "SEND", "ABORT")


@pytest.mark.parametrize(("sort_key", "voted"), [("a", []), ("z", ["COMMIT prepare"])])
def test_when_another_one_cannot_it_is_rolled_back_prepared_or_not(
    broker: ListeningBroker, manager: transaction.TransactionManager, producer: MessageProducer, sort_key: str, voted: list[str]
) -> None:
    manager.begin().join(Other("tpc_vote", sort_key))
    producer.send("x")
    with pytest.raises(LookupError):
        manager.commit()
    manager.abort()
    check_said(broker, "BEGIN", "SEND", *voted, "ABORT")


def test_when_the_broker_cannot_the_others_are_told_to_abort(
    broker: ListeningBroker, manager: transaction.TransactionManager, producer: MessageProducer
) -> None:
    other = Other(sort_key="a")
    broker.silent_about = ("COMMIT",)
    manager.begin().join(other)
    producer.send("x")
    committing = Doing(manager.commit)
    receipt = broker.hears("COMMIT").receipt
    broker.says(f"ERROR\nmessage:XA_RBROLLBACK\nreceipt-id:{receipt}\n\nthe destination is paused\0".encode())
    broker.drops()
    with pytest.raises(TransactionRolledBackException, match="paused"):
        committing.ends()
    assert other.told == ["tpc_begin", "commit", "tpc_vote", "tpc_abort"]
    manager.abort()


def test_a_commit_whose_connection_is_lost_is_said_until_it_is_known(
    broker: ListeningBroker, manager: transaction.TransactionManager, session: XASession, producer: MessageProducer
) -> None:
    manager.begin()
    producer.send("x")
    broker.silent_about = ("COMMIT",)
    committing = Doing(manager.commit)
    broker.hears("COMMIT")
    broker.confirms()
    broker.hears("COMMIT")
    broker.drops()
    subscription, asked = broker.hears("SUBSCRIBE").headers["id"], broker.hears("SEND").headers
    page = f"{XID} prepared\n"
    head = f"MESSAGE\nsubscription:{subscription}\nmessage-id:1\ndestination:/temp-queue/xa\n"
    broker.says(f"{head}correlation-id:{asked['correlation-id']}\ncontent-length:{len(page)}\n\n{page}\0".encode())
    asked = broker.hears("SEND").headers
    broker.says(f"{head}correlation-id:{asked['correlation-id']}\ncontent-length:0\n\n\0".encode())
    assert broker.hears("COMMIT").headers["phase"] == "two"
    broker.confirms()
    committing.ends()
    assert session.branch is None


def test_work_that_cannot_join_is_refused_and_nothing_is_said(
    broker: ListeningBroker, manager: transaction.TransactionManager, session: XASession, producer: MessageProducer
) -> None:
    consumer = session.create_consumer(A)
    broker.delivers(broker.hears("SUBSCRIBE").headers["id"], b"x")
    manager.begin().join(Other("commit"))
    with pytest.raises(LookupError):
        manager.commit()
    for work in (lambda: producer.send("x"), lambda: consumer.receive(5)):
        with pytest.raises(TransactionFailedError):
            work()
    manager.abort()
    check_said(broker)
    with manager:
        assert consumer.receive(5) is not None, "it is not lost"


def test_an_abort_that_cannot_be_told_is_none_of_the_others_business(
    broker: ListeningBroker, manager: transaction.TransactionManager, session: XASession, producer: MessageProducer
) -> None:
    manager.begin()
    producer.send("x")
    broker.silent_about = ("ABORT",)
    aborting = Doing(manager.abort)
    broker.hears("ABORT")
    broker.drops()
    aborting.ends()
    assert session.branch is None


def test_names_of_its_own_are_never_the_same(broker: ListeningBroker, manager: transaction.TransactionManager) -> None:
    with XAConnectionFactory(address_list=broker.address).create_xa_connection() as connection, connection.create_xa_session() as session:
        XADataManager(session, manager)
        producer = session.create_producer(A)
        for _ in range(2):
            with manager:
                producer.send("x")
    assert broker.hears("BEGIN").headers["xid"] != broker.hears("BEGIN").headers["xid"]


def test_without_a_manager_that_joins_it_the_session_wants_a_branch(broker: ListeningBroker) -> None:
    with XAConnectionFactory(address_list=broker.address).create_xa_connection() as connection, connection.create_xa_session() as session:
        producer = session.create_producer(A)
        with pytest.raises(JMSException, match="tpc_begin"):
            producer.send("x")
