"""A peer may insist on frames of 512 octets (transport 2.7.1): nothing that it is told is larger."""

from __future__ import annotations

import pytest

from broker_core.amqp.performatives import RECEIVER, SENDER, Attach, Close, Disposition, End, Error, Rejected, Source, Target
from broker_core.amqp.refusals import fitting
from broker_core.amqp.types import Described
from tests.amqp.conversation import SELECTOR, Client

SMALLEST = 512
LONG = "n" * 240


@pytest.fixture
def small() -> Client:
    client = Client().opens(max_frame_size=SMALLEST)
    told = client.machine.data_to_send

    def measured() -> list[bytes]:
        octets = b"".join(told())
        at = 0
        while at < len(octets):
            size = int.from_bytes(octets[at : at + 4], "big")
            assert size <= SMALLEST, f"a frame of {size} octets"
            at += size
        return [octets]

    client.machine.data_to_send = measured  # type: ignore[method-assign]
    return client


def selective(name: str, selector: str) -> Attach:
    return Attach(name, 0, RECEIVER, source=Source("orders", filter={"jms-selector": Described(SELECTOR[0], selector)}), target=Target())


def test_a_consumer_whose_attach_cannot_be_answered_is_refused(small: Client) -> None:
    attached, detached = small.speaks(selective("c", "name = '" + "x" * 500 + "'"))
    assert (attached.source, detached.error.condition) == (None, "amqp:frame-size-too-small")
    assert small.machine.links.senders == {}
    assert small.bench.engine.shard.links == {}


def test_a_producer_as_well_and_what_it_has_said_of_its_own_is_not_repeated(small: Client) -> None:
    attach = Attach("p", 1, SENDER, source=Source("s" * 500), target=Target("q" * 100), initial_delivery_count=0)
    attached, detached = small.speaks(attach)
    assert (attached.target, attached.source, detached.error.condition) == (None, None, "amqp:frame-size-too-small")


def test_a_subscription_that_is_looked_for_as_well() -> None:
    known = Client(peer=3).opens("client")
    durable = Source("news", capabilities=("topic",), durable=2, expiry_policy="never", filter={"s": Described(SELECTOR[0], "name = '" + "x" * 500 + "'")})
    known.speaks(Attach("sub", 0, RECEIVER, source=durable, target=Target()))
    known.detaches(0, closed=False)
    client = Client(known.bench).opens("client", max_frame_size=SMALLEST)
    attached, detached = client.speaks(Attach("sub", 0, RECEIVER, source=None, target=Target()))
    assert (attached.source, detached.error.condition) == (None, "amqp:frame-size-too-small")


def test_a_link_whose_name_alone_is_too_long_ends_its_session(small: Client) -> None:
    (ended,) = small.speaks(Attach("n" * 500, 0, RECEIVER, source=Source("orders"), target=Target()))
    assert isinstance(ended, End)
    assert ended.error is not None
    assert ended.error.condition == "amqp:frame-size-too-small"
    small.says(b"")
    assert small.machine.sessions.by_channel == {}


def test_of_the_reason_why_a_message_is_rejected_the_beginning_is_told() -> None:
    rejected = Disposition(RECEIVER, 1, None, True, Rejected(Error("amqp:invalid-field", "\N{EURO SIGN}" * 500)))
    octets = fitting(0, rejected, SMALLEST)
    assert SMALLEST - 10 < len(octets) <= SMALLEST


def test_of_the_reason_why_the_connection_closes_as_well(small: Client) -> None:
    small.machine.refuse("x" * 1000)
    (closed,) = small.hears()
    assert isinstance(closed, Close)
    assert closed.error is not None
    assert closed.error.description is not None
    assert 300 < len(closed.error.description) < SMALLEST
