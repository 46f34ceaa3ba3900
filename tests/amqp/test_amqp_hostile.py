"""Whatever a client says, in whatever order: the machine answers or closes, the engine stays whole, and others are served."""

from __future__ import annotations

import gc
import random
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from broker_core.amqp.composite import write_composite
from broker_core.amqp.frames import EMPTY_FRAME, frame
from broker_core.amqp.limits import Limits
from broker_core.amqp.performatives import (
    ACCEPTED, RELEASED, Attach, Begin, Close, Coordinator, Declare, Detach, Discharge, Disposition, End, Flow, Modified, Open, Received, Rejected, Source,
    Target, TransactionalState, Transfer,
)  # fmt: skip
from broker_core.amqp.types import Described, Symbol, ULong
from broker_core.engine import commands as c
from tests.amqp.conversation import Client, Room, message, outcomes
from tests.amqp.messages import value, written

UINTS = (0, 0, 0, 1, 1, 2, 3, 5, 100, 2**31 - 1, 2**31, 2**32 - 1)
ADDRESSES = (
    None, "q", "topic://t", "queue://mq.sys.dmq", "temp-queue://node1-1-7.1", "temp-queue://node1-1-8.1", "topic://t.>", "a*", "", "x" * 2000, "/odd/x",
)  # fmt: skip
SMALL = Limits(large_body_octets=300, part_octets_max=200, section_octets_max=200, body_octets_max=5_000, links_max=6, channels_max=3, unconfirmed_max=20)


