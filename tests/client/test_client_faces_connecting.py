"""One contract for both faces: who connects, and as whom."""

from __future__ import annotations

import ssl
import warnings
from pathlib import Path
from typing import Any

import pytest

from broker_core.client import (
    IllegalStateException,
    InvalidClientIDException,
    JMSException,
    JMSSecurityException,
    PrefetchPolicy,
    Queue,
    Reliability,
)
from tests.client.faces import Face, told
from tests.client.listening import SECONDS, ListeningBroker, messages

A, NUL = Queue("a"), "a\0b"


# -- settings -------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"override_priority": 10}, "from 0 to 9"), ({"consumer_flow_threshold": 0}, "at most 100 percent"),
        ({"address_list_iterations": 0}, "-1 for ever"), ({"ping_interval": -1}, "must not be negative"),
        ({"consumer_flow_limit": -1}, "consumer_flow_limit is -1: it must be a whole number"), ({"consumer_flow_limit": True}, "a whole number"),
        ({"prefetch_policy": PrefetchPolicy(topic=-5)}, "prefetch_policy's topic is -5"),
    ],
)  # fmt: skip
async def test_a_factory_that_is_not_usable_says_why(face: Face, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(JMSException, match=sentence):
        await face.opened("stomp://127.0.0.1:1", **settings)


async def test_a_level_that_loses_persistent_messages_is_warned_of(face: Face, broker: ListeningBroker) -> None:
    with pytest.warns(UserWarning, match="they are lost when the broker stops"):
        await (await face.opened(broker, persistent_reliability=Reliability.EXPRESS)).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await (await face.opened(broker, persistent_reliability=Reliability.RELIABLE)).close()
        await (await face.opened(broker, persistent_reliability=Reliability.AS_DESTINATION, nonpersistent_reliability=Reliability.ASSURED)).close()


# -- identifiers ----------------------------------------------------------------------------------------------------------------------
IDENTIFIERS = [
    ("x" * 256, "at most 255 characters"), (NUL, "holds a NUL character"), ("a\nb", "line break"), ("a\r", "line break"),
    ("\ud800", "cannot be written as UTF-8"), (17, "must be a str"),
]  # fmt: skip


@pytest.mark.parametrize(("identifier", "sentence"), IDENTIFIERS)
async def test_a_client_identifier_that_cannot_be_is_refused_before_the_connection_is_left_for_another(
    face: Face, broker: ListeningBroker, identifier: Any, sentence: str
) -> None:
    connection = await face.opened(broker)
    with pytest.raises(InvalidClientIDException, match=sentence):
        await face.set_client_id(connection, identifier)
    assert not connection.is_closed and broker.connects.qsize() == 1
    await face.set_client_id(connection, "x" * 255)
    await connection.close()
    assert [broker.connects.get(timeout=SECONDS).headers.get("client-id") for _ in range(2)] == [None, "x" * 255]


@pytest.mark.parametrize(("identifier", "sentence"), IDENTIFIERS)
async def test_so_is_the_factorys(face: Face, broker: ListeningBroker, identifier: Any, sentence: str) -> None:
    with pytest.raises(InvalidClientIDException, match=sentence):
        await face.opened(broker, configured_client_id=identifier)
    assert broker.connects.empty()


@pytest.mark.parametrize("wrong", [{"username": NUL}, {"username": "a\nb"}, {"password": "secret\r"}, {"password": "secret\0"}])
async def test_so_are_a_user_name_and_a_password_that_cannot_be_said(face: Face, broker: ListeningBroker, wrong: dict[str, str]) -> None:
    with pytest.raises(JMSSecurityException, match=r"name|password") as refused:
        await face.opened(broker, **wrong)
    assert "secret" not in str(refused.value)
    assert broker.connects.empty()


async def test_the_client_identifier_is_the_factorys_or_the_applications_which_sets_it_once(face: Face, broker: ListeningBroker) -> None:
    connection = await face.opened(broker)
    await face.set_client_id(connection, "mine")
    assert connection.client_id == "mine"
    with pytest.raises(IllegalStateException, match="and once"):
        await face.set_client_id(connection, "other")
    await connection.close()
    assert [broker.connects.get(timeout=SECONDS).headers.get("client-id") for _ in range(2)] == [None, "mine"]
    for settings in ({"configured_client_id": "its"}, {"disable_set_client_id": True}):
        async with face.connection(broker, **settings) as connection:
            with pytest.raises(IllegalStateException, match="the connection factory"):
                await face.set_client_id(connection, "mine")


# -- TLS ------------------------------------------------------------------------------------------------------------------------------
async def test_everything_works_over_tls(face: Face, encrypted: ListeningBroker, pair: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(cafile=str(pair[0]))
    async with face.connection(encrypted, ssl_context=context) as connection:
        session = await connection.create_session()
        consumer, producer = await session.create_consumer(A), await session.create_producer(A)
        for size in (0, 10, 3_000_000):
            await producer.send(b"x" * size)
            assert len((await told(encrypted, "SEND")).body) == size
        bodies = [b"a", b"b" * 3_000_000, b"c" * 20_000]
        encrypted.answer = b"".join(messages("2", *bodies))
        await producer.send("now")
        assert [(await consumer.receive(SECONDS)).octets() for _ in bodies] == bodies


async def test_a_broker_whose_certificate_is_not_trusted_is_not_spoken_to_unless_told(face: Face, encrypted: ListeningBroker) -> None:
    with pytest.raises(JMSException, match="CERTIFICATE_VERIFY_FAILED"):
        await face.opened(encrypted)
    async with face.connection(encrypted, ssl_is_host_trusted=True) as connection:
        await (await (await connection.create_session()).create_producer(A)).send("x")
