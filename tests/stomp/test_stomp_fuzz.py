"""Whatever arrives: no exception, no memory beyond the limits, at most one ERROR and then silence. Seeded, so a failure can be repeated."""

from __future__ import annotations

import random

import pytest

from broker_core.engine.commands import Command
from broker_core.engine.effects import Confirmed, Delivered, Refused
from broker_core.engine.refusal import Refusal
from broker_core.stomp.connection import Connection
from broker_core.stomp.frames import Parser
from broker_core.stomp.limits import Limits
from broker_core.stomp.login import Login
from broker_core.stomp.sections import CLIENT_COMMANDS, SERVER_COMMANDS
from tests.stomp.conversation import INSTANCE, PEER, message, parse

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
SUBSCRIBE = b"SUBSCRIBE\nid:1\ndestination:/queue/a\nack:client\n\n\0"
VALUES = (
    b"a", b"/queue/a", b"0", b"1", b"1.1", b"1.3", b"9.9", b"client", b"client-individual", b"true", b"ID\\cnode1-1", b"x\\", b"\xff",
    b"", b"-1", b"\\c\\n",
)  # fmt: skip
NAMES = (
    b"destination", b"id", b"ack", b"receipt", b"content-length", b"persistent", b"priority", b"expires", b"message-id", b"subscription",
    b"transaction", b"heart-beat", b"accept-version", b"selector", b"prefetch-count", b"reliability", b"foo", b"", b"a b", b"\xc3",
)  # fmt: skip


def plausible(chance: random.Random, oddity: float, version: bytes, subscribed: list[int]) -> bytes:
    """A frame that is right or, with the probability `oddity`, put together at random."""
    kind = chance.random() if chance.random() >= oddity else 2
    if kind < 0.4:
        body = chance.randbytes(chance.choice((0, 1, 50, 401, 2999)))
        return b"SEND\ndestination:/queue/a\nreceipt:%d\ncontent-length:%d\n\n%b\0" % (chance.randrange(99), len(body), body)
    if kind < 0.5:
        text = b"text " * chance.choice((1, 10, 100))
        return b"SEND\ndestination:/queue/a\npersistent:true\nfoo:%d\n\n%b\0" % (chance.randrange(9), text)
    if kind < 0.55:
        return b"\n" * chance.randrange(50)
    if kind < 0.6 and len(subscribed) > 1:
        return b"UNSUBSCRIBE\nid:%d\nreceipt:u\n\n\0" % subscribed.pop()
    if kind < 0.7 and len(subscribed) < LIMITS.subscriptions_max:
        subscribed.append(max(subscribed, default=0) + 1)
        return b"SUBSCRIBE\nid:%d\ndestination:/queue/a\nack:client-individual\nprefetch-count:9\n\n\0" % subscribed[-1]
    if kind < 1:
        tag = chance.randrange(1, 4)
        if version != b"1.2":
            message_id = b"ID\\cnode1-%d" % tag if version == b"1.1" else b"ID:node1-%d" % tag
            return b"ACK\nsubscription:1\nmessage-id:%b\n\n\0" % message_id
        return b"%b\nid:1.%d\n%b\n\0" % (chance.choice((b"ACK", b"ACK", b"NACK")), tag, chance.choice((b"", b"receipt:k\n")))
    command = chance.choice(sorted(CLIENT_COMMANDS | SERVER_COMMANDS)).encode()
    lines = [b"%b:%b" % (chance.choice(NAMES), chance.choice(VALUES)) for _ in range(chance.randrange(10))]
    end = chance.choice((b"\n", b"\n", b"\r\n"))
    return end.join([command, *lines, b"", chance.choice((b"", b"body", b"b\0dy"))]) + b"\0"


def mutated(chance: random.Random, octets: bytes) -> bytes:
    """The stream with a few octets changed, cut out, doubled or put in."""
    stream = bytearray(octets)
    for _ in range(chance.choice((0, 0, 1, 1, 2, 5))):
        at = chance.randrange(len(stream) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            stream[at : at + 1] = bytes((chance.choice((0, 10, 13, 58, 92, 255, chance.randrange(256))),))
        elif kind == 1:
            del stream[at : at + chance.choice((1, 5, 100))]
        elif kind == 2:
            stream[at:at] = stream[at : at + chance.choice((1, 20, 200))]
        else:
            stream[at:at] = chance.choice((b"\0", b"\n\n", b"\r\n\r\n", b"content-length:99999\n", b"x" * 600, b"SEND\n", b"a:b\n" * 9))
    return bytes(stream)


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
    oddity = chance.choice((0, 0.02, 0.2))
    subscribed = [1]  # the line feeds after it let a delivery come before the first ACK, however the stream is cut
    frames = [plausible(chance, oddity, version, subscribed) for _ in range(40)]
    stream = b"CONNECT\naccept-version:%b\nhost:/\n\n\0" % version + SUBSCRIBE + b"\n" * CHUNK + b"".join(frames)
    stream = mutated(chance, stream)
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
    stream = mutated(chance, b"".join(plausible(chance, 0.05, b"1.2", [1]) for _ in range(30)))
    meanings = []
    for size in (len(stream), CHUNK, 7, 1):
        machine = Connection(PEER, LIMITS, "Surety/0.1.0", INSTANCE, 0)
        machine.receive_data(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0", 0)
        machine.accept("guest", "s", 0)
        (attach,) = machine.receive_data(SUBSCRIBE, 0)
        machine.send([Delivered(PEER, attach.link, 1, [message(sequence=tag) for tag in (1, 2, 3)])], 0)  # type: ignore[union-attr]
        machine.data_to_send()
        meaning, parts = [], bytearray()
        for at in range(0, len(stream), size):
            for event in machine.receive_data(stream[at : at + size], 0):
                kind = type(event).__name__
                if kind == "BodyPart":
                    parts += event.octets  # type: ignore[union-attr]
                elif kind == "Send":
                    sent = event.message  # type: ignore[union-attr]
                    meaning.append((kind, event.address, event.token, bytes(parts) if sent.body is None else sent.body, sent.size))  # type: ignore[union-attr]
                    parts.clear()
                elif kind != "Settle":  # those that arrive together are one
                    meaning.append((kind, getattr(event, "link", 0)))
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
