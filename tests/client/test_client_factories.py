"""Connection factories: profiles, and what of their settings is kept (who connects with them: test_client_faces_connecting.py)."""

from __future__ import annotations

from broker_core.client import ConnectionFactory, Profile
from tests.client.driving import A
from tests.client.listening import SECONDS, ListeningBroker


def test_a_profile_is_a_factory_with_other_defaults(broker: ListeningBroker) -> None:
    factory = ConnectionFactory.of_profile("activemq", address_list=broker.address, consumer_flow_limit=5)
    assert (factory.prefetch_policy.topic, factory.dups_ok_policy.on_queues) == (32767, None)
    assert ConnectionFactory.of_profile(Profile.SUN) == ConnectionFactory()
    with factory.create_connection() as connection:
        connection.create_session().create_consumer(A)
        assert broker.hears("SUBSCRIBE").headers["prefetch-count"] == "5"


def test_optimized_acknowledgements_may_be_asked_for_in_the_address(broker: ListeningBroker) -> None:
    factory = ConnectionFactory(address_list=f"{broker.address}?jms.optimizeAcknowledge=true&jms.optimizeAcknowledgeTimeOut=20")
    with factory.create_connection() as connection:
        consumer = connection.create_session().create_consumer(A)
        assert broker.hears("SUBSCRIBE").headers["ack"] == "client"
        broker.delivers("2", b"one")
        assert consumer.receive(SECONDS) is not None
        assert broker.hears("ACK").receipt is None  # as soon as its time has come
    assert not factory.optimize_acknowledge


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(ConnectionFactory(password="secret"))


def test_a_factory_that_is_changed_later_does_not_change_its_connections(broker: ListeningBroker) -> None:
    factory = ConnectionFactory(address_list=broker.address)
    with factory.create_connection() as connection:
        factory.ack_on_produce = False
        connection.create_session().create_producer(A).send("x")
        assert broker.hears("SEND").receipt is not None
