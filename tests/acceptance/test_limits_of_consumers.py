"""Limits of a queue that an operator changes while clients consume: they count for those who are there, at once."""

from __future__ import annotations

from broker_core.client import AcknowledgeMode, MessageConsumer, Queue
from tests.acceptance.operators import ask
from tests.acceptance.python_client import QUIET, SOON, factory, fill, texts
from tests.support.service import Service


def nothing_comes(consumer: MessageConsumer) -> bool:
    """Until something is acknowledged."""
    return consumer.receive(QUIET) is None


def test_what_may_be_delivered_ahead_follows_the_flow_limit_up_and_down(service: Service, orders: Queue) -> None:
    with factory(service).create_connection() as connection:
        consumer = connection.create_session(AcknowledgeMode.CLIENT).create_consumer(orders)
        ask(service, "update", f"queue/{orders.name}", consumer_flow_limit=2)
        fill(connection, orders, *"abcdefghij")
        connection.start()
        assert texts(consumer, 2) == ["a", "b"]
        assert nothing_comes(consumer)
        ask(service, "update", f"queue/{orders.name}", consumer_flow_limit=4)
        last = consumer.receive(SOON)
        assert last is not None and last.body == "c"
        assert texts(consumer, 1) == ["d"]
        assert nothing_comes(consumer)
        ask(service, "update", f"queue/{orders.name}", consumer_flow_limit=1)
        assert nothing_comes(consumer)
        last.acknowledge()
        assert texts(consumer, 1) == ["e"]
        assert nothing_comes(consumer)


def test_a_consumer_that_stood_by_is_served_when_more_may_be(service: Service, orders: Queue) -> None:
    ask(service, "create", f"queue/{orders.name}", max_active_consumers=1, max_backup_consumers=-1)
    with factory(service, consumer_flow_limit=1).create_connection() as connection:
        first, second = (connection.create_session(AcknowledgeMode.CLIENT).create_consumer(orders) for _ in range(2))
        fill(connection, orders, *"abc")
        connection.start()
        assert texts(first, 1) == ["a"]
        assert nothing_comes(second)
        ask(service, "update", f"queue/{orders.name}", max_active_consumers=2)
        served = second.receive(SOON)
        assert served is not None and served.body == "b"
        ask(service, "update", f"queue/{orders.name}", max_active_consumers=1)
        served.acknowledge()
        assert nothing_comes(second)
