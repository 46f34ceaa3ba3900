"""Large bodies on their way to clients: asked for, and handed over part by part."""

from __future__ import annotations

from broker_core.amqp.performatives import RECEIVER, Attach, Detach, Flow, Source
from broker_core.engine import commands as c
from broker_core.engine.message import Encoding, Header, Message, Reliability, StoredBody
from tests.amqp.conversation import Client, Cut, bodies, body_of, message, publishes, transfers


def large(client: Client, size: int = 3000) -> bytes:
    body = bytes(range(250)) * (size // 250)
    octets = message(body)
    header = Header(octets[: len(octets) - size], 4, Reliability.EXPRESS, encoding=Encoding.AMQP)
    client.bench.apply(c.Send(1, None, "queue/orders", Message(header, StoredBody(5, size), len(octets))))
    client.flush()
    return body


def test_a_large_body_is_asked_for_and_leaves_part_by_part(cut: Cut) -> None:
    client = Client(cut=cut).opens(max_frame_size=1000)
    body = large(client)
    payloads = [each[1] for each in client.consumes() if isinstance(each, tuple)]
    wanted = client.machine.wanted_body
    assert wanted is not None and wanted.stored == StoredBody(5, 3000)
    for at in (0, 1000, 2000):
        client.machine.supply(wanted, body[at : at + 1000], client.bench.now)
        payloads += [each[1] for each in client.hears()]
    assert client.machine.wanted_body is None
    assert body_of(b"".join(payloads)) == body
    assert client.settles(0) == []
    assert client.bench.depth() == 0


def test_a_settled_large_body_is_over_when_it_has_left(client: Client) -> None:
    body = large(client)
    client.consumes(snd_settle_mode=1)
    client.passes(1000)
    assert client.bench.depth() == 1
    wanted = client.machine.wanted_body
    assert wanted is not None
    client.machine.supply(wanted, body, client.bench.now)
    assert [type(command) for command in client.machine.commands] == [c.Settle]
    client.bench.apply(*client.machine.commands)
    client.bench.flush()
    assert client.bench.depth() == 0


def test_a_body_that_is_gone_aborts_its_delivery_and_others_follow(client: Client) -> None:
    large(client)
    publishes(client, "next")
    client.consumes()
    wanted = client.machine.wanted_body
    assert wanted is not None
    client.machine.supply(wanted, bytes(1000), client.bench.now)
    client.machine.abort(wanted)
    heard = client.hears()
    assert [transfer.aborted for transfer in transfers(heard)][-2:] == [True, False]
    assert heard[-1][1].endswith(b"next")


def test_what_waits_behind_a_body_goes_on_when_that_ones_link_closes(client: Client) -> None:
    large(client)
    client.consumes(handle=0, credit=1)
    publishes(client, "next")
    assert bodies(client.consumes(handle=1, credit=1)) == [], "one session writes one delivery at a time"
    heard = client.speaks(Detach(0, closed=True))
    assert [(transfer.handle, transfer.aborted) for transfer in transfers(heard)] == [(0, True), (1, False)]


def test_a_delivery_whose_body_is_gone_is_aborted_when_the_session_has_room(client: Client) -> None:
    large(client)
    publishes(client, "next")
    client.begins(channel=1, window=1)
    client.speaks(Attach("x", 0, RECEIVER, source=Source("orders")), client.grants(0, 5, 0, window=1), channel=1)
    wanted = client.machine.wanted_body
    assert wanted is not None
    client.machine.abort(wanted)
    assert client.machine.wanted_body is None
    assert client.hears() == []
    heard = client.speaks(Flow(1, 2, 0, 10), channel=1)
    assert [transfer.aborted for transfer in transfers(heard)] == [True, False]
    assert heard[-1][1].endswith(b"next")



def test_a_link_that_closes_while_a_body_is_read_aborts_its_delivery(client: Client) -> None:
    large(client)
    client.consumes()
    heard = client.speaks(Detach(0, closed=True))
    assert [transfer.aborted for transfer in transfers(heard)] == [True]
    assert isinstance(heard[-1], Detach)
