"""Drains whose consumers change their minds, or whose messages cannot leave (transport 2.6.7)."""

from __future__ import annotations

from broker_core.amqp.frames import frame
from broker_core.amqp.performatives import RECEIVER, Attach, Flow, Source
from tests.amqp.conversation import Client, bodies, publishes


def flows(heard: list[object]) -> list[tuple[int | None, int | None, bool]]:
    return [(each.delivery_count, each.link_credit, each.drain) for each in heard if isinstance(each, Flow)]


def test_who_takes_a_drain_back_before_it_is_answered_keeps_the_credit(client: Client) -> None:
    """Its word crosses the engine's."""
    client.consumes(credit=0)
    events = client.machine.receive_data(frame(0, client.grants(0, 5, 0, drain=True)), client.bench.now)
    events += client.machine.receive_data(frame(0, client.grants(0, 3, 0)), client.bench.now)
    client.bench.apply(*events[:1])
    drained = client.bench.engine.flush(client.bench.now)
    client.bench.apply(*events[1:])
    client.bench.release(drained)
    assert flows(client.hears()) == []
    publishes(client, *"abcd")
    assert bodies(client.hears()) == [b"a", b"b", b"c"]


def test_while_what_it_was_sent_waits_for_its_session_as_well(client: Client) -> None:
    client.begins(channel=1, window=1)
    client.hears()
    publishes(client, *"ab")
    client.speaks(Attach("x", 0, RECEIVER, source=Source("orders")), client.grants(0, 5, 0, drain=True, window=1), channel=1)
    heard = client.speaks(client.grants(0, 20, 0, window=5, seen=1), channel=1)
    assert (bodies(heard), flows(heard)) == ([b"b"], [])
    publishes(client, "c")
    assert bodies(client.hears()) == [b"c"]


def test_who_asks_twice_is_answered_once(client: Client) -> None:
    client.consumes(credit=0)
    drain = frame(0, client.grants(0, 5, 0, drain=True))
    client.reads(drain * 2)
    client.flush()
    assert flows(client.hears()) == [(5, 0, True)]


def test_it_hears_so_behind_a_delivery_whose_body_is_gone(client: Client) -> None:
    client = Client(cut=client.cut).opens(max_frame_size=512)
    client.begins(channel=1, window=1)
    client.hears()
    publishes(client, "x" * 1000)
    client.speaks(Attach("x", 0, RECEIVER, source=Source("orders")), client.grants(0, 5, 0, drain=True, window=1), channel=1)
    head = client.machine.sessions.by_channel[1].head
    assert head is not None
    client.machine.abort(head)
    assert flows(client.speaks(Flow(1, 5, 0, 10), channel=1)) == [(5, 0, True)]
