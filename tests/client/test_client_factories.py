"""Connection factories and what they connect to, over real sockets: TLS, settings, profiles, identifiers."""

from __future__ import annotations

import ssl
import warnings
from pathlib import Path
from typing import Any

import pytest

from broker_core.client import AcknowledgeMode, ConnectionFactory, IllegalStateException, JMSException, Profile, Reliability
from tests.client.driving import A, connect
from tests.client.listening import SECONDS, ListeningBroker, messages
from tests.support.service import free_ports


# -- TLS ------------------------------------------------------------------------------------------------------------------------------
def test_everything_works_over_tls(encrypted: ListeningBroker, pair: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(cafile=str(pair[0]))
    with connect(encrypted, ssl_context=context) as connection:
        session = connection.create_session()
        consumer = session.create_consumer(A)
        for size in (0, 10, 3_000_000):
            session.create_producer(A).send(b"x" * size)
            assert len(encrypted.hears("SEND").body) == size
        bodies = [b"a", b"b" * 3_000_000, b"c" * 20_000]
        encrypted.answer = b"".join(messages("2", *bodies))
        session.create_producer(A).send("now")
        received = [consumer.receive(SECONDS) for _ in bodies]
        assert [message.octets() for message in received if message] == bodies


def test_a_broker_whose_certificate_is_not_trusted_is_not_spoken_to_unless_told(encrypted: ListeningBroker) -> None:
    with pytest.raises(JMSException, match="CERTIFICATE_VERIFY_FAILED"):
        connect(encrypted)
    with connect(encrypted, ssl_is_host_trusted=True) as connection:
        connection.create_session().create_producer(A).send("x")


# -- factories ------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"override_priority": 10}, "from 0 to 9"), ({"consumer_flow_threshold": 0}, "at most 100 percent"),
        ({"address_list_iterations": 0}, "-1 for ever"), ({"ping_interval": -1}, "must not be negative"),
        ({"nonpersistent_reliability": Reliability.ASSURED}, "a level of persistent messages"),
    ],
)  # fmt: skip
def test_a_factory_that_is_not_usable_says_why(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(JMSException, match=sentence):
        ConnectionFactory(**settings).create_connection()


def test_a_level_that_loses_persistent_messages_is_allowed_and_warned_of(broker: ListeningBroker) -> None:
    with pytest.warns(UserWarning, match="they are lost when the broker stops"):
        connect(broker, persistent_reliability=Reliability.EXPRESS).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connect(broker, persistent_reliability=Reliability.RELIABLE).close()


def test_a_profile_is_a_factory_with_other_defaults(broker: ListeningBroker) -> None:
    factory = ConnectionFactory.of_profile("activemq", address_list=broker.address, consumer_flow_limit=5)
    assert (factory.prefetch_policy.topic, factory.dups_ok_policy.on_queues) == (32767, None)
    assert ConnectionFactory.of_profile(Profile.SUN) == ConnectionFactory()
    with factory.create_connection() as connection:
        connection.create_session().create_consumer(A)
        assert broker.hears("SUBSCRIBE").headers["prefetch-count"] == "5"


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(ConnectionFactory(password="secret"))


def test_a_factory_that_is_changed_later_does_not_change_its_connections(broker: ListeningBroker) -> None:
    factory = ConnectionFactory(address_list=broker.address)
    with factory.create_connection() as connection:
        factory.ack_on_produce = False
        connection.create_session().create_producer(A).send("x")
        assert broker.hears("SEND").receipt is not None


def test_the_client_identifier_is_the_factorys_or_the_applications(broker: ListeningBroker) -> None:
    connection = connect(broker)
    connection.client_id = "mine"
    with pytest.raises(IllegalStateException, match="and once"):
        connection.client_id = "other"
    connection.close()
    assert ["client-id" in broker.connects.get(timeout=SECONDS).headers for _ in range(2)] == [False, True]
    for settings in ({"configured_client_id": "its"}, {"disable_set_client_id": True}):
        with connect(broker, **settings) as connection, pytest.raises(IllegalStateException, match="the connection factory"):
            connection.client_id = "mine"


def test_nobody_there_is_said_at_once() -> None:
    (port,) = free_ports(1)
    with pytest.raises(JMSException, match=f"127.0.0.1:{port}: .*refused"):
        ConnectionFactory(address_list=f"127.0.0.1:{port}").create_connection()


def test_a_session_with_a_mode_that_cannot_be_asked_for(broker: ListeningBroker) -> None:
    with connect(broker) as connection, pytest.raises(JMSException, match="transacted=True"):
        connection.create_session(AcknowledgeMode.SESSION_TRANSACTED)
