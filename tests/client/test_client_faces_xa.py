"""One contract for both faces, threads and asyncio: XA sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_core.client import BranchState, IllegalStateException, JMSException, Queue, TransactionInProgressException, XAConnectionFactory, Xid
from broker_core.client.aio import XAConnectionFactory as AsyncioXAConnectionFactory
from tests.client.broker import Frame
from tests.client.faces import Face, Threads, doing, ends, is_waiting, told
from tests.client.listening import ListeningBroker

A = Queue("a")
FACTORIES = {"threads": XAConnectionFactory, "asyncio": AsyncioXAConnectionFactory}


@pytest.fixture
async def connection(face: Face, broker: ListeningBroker) -> AsyncIterator[Any]:
    factory = FACTORIES["threads" if isinstance(face, Threads) else "asyncio"]
    made = factory(address_list=broker.address, reconnect_enabled=True, reconnect_attempts=5, reconnect_interval=0.05)
    async with face.wrap(await face.call(made.create_xa_connection)) as connection:
        yield connection


def answer(asked: Frame, subscribed: Frame, *branches: str) -> bytes:
    body = "".join(f"{branch}\n" for branch in branches).encode()
    head = f"MESSAGE\nsubscription:{subscribed.headers['id']}\nmessage-id:1\ncorrelation-id:{asked.headers['correlation-id']}\n"
    return f"{head}destination:/temp-queue/n-1-7.xa\ncontent-length:{len(body)}\n\n".encode() + body + b"\0"


async def test_each_phase_waits_for_the_broker(connection: Any, broker: ListeningBroker) -> None:
    session = await connection.create_xa_session()
    xid = await session.xid(1, "order")
    session.transaction_timeout = 60
    broker.silent_about = ("BEGIN", "COMMIT")
    for call, says in ((lambda: session.tpc_begin(xid), "BEGIN"), (session.tpc_prepare, "COMMIT"), (session.tpc_commit, "COMMIT")):
        waiting = doing(call())
        assert (await told(broker, says)).headers["xid"] == str(xid)
        assert await is_waiting(waiting)
        broker.confirms()
        await ends(waiting)
    assert session.branch is None and session.transaction_timeout == 60


async def test_what_is_sent_in_a_branch_names_it(connection: Any, broker: ListeningBroker) -> None:
    session = await connection.create_xa_session()
    await session.tpc_begin(Xid(1, b"order"))
    await (await session.create_producer(A)).send("x")
    begin, send = await told(broker, "BEGIN"), await told(broker, "SEND")
    assert send.headers["transaction"] == begin.headers["transaction"] and send.receipt is None
    await session.tpc_rollback()
    assert (await told(broker, "ABORT")).headers["xid"] == begin.headers["xid"]


async def test_recover_returns_the_xids(connection: Any, broker: ListeningBroker) -> None:
    session = await connection.create_xa_session()
    recovering = doing(session.tpc_recover())
    subscribed, asked = await told(broker, "SUBSCRIBE"), await told(broker, "SEND")
    broker.says(answer(asked, subscribed, "1.6f.00 prepared"))
    broker.says(answer(await told(broker, "SEND"), subscribed))
    (xid,) = await ends(recovering)
    assert (xid, xid.state) == (Xid(1, b"o", b"\0"), BranchState.PREPARED)
    await session.tpc_commit(xid)
    assert (await told(broker, "COMMIT")).headers == {"xid": "1.6f.00", "phase": "two", "receipt": "3"}
    await session.tpc_forget(xid)


async def test_a_commit_whose_connection_was_lost_is_said_again_on_the_next(connection: Any, broker: ListeningBroker) -> None:
    session = await connection.create_xa_session()
    await session.tpc_begin(Xid(1, b"o"))
    await session.tpc_prepare()
    await told(broker, "COMMIT")
    broker.silent_about = ("COMMIT",)
    committing = doing(session.tpc_commit())
    await told(broker, "COMMIT")
    broker.drops()
    with pytest.raises(JMSException, match=r"say tpc_commit\(\) again") as lost:
        await ends(committing)
    assert lost.value.error_code == "CONNECTION_LOST"
    committing = doing(session.tpc_commit())
    subscribed, asked = await told(broker, "SUBSCRIBE"), await told(broker, "SEND")
    broker.says(answer(asked, subscribed))
    await ends(committing)
    assert session.branch is None


async def test_an_xa_connection_has_ordinary_sessions_too_and_an_xa_session_is_none(connection: Any, broker: ListeningBroker) -> None:
    ordinary, session = await connection.create_session(), await connection.create_xa_session()
    await (await ordinary.create_producer(A)).send("x")
    assert (ordinary.transacted, session.transacted) == (False, True)
    for call in (session.commit, session.rollback):
        with pytest.raises(TransactionInProgressException, match="tpc_"):
            await call()
    consumer = await session.create_consumer(A)
    with pytest.raises(IllegalStateException, match="no listeners"):
        consumer.message_listener = print
    with pytest.raises(IllegalStateException, match="tpc_begin"):
        await consumer.receive(0.01)


async def test_a_prepare_that_was_cancelled_may_be_waited_for_again(broker: ListeningBroker) -> None:
    async with AsyncioXAConnectionFactory(address_list=broker.address).create_xa_connection() as connection:
        session = connection.create_xa_session()
        await session.tpc_begin(Xid(1, b"o"))
        broker.silent_about = ("COMMIT",)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.tpc_prepare(), 0.1)
        again = doing(session.tpc_prepare())
        await told(broker, "COMMIT")
        with pytest.raises(IllegalStateException, match="another task"):
            await session.tpc_prepare()
        broker.confirms()
        await ends(again)
        await session.close()
