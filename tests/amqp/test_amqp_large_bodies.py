"""Large bodies on their way to clients: asked for, and handed over part by part."""

from __future__ import annotations

from broker_core.engine import commands as c
from broker_core.engine.message import Encoding, Header, Message, Reliability, StoredBody
from tests.amqp.conversation import Client, Cut, body_of, message, publishes, transfers


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
