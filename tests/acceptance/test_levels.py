"""Levels of reliability against a really running node: what operators set for destinations and accounts, as clients see it."""

from __future__ import annotations

import pytest

from broker_core.client import DeliveryMode, Queue, Reliability, ResourceAllocationException
from tests.acceptance.operators import ask
from tests.acceptance.python_client import SOON, factory
from tests.support.clients import Connection as Stomp
from tests.support.service import Service

LEVELS = ("best-effort", "express", "reliable-np", "reliable", "assured")


def test_what_asks_for_more_than_the_maximum_is_refused_and_the_client_is_told_which(service: Service, orders: Queue) -> None:
    ask(service, "create", orders.address[1:], maximum_reliability="reliable")
    with factory(service).create_connection() as connection, pytest.raises(ResourceAllocationException, match="takes at most reliable"):
        connection.create_session().create_producer(orders).send("x")
    with factory(service, persistent_reliability=Reliability.RELIABLE).create_connection() as connection:
        connection.create_session().create_producer(orders).send("x")


def test_a_destinations_default_is_for_those_who_leave_it_to_it_and_for_all_if_producers_have_no_say(service: Service, orders: Queue) -> None:
    ask(service, "create", orders.address[1:], default_reliability="reliable-np")
    with Stomp(service.stomp_port) as stomp:
        for headers in ({}, {"reliability": "as-destination"}, {"persistent": "true"}):
            stomp.confirmed("SEND", {"destination": orders.address, **headers}, b"x")
        answer = ask(service, "update", orders.address[1:], reliability_override=False)
        assert answer["warnings"] == ["persistent messages get level reliable-np here: they are lost when the broker stops"]
        stomp.confirmed("SEND", {"destination": orders.address, "persistent": "true"}, b"x")
        stomp.command("SUBSCRIBE", {"destination": orders.address, "id": "1", "ack": "auto", "selector": "JMSDeliveryMode = 'NON_PERSISTENT'"})
        assert [stomp.expect("MESSAGE").headers["reliability"] for _ in range(3)] == ["reliable-np"] * 3


def test_a_level_named_at_connect_counts_before_the_accounts(service: Service, orders: Queue) -> None:
    with service.database() as connection:
        connection.execute(
            "INSERT INTO surety.account SELECT 'mapped', salt, iterations, stored_key, server_key, false, false, 'reliable', 'best-effort' "
            "FROM surety.account WHERE name = 'guest' ON CONFLICT DO NOTHING"
        )
    for connect in ({}, {"persistent-reliability": "assured"}):
        with Stomp(service.stomp_port, login="mapped", headers=connect) as stomp:
            for headers in ({"persistent": "true"}, {}):
                stomp.confirmed("SEND", {"destination": orders.address, **headers}, b"x")
    with Stomp(service.stomp_port) as stomp:
        stomp.command("SUBSCRIBE", {"destination": orders.address, "id": "1", "ack": "auto"})
        told = sorted(stomp.expect("MESSAGE").headers["reliability"] for _ in range(4))
    assert told == ["assured", "best-effort", "best-effort", "reliable"]


def test_a_persistent_message_of_the_python_client_keeps_its_mode_through_all_five_levels(service: Service, orders: Queue) -> None:
    for level in list(Reliability)[:5]:
        mapped = {"persistent_reliability": level} if level.is_persistent else {"nonpersistent_reliability": level}
        with factory(service, **mapped).create_connection() as connection:
            session = connection.create_session()
            mode = DeliveryMode.PERSISTENT if level.is_persistent else DeliveryMode.NON_PERSISTENT
            session.create_producer(orders).send("x", delivery_mode=mode)
            message = session.create_consumer(orders).receive(SOON)
            assert message is not None and message.jms_delivery_mode == mode


def test_a_message_of_the_largest_size_that_waits_takes_no_memory_from_the_others(service: Service, orders: Queue) -> None:
    """It would be most of what there is, and best effort would be dropped; its body is in the store."""
    large = f"{orders.address}.large"
    with Stomp(service.stomp_port) as stomp:
        stomp.confirmed("SEND", {"destination": large, "persistent": "true"}, bytes(100 << 20), timeout=60)
        for level in LEVELS:
            stomp.confirmed("SEND", {"destination": orders.address, "reliability": level}, b"x")
        stomp.subscribe(orders.address, ack="auto")
        assert sorted(stomp.expect("MESSAGE").headers["reliability"] for _ in LEVELS) == sorted(LEVELS)
    ask(service, "purge", large[1:], depth=1)
