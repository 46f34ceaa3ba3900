"""Aliases against a really running node, which is killed."""

from __future__ import annotations

import pytest

from broker_core.client import Queue, ResourceAllocationException
from tests.acceptance.operators import ask
from tests.acceptance.python_client import SOON, factory
from tests.support.clients import reconnect
from tests.support.service import Service


def test_an_alias_and_its_settings_stay_over_a_restart(mortal: Service) -> None:
    target, alias = Queue("aliased.target"), Queue("aliased.name")
    ask(mortal, "create_alias", alias.address[1:], target=target.address[1:], maximum_reliability="reliable-np")
    ask(mortal, "update_alias", alias.address[1:], maximum_reliability="inherit")
    with factory(mortal).create_connection() as connection:
        connection.create_session().create_producer(alias).send("before")
    ask(mortal, "update_alias", alias.address[1:], maximum_reliability="reliable")
    mortal.kill("node")
    reconnect(mortal.stomp_port).close()
    with factory(mortal).create_connection() as connection, connection.create_session() as session:
        message = session.create_consumer(alias).receive(SOON)
        assert message is not None and message.body == "before"
        with pytest.raises(ResourceAllocationException, match=r"aliased\.name takes at most reliable"):
            session.create_producer(alias).send("too much")
    with factory(mortal).create_connection() as connection:
        connection.create_session().create_producer(target).send("the target has no maximum")
    assert ask(mortal, "delete_alias", alias.address[1:]) == {"target": target.address[1:]}
