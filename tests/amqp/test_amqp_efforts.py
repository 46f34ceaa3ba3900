"""What many links of one connection, and large things that they say, may cost the node."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.amqp.frames import frame
from broker_core.amqp.limits import Limits
from broker_core.amqp.performatives import (
    RECEIVER, Attach, Begin, Detach, Disposition, End, Error, MessageProperties, Modified, Rejected, Source, Target, TransactionalState, Transfer,
)  # fmt: skip
from broker_core.amqp.types import Symbol
from broker_core.engine import commands as c
from tests.amqp.conversation import Client, message, outcomes, publishes
from tests.amqp.messages import data, written

LINKS = 100
HELD = 1_000


def crowded() -> Client:
    """One link holds much, and many others a message each."""
    client = Client().opens()
    client.consumes(credit=10 * HELD)
    publishes(client, *["x"] * HELD)
    client.hears()
    for handle in range(1, LINKS + 1):
        client.consumes(handle=handle, credit=1)
    return client


def test_links_that_go_look_not_all_at_all_that_their_session_holds() -> None:
    client = crowded()
    session = client.machine.sessions.by_channel[0]
    looked = 0

    class Counted(dict[int, Any]):
        def items(self) -> Any:
            nonlocal looked
            looked += len(self)
            return super().items()

    session.unsettled.deliveries = Counted(session.unsettled.deliveries)
    client.says(b"".join(frame(0, Detach(handle, closed=True)) for handle in range(1, LINKS + 1)))
    client.speaks(End())
    assert looked <= 4 * HELD


def test_what_a_link_held_that_is_gone_is_settled_for_nobody(client: Client) -> None:
    publishes(client, *"abc")
    publishes(client, *"de", address="queue/others")
    client.consumes(credit=10)
    client.consumes("others", handle=1, credit=2)
    client.detaches(1)
    client.bench.apply(c.Attach(1, 99, "queue/others", credit=100))
    client.settles(0, 3)
    client.settles(4)
    assert (client.bench.depth(), client.bench.depth("queue/others")) == (0, 2)


def test_of_what_links_held_that_are_gone_no_more_is_kept_than_is_held(client: Client) -> None:
    for handle in range(30):
        client.consumes(handle=handle, credit=5)
        publishes(client, *"abcde")
        client.detaches(handle)
    assert len(client.machine.sessions.by_channel[0].unsettled.deliveries) <= 5


def test_a_range_that_ends_before_it_begins_settles_nothing(client: Client) -> None:
    client.consumes(credit=10)
    publishes(client, *"abcdef")
    client.hears()
    (ended,) = client.settles(4, 2)
    assert isinstance(ended, End)
    assert ended.error is not None
    assert ended.error.condition == "amqp:invalid-field"
    assert client.bench.depth() == 6


LARGE = {Symbol("much"): "x" * 5_000}


@pytest.mark.parametrize(
    "state",
    [Modified(True, True, LARGE), Rejected(Error("amqp:" + "x" * 600, "y", LARGE)), TransactionalState(b"t", Modified(True, True, LARGE))],
    ids=["modified", "rejected", "in a transaction that there is not"],
)
def test_what_an_outcome_carries_along_does_not_come_back(state: Any) -> None:
    """Once for each run of deliveries that it is about, it would be more than what was said; and a peer may take small frames only."""
    client = Client().opens(max_frame_size=512)
    client.consumes(credit=30)
    publishes(client, *"abcdefgh")
    for number in range(0, 8, 2):
        client.settles(number)
    client.octets()
    client.says(frame(0, Disposition(RECEIVER, 0, 7, False, state)))
    octets = client.octets()
    assert len(octets) < 400
    client.settles(0, 7)


def test_what_a_transfer_says_of_its_state_is_not_kept(client: Client) -> None:
    client.produces()
    client.says(frame(0, Transfer(1, 0, b"t", 0, False, True, state=Modified(True, True, LARGE)), b"\0"))
    (link,) = client.machine.sessions.by_channel[0].links.values()
    assert link._incoming.state is None  # type: ignore[union-attr]


def test_large_messages_count_for_what_may_wait_behind_the_relay() -> None:
    client = Client(limits=Limits(large_body_octets=1_000, credit_octets=10_000)).opens()
    client.bench.control("create", "queue/full", max_messages=1, limit_behavior="FLOW_CONTROL")
    client.produces(None)
    for _ in range(5):
        client.sends(written(properties=MessageProperties(to="full"), body=data(b"x" * 4_000)))
    told = outcomes(client.hears())
    assert [each.__class__.__name__ for each in told.values()] == ["Accepted", "Rejected"], "three wait, which is more than may"


# -- links that are not answered yet, or no more ----------------------------------------------------------------------------------------
def test_a_message_before_its_link_is_answered_is_refused_with_the_link(client: Client) -> None:
    attach = Attach("p", 1, False, source=Source(), target=Target("orders"), initial_delivery_count=0)
    client.says(frame(0, attach) + frame(0, Transfer(1, 0, b"t"), message()))
    attached, detached = client.hears()
    assert (type(attached), attached.target, detached.error.condition) == (Attach, None, "amqp:link:transfer-limit-exceeded")
    client.detaches(1)
    assert client.produces(handle=1)[0].target.address == "orders"


def test_a_message_behind_its_links_detach_ends_the_session(client: Client) -> None:
    client.produces(handle=1, target=Target(dynamic=True))
    client.says(frame(0, Detach(1, closed=True)) + frame(0, Transfer(1, 0, b"t"), message()))
    assert client.hears_one(End).error.condition == "amqp:session:unattached-handle"


def test_sessions_are_looked_through_for_each_attach_and_that_counts() -> None:
    client = Client().opens()
    for channel in range(1, 1000):
        client.says(frame(channel, Begin(None, 0, 10, 10)))
    client.machine.receive_data(frame(0, Attach("x", 0, RECEIVER, source=Source("orders"), target=Target())), client.bench.now)
    assert client.machine.effort > 200
