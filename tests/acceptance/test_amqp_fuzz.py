"""Hostile AMQP over real sockets: the node lives, its memory stays bounded, and a healthy connection notices nothing."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from broker_core.amqp.composite import write_composite
from broker_core.amqp.encoding import encode
from broker_core.amqp.frames import AMQP_HEADER, SASL_HEADER, frame, sasl_frame
from broker_core.amqp.performatives import SENDER, Attach, Begin, Open, SaslInit, Source, Target, Transfer
from broker_core.amqp.types import Described, ULong
from tests.acceptance.healthy import HealthyTraffic
from tests.acceptance.test_fuzz import still_the_same_node
from tests.amqp.test_amqp_fuzz import mutated
from tests.amqp.test_amqp_hostile import Stranger
from tests.support.service import Service

SEED = 11
CONVERSATIONS = 240
SECONDS = float(os.environ.get("FUZZ_SECONDS", "300"))
"""Of the long form."""
FRAMES = 60
LISTENED_SECONDS = 0.01
LOGIN_SECONDS_MAX = 5
LOGIN = SASL_HEADER + sasl_frame(SaslInit("PLAIN", b"\0guest\0guest")) + AMQP_HEADER
MIB = 1 << 20
Said = tuple[bytes, bytes]
"""What is said until the node has answered with open, if it is to, and what is said then."""
Say = Callable[[random.Random], Said]


def opened(rng: random.Random) -> bytes:
    """A name of its own, or one of a few for which strangers fight."""
    return LOGIN + frame(0, Open(f"stranger {rng.randrange(5)}" if rng.random() < 0.3 else f"stranger {rng.random()}")) + frame(0, Begin(None, 0, 1000, 1000))


def out_of_order(rng: random.Random) -> Said:
    stranger = Stranger(rng.randrange(1 << 30))
    return opened(rng), b"".join([stranger.frame() for _ in range(rng.randrange(1, FRAMES))])


def damaged(rng: random.Random) -> Said:
    begun, octets = out_of_order(rng)
    return (begun, mutated(rng, octets)) if rng.random() < 0.8 else (b"", mutated(rng, begun + octets))


def truncated(rng: random.Random) -> Said:
    begun, octets = out_of_order(rng)
    return (begun, octets[: rng.randrange(len(octets))]) if rng.random() < 0.8 else (b"", begun[: rng.randrange(len(begun))])


def oversized(rng: random.Random) -> Said:
    size = rng.choice((0, 7, 8, 131_073, 1 << 20, (1 << 31) - 1, (1 << 32) - 1))
    return opened(rng), size.to_bytes(4, "big") + bytes((rng.choice((2, 2, 0, 255)), rng.choice((0, 0, 1)), 0, 0)) + bytes(rng.randrange(5000))


def nested(rng: random.Random) -> Said:
    """Lists in lists, maps in maps, descriptions of descriptions: in open, in a filter, in a message."""
    opening = rng.choice((
        b"\xd0\0\0\xff\xff\0\0\0\1", b"\xc0\xff\1", b"\xd1\0\0\xff\xff\0\0\0\2\x40", b"\0\x53\x70\0\x53\x71", b"\0",
        b"\xf0\0\0\xff\xff\0\0\0\1\xf0",
    ))  # fmt: skip
    deep = opening * rng.randrange(1, 12_000)
    if rng.random() < 0.5:
        return opened(rng), producer() + frame(0, Transfer(0, 0, b"t", 0), deep)
    body = b"\0\x53" + bytes((rng.choice((0x10, 0x11, 0x12, 0x13, 0x15, 0x16)),)) + deep
    return opened(rng), (len(body) + 8).to_bytes(4, "big") + b"\2\0\0\0" + body


def producer() -> bytes:
    return frame(0, Attach("p", 0, SENDER, source=Source(), target=Target("fuzz"), initial_delivery_count=0))


def vast(rng: random.Random) -> Said:
    """What says that it is much: arrays of nothing, lists of empty lists, octets that do not come."""
    count = rng.choice((1 << 16, 1 << 24, (1 << 32) - 1)).to_bytes(4, "big")
    value = rng.choice((
        b"\xf0\0\0\0\5" + count + b"\x40", b"\xf0\0\0\0\x05" + count + b"\x45", b"\xd0" + count + count, b"\xd1" + count + count, b"\xb0" + count,
        encode([[]] * 50_000), encode([Described(ULong(0), None)] * 20_000), b"\xa1\xff" * 30_000,
    ))  # fmt: skip
    section = b"\0\x53" + bytes((rng.choice((0x70, 0x71, 0x72, 0x73, 0x74, 0x76, 0x77)),)) + value
    body = b"\0\x53" + bytes((rng.choice((0x10, 0x12, 0x13, 0x15)),)) + value
    frames = [producer() + frame(0, Transfer(0, 0, b"t", 0), section), (len(body) + 8).to_bytes(4, "big") + b"\2\0\0\0" + body]
    return opened(rng), rng.choice(frames)


def strange(rng: random.Random) -> Said:
    """Not even a login."""
    begun = rng.choice((SASL_HEADER, AMQP_HEADER, b"AMQP\2\1\0\0", b"AMQP\0\0\x09\x01", b"CONNECT\n\n\0", b"GET / HTTP/1.1\r\n\r\n", b""))
    return b"", begun + rng.choice((rng.randbytes(rng.randrange(3000)), write_composite(Open("x")), sasl_frame(SaslInit("PLAIN", rng.randbytes(4000)))))


KINDS: tuple[Say, ...] = (out_of_order, out_of_order, damaged, damaged, truncated, oversized, nested, vast, strange)


def inject(port: int, said: Said, rng: random.Random) -> bool:
    """In pieces; it may hang up at any time. Whether it let the stranger in."""
    begun, octets = said
    answered = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=LOGIN_SECONDS_MAX) as stranger:
        if begun:
            stranger.sendall(begun)
            while b"surety-" not in answered and (came := stranger.recv(65536)):
                answered += came
        cut = rng.randrange(len(octets) + 1)
        for piece in (octets[:cut], octets[cut:]):
            stranger.sendall(piece)
        stranger.settimeout(LISTENED_SECONDS)
        while stranger.recv(65536):
            pass
    return b"surety-" in answered


def fuzz(service: Service, seed: int, goes_on: Callable[[int], bool]) -> int:
    """Conversations that were held."""
    pid, resident = service.await_pid("node"), service.resident_octets("node")
    rng, held, let_in = random.Random(seed), 0, 0
    with HealthyTraffic(service.stomp_port, f"/queue/healthy.amqp.{seed}") as healthy:
        while goes_on(held):
            say = KINDS[held % len(KINDS)]
            let_in += inject(service.amqp_port, say(rng), rng)
            assert healthy.failure is None, f"conversation {held} ({say.__name__}) of seed {seed}: {healthy.failure!r}\n{service.evidence()}"
            assert service.pid("node") == pid, f"conversation {held} ({say.__name__}) of seed {seed} ended the node\n{service.evidence()}"
            held += 1
        healthy.unharmed()
        grown = (service.resident_octets("node", peak=True) - resident) / MIB
        assert let_in > held / 2
        print(f"{held} conversations, {let_in} of those let in; the node grew by {grown:.0f} MiB at most")
        print(f"healthy: {healthy.rounds} rounds, the slowest {healthy.slowest * 1000:.0f} ms")
    still_the_same_node(service, pid, resident)
    return held


def test_hostile_frames_harm_neither_the_node_nor_its_other_connections(fuzzed: Service) -> None:
    fuzz(fuzzed, SEED, lambda held: held < CONVERSATIONS)


@pytest.mark.slow
def test_minutes_of_hostile_frames_harm_neither_the_node_nor_its_other_connections(fuzzed: Service) -> None:
    ends = time.monotonic() + SECONDS
    fuzz(fuzzed, SEED + 1, lambda _: time.monotonic() < ends)
