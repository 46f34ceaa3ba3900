"""Whatever arrives: no exception, no memory beyond the limits, at most one ERROR and then silence. Seeded, so a failure can be repeated."""

from __future__ import annotations

import random

import pytest

from broker_core.engine.commands import Command, send_of
from broker_core.engine.outputs import Confirmed, Delivered, Refused
from broker_core.engine.refusal import Refusal
from broker_core.stomp.connection import BodyPart, Connection
from broker_core.stomp.frames import Parser
from broker_core.stomp.limits import Limits
from broker_core.stomp.login import Login
from broker_core.stomp.sections import SERVER_COMMANDS
from tests.stomp.conversation import INSTANCE, PEER, message, parse
from tests.stomp.plausible import Talk, mutated

LIMITS = Limits(
    header_octets_max=500,
    headers_max=8,
    line_octets_max=200,
    body_octets_max=3000,
    large_body_octets=400,
    part_octets_max=500,
    early_octets_max=2000,
    sections_max=4,
    section_octets_max=100,
    subscriptions_max=3,
    unconfirmed_max=20,
)
CHUNK = 300
MEANING = (
    "link", "address", "name", "durable", "shared", "wanted", "credit", "presettled", "transaction", "commit", "work",
    "xid", "verb", "again", "timeout", "after",
)  # fmt: skip
"""What tells one command from another."""
def answer(machine: Connection, event: object, chance: random.Random, delivered: dict[int, int]) -> None:
    """What an engine might say to a command."""
    token = getattr(event, "token", None)
    outputs: list[object] = []
    if type(event).__name__ == "Attach":
        delivered[event.link] = 4  # type: ignore[attr-defined]
        outputs.append(Delivered(PEER, event.link, 1, [message(sequence=tag) for tag in (1, 2, 3)]))  # type: ignore[attr-defined]
    if token is not None:
        refused = chance.random() < 0.01
        outputs.append(Refused(PEER, token, chance.choice(list(Refusal)), "detail") if refused else Confirmed(PEER, token))
    for link, tag in list(delivered.items()):
        if chance.random() < 0.3:
            outputs.append(Delivered(PEER, link, tag, [message(sequence=tag)]))
            delivered[link] += 1
    machine.send(outputs, 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(300))
def test_no_stream_of_octets_breaks_the_machine(seed: int) -> None:
    chance = random.Random(seed)
    machine = Connection(PEER, LIMITS, "Surety/0.1.0", INSTANCE, 0)
    version = chance.choice((b"1.0", b"1.1", b"1.2", b"1.2", b"1.2"))
    talk = Talk(chance, version, oddity=chance.choice((0, 0.02, 0.2)), subscriptions_max=LIMITS.subscriptions_max)
    # The line feeds let a delivery come before the first ACK, however the stream is cut.
    frames = [talk.connect(chance.choice((b"", b"me"))), talk.subscribe(), b"\n" * CHUNK]
    for tag in (1, 2, 3):  # what is delivered at once
        talk.hears(1, b"1.%d" % tag, b"ID\\cnode1-%d" % tag if version == b"1.1" else b"ID:node1-%d" % tag)
    frames += [talk.frame() for _ in range(60)]
    stream = mutated(chance, b"".join(frames))
    if chance.random() < 0.2:
        stream = stream[: chance.randrange(len(stream))]
    written, delivered, errors = bytearray(), {}, 0
    position = 0
    while position < len(stream):
        size = chance.choice((1, 2, 17, CHUNK))
        events = machine.receive_data(stream[position : position + size], 1000)
        position += size
        kept_max = LIMITS.header_octets_max + LIMITS.large_body_octets + CHUNK + LIMITS.early_octets_max
        assert machine.kept_octets <= kept_max
        while events:
            event = events.pop(0)
            if isinstance(event, Login):
                if chance.random() < 0.05:
                    machine.reject("no")
                else:
                    events = machine.accept("guest", "s", 1000) + events
            elif isinstance(event, Command):  # type: ignore[arg-type]
                answer(machine, event, chance, delivered)
        for piece in machine.data_to_send():
            assert isinstance(piece, bytes)
            written += piece
        closed = machine.wants_close
        if closed:
            errors += 1
            assert machine.close_reason
        if errors > 1:
            assert machine.kept_octets == 0 and machine.next_deadline() is None
    machine.tick(10_000_000)
    machine.receive_eof(10_000_000)
    reader = Parser(Limits(), SERVER_COMMANDS)
    reader.version = machine.version
    commands = [frame.command for frame in parse(reader, bytes(written))]
    assert commands.count("ERROR") <= 1
    if "ERROR" in commands:
        assert commands[-1] == "ERROR" and machine.wants_close


@pytest.mark.parametrize("seed", range(50))
def test_the_same_octets_mean_the_same_however_they_are_cut(seed: int) -> None:
    chance = random.Random(1000 + seed)
    talk = Talk(chance, b"1.2", oddity=0.05)
    first = talk.subscribe()
    stream = mutated(chance, b"".join(talk.frame() for _ in range(40)))
    meanings = []
    for size in (len(stream), CHUNK, 7, 1):
        machine = Connection(PEER, LIMITS, "Surety/0.1.0", INSTANCE, 0)
        machine.receive_data(talk.connect(b"me"), 0)
        machine.accept("guest", "s", 0)
        (attach,) = machine.receive_data(first, 0)
        machine.send([Delivered(PEER, attach.link, 1, [message(sequence=tag) for tag in (1, 2, 3)])], 0)  # type: ignore[union-attr]
        machine.data_to_send()
        meaning, parts = [], bytearray()
        for at in range(0, len(stream), size):
            for event in machine.receive_data(stream[at : at + size], 0):
                kind = type(event).__name__
                if isinstance(event, BodyPart):
                    parts += event.octets
                elif (send := send_of(event)) is not None:  # type: ignore[arg-type]
                    sent, within = send.message, getattr(event, "transaction", None)
                    meaning.append((kind, within, send.address, send.token, bytes(parts) if sent.body is None else sent.body, sent.size))
                    parts.clear()
                elif kind != "Settle":  # those that arrive together are one
                    meaning.append((kind, [getattr(event, name, None) for name in MEANING]))
        meanings.append((meaning, b"".join(machine.data_to_send()), machine.close_reason))  # type: ignore[arg-type]
    assert meanings[1:] == meanings[:1] * 3


def test_noise_is_refused_and_not_kept() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        machine = Connection(PEER, LIMITS, "Surety/0.1.0", INSTANCE, 0)
        for _ in range(20):
            assert machine.receive_data(chance.randbytes(CHUNK), 0) == []
        assert machine.wants_close and machine.kept_octets == 0
        assert len(machine.data_to_send()) == 1