class Stranger:
    """Says anything."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def uint(self) -> int:
        return int(self.random.choice(UINTS))

    def state(self) -> Any:
        transaction = self.one(b"", b"x", (1).to_bytes(8, "big"), (2).to_bytes(8, "big"))
        return self.one(None, ACCEPTED, ACCEPTED, RELEASED, Rejected(), Modified(True, False), Modified(False, True), Received(1, 2),
            TransactionalState(transaction, ACCEPTED), TransactionalState(transaction))  # fmt: skip

    def source(self) -> Source | None:
        filters = self.one(None, None, {Symbol("s"): Described(ULong(0x0000468C00000004), self.one("n = 1", "= =", "", 5))},
            {Symbol("l"): Described(Symbol("apache.org:no-local-filter:list"), [])}, {Symbol("x"): 5})  # fmt: skip
        source = Source(self.one(*ADDRESSES), self.one(0, 0, 1, 2), self.one("never", "link-detach", "session-end"), 0, self.one(False, False, True))
        source.distribution_mode, source.filter, source.default_outcome = self.one(None, "copy", "move", "odd"), filters, self.one(None, ACCEPTED)
        source.capabilities = self.one((), ("topic",), ("queue",), ("shared", "topic"), ("shared", "global"))
        return self.one(None, source, source)

    def target(self) -> Any:
        return self.one(None, Target(self.one(*ADDRESSES)), Target(dynamic=True), Target(self.one(*ADDRESSES), capabilities=("topic",)), Coordinator())

    def performative(self) -> Any:
        kind = self.one(*[Attach] * 4, *[Transfer] * 5, *[Flow, Disposition, Detach] * 2, Open, Begin, End, Close)
        if kind is Attach:
            attach = Attach(self.one("a", "b", "c", "c|2", "", "n" * 2000), self.uint(), self.one(True, False), self.one(0, 1, 2), self.one(0, 1))
            attach.source, attach.target, attach.initial_delivery_count = self.source(), self.target(), self.one(None, 0, 2**32 - 1)
            attach.unsettled = self.one(None, None, {b"x": None})
            return attach
        if kind is Flow:
            flow = Flow(self.one(None, 0, 1, self.uint()), self.uint(), 0, self.uint(), self.one(None, 0, 1, self.uint()))
            flow.delivery_count, flow.link_credit = self.one(None, self.uint()), self.one(None, self.uint())
            flow.drain, flow.echo = self.one(True, False), self.one(True, False)
            return flow
        if kind is Transfer:
            transfer = Transfer(self.one(0, 1, 2, self.uint()), self.one(None, self.uint(), self.random.randrange(50)), self.one(None, b"t"), 0)
            transfer.settled, transfer.more, transfer.state = self.one(None, True, False), self.one(True, False, False), self.state()
            transfer.resume, transfer.aborted = self.one(False, False, False, True), self.one(False, False, True)
            return transfer
        if kind is Disposition:
            return Disposition(self.one(True, True, False), self.uint(), self.one(None, self.uint()), self.one(True, False), self.state())
        if kind is Detach:
            return Detach(self.one(0, 1, self.uint()), self.one(True, False))
        if kind is Begin:
            return Begin(self.one(None, None, 0), self.uint(), self.uint(), self.uint())
        return {Open: Open("again"), End: End(), Close: self.one(Close(), Flow(0, 1, 0, 1))}[kind]

    def payload(self) -> bytes:
        transaction = self.one(b"x", (1).to_bytes(8, "big"), (2).to_bytes(8, "big"))
        return self.one(b"", message(), message(bytes(self.random.randrange(2000))), written(n=1), value("x"), bytes(self.random.randbytes(20)), b"\0\x53\x75",
            b"\0\x53\x77" + write_composite(Declare()), b"\0\x53\x77" + write_composite(Discharge(transaction, self.one(True, False))))  # fmt: skip

    def frame(self) -> bytes:
        performative = self.performative()
        payload = self.payload() if isinstance(performative, Transfer) else b""
        return frame(self.one(0, 0, 0, 0, 1, 2, 3, 65535), performative, payload)


@pytest.mark.parametrize("seed", range(120))
def test_frames_in_any_order_harm_nobody(seed: int) -> None:
    stranger, room = Stranger(seed), Room()
    neighbour = Client(room, peer=8).opens("neighbour")
    neighbour.produces("q")
    hostile = Client(room, limits=SMALL).opens("stranger")
    for _ in range(60):
        if hostile.machine.wants_close:
            break
        hostile.says(b"".join([stranger.frame() for _ in range(stranger.one(1, 1, 3))]))
        if stranger.one(0, 0, 0, 1):
            neighbour.sends(message(b"from next door"))
        if stranger.one(0, 0, 0, 0, 1):
            hostile.passes(stranger.one(1, 1000, 20_000))
        assert len(hostile.octets()) < 1 << 20
        assert len(hostile.machine.sessions.ending) <= SMALL.channels_max
        assert hostile.machine.large_bodies >= 0
    assert hostile.machine.receive_eof(room.now) in ([], [c.PeerLost(hostile.peer)])
    room.apply(c.PeerLost(hostile.peer))
    hostile.flush()
    assert hostile.peer not in room.engine.shard.peers
    neighbour.hears()
    assert outcomes(neighbour.speaks()) == {}
    number = neighbour.sends(message(b"still here"))
    assert outcomes(neighbour.hears()) == {number: ACCEPTED}


@pytest.mark.parametrize("seed", range(60))
def test_octets_that_are_damaged_harm_nobody(seed: int) -> None:
    stranger, room = Stranger(seed), Room()
    hostile = Client(room, limits=SMALL).opens("stranger")
    octets = bytearray(b"".join([stranger.frame() for _ in range(20)]) + EMPTY_FRAME)
    for _ in range(stranger.random.randrange(1, 12)):
        octets[stranger.random.randrange(len(octets))] = stranger.random.randrange(256)
    hostile.says(bytes(octets[: stranger.random.randrange(1, len(octets))]))
    hostile.octets()
    room.apply(*hostile.machine.receive_eof(room.now))
    hostile.flush()
    assert hostile.peer not in room.engine.shard.peers


def test_outcomes_of_everything_said_again_and_again_cost_no_more_than_what_is_outstanding() -> None:
    client = Client().opens()
    client.produces()
    for _ in range(20):
        client.sends(message())
    client.consumes(handle=3, credit=10)
    said = frame(0, Disposition(True, 100, 2**31, True, ACCEPTED)) * 900
    client.says(said)
    assert client.bench.depth() == 20
    assert client.machine.effort < 10_000


def test_of_frames_full_of_values_one_is_read_at_a_time() -> None:
    client = Client().opens()
    said = frame(0, Flow(None, 100, 0, 100, properties={Symbol("p"): [7] * 60_000}))
    client.machine.receive_data(said * 3, client.bench.now)
    turns = 1
    while client.machine.unfinished:
        client.machine.receive_data(b"", client.bench.now)
        turns += 1
    assert turns >= 3


def test_of_messages_full_of_properties_as_well() -> None:
    client = Client().opens()
    client.produces()
    for number in range(3):
        properties = {f"p{number}.{place}": place for place in range(3_000)}
        client.machine.receive_data(frame(0, Transfer(1, number, b"%d" % number, 0), written(**properties)), client.bench.now)
        assert client.machine.effort > 10_000


def test_what_an_attach_says_beside_what_it_needs_is_not_kept() -> None:
    client = Client().opens()
    much = {Symbol(f"p{number}"): [number] * 20 for number in range(200)}
    source = Source("orders", filter={Symbol("odd"): Described(Symbol("odd"), [7] * 5_000)}, default_outcome=Modified(True, False, {Symbol("a"): [7] * 5_000}))
    attaches = [
        Attach("c{}", 0, True, source=source, target=Target(dynamic_node_properties=much)),
        Attach("p{}", 0, False, source=source, target=Target("orders", dynamic_node_properties=much), properties=much, initial_delivery_count=0),
        Attach("t{}", 0, False, source=source, target=Coordinator(), properties=much, initial_delivery_count=0),
    ]
    gc.collect()
    tracemalloc.start()
    for handle in range(6):
        attach = replace(attaches[handle % 3], handle=handle, name=f"{handle}")
        client.says(frame(0, attach))
        client.octets()
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(client.machine.sessions.by_channel[0].links) == 6
    assert kept < 6 * 10_000, f"{kept / 6:.0f} octets a link"


def test_messages_that_never_end_take_no_more_than_a_connection_may() -> None:
    client = Client(limits=Limits(begun_octets_max=1_000_000)).opens()
    piece = b"\0\x53\x75\xb0\x10\0\0\0" + b"x" * 100_000
    refused = 0
    for handle in range(30):
        client.produces(handle=handle)
        client.says(frame(0, Transfer(handle, handle, b"t", 0, False, True), piece))
        refused += len(outcomes(client.hears()))
    assert refused == 21
    client.says(frame(0, Transfer(25, None, None, None, None, False), piece))
    client.says(frame(0, Transfer(25, 40, b"t", 0, False, False), message(b"whole")))
    assert outcomes(client.hears()) == {40: ACCEPTED}
    client.speaks(*[Detach(handle, closed=True) for handle in range(5)])
    client.speaks(*[Transfer(handle, aborted=True) for handle in range(5, 9)])
    assert client.machine.begun_octets == 0


def test_pieces_of_no_octets_or_of_few_are_no_way_around_that() -> None:
    client = Client(limits=Limits(begun_octets_max=10_000)).opens()
    client.produces()
    client.says(frame(0, Transfer(1, 0, b"t", 0, False, True)) * 1_000)
    assert outcomes(client.hears()) == {}
    assert client.machine.begun_octets == 0
    client.says(frame(0, Transfer(1, 0, b"t", 0, False, True), b"xy") * 1_000)
    assert outcomes(client.hears())[0].error.condition == "amqp:resource-limit-exceeded"
    assert client.machine.begun_octets == 0


def test_who_never_answers_that_links_are_detached_loses_its_session() -> None:
    client = Client(limits=SMALL).opens()
    attaches = [Attach(f"c{handle}", handle, True, source=Source("/odd/x"), target=Target()) for handle in range(20)]
    heard = client.speaks(*attaches)
    (end,) = [each for each in heard if isinstance(each, End)]
    assert end.error is not None and end.error.condition == "amqp:resource-limit-exceeded"
    assert client.speaks(End(), Begin(None, 0, 10, 10), attaches[0])[-1].error.condition == "amqp:invalid-field"


def test_transactions_that_are_refused_leave_nothing_behind() -> None:
    client = Client().opens()
    client.coordinates()
    for _ in range(client.bench.engine.shard.limits.transactions_max + 20):
        client.sends(b"\0\x53\x77" + write_composite(Declare()), 9)
    assert len(client.machine.transactions._states) == client.bench.engine.shard.limits.transactions_max
