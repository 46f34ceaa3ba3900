"""Whatever arrives: values and frames are read or refused as Malformed, in memory proportionate to what arrived. Seeded, so that a failure repeats."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.amqp.composite import read_composite, write_composite
from broker_core.amqp.decoding import decode
from broker_core.amqp.encoding import encode
from broker_core.amqp.frames import AMQP_HEADER, Reader, frame
from broker_core.amqp.performatives import ACCEPTED, RECEIVER, Attach, Begin, Disposition, Flow, Modified, Open, Source, Target, TransactionalState, Transfer
from broker_core.amqp.types import VALUES_MAX, Array, Described, Malformed, Symbol, UInt, ULong
from tests.amqp.composites import composites
from tests.amqp.values import values

FRAME_OCTETS_MAX = 1 << 17
OCTETS_A_VALUE = 400
"""The costliest values for what they say are empty maps and lists, and described nulls."""


def conversation() -> bytes:
    return AMQP_HEADER + b"".join(
        [
            frame(0, Open("c", idle_time_out=1000, desired_capabilities=("a", "b"), properties={"product": "p", "list": [1, {"a": UInt(5)}]})),
            frame(0, Begin(None, 0, 100, 100)),
            frame(0, Attach("l", 0, False, source=Source("q", filter={"s": Described(Symbol("x"), "a > 5")}), target=Target("q"))),
            frame(0, Flow(0, 100, 0, 100, 0, 0, 10)),
            frame(0, Transfer(0, 0, b"tag", 0, False), b"\0\x53\x77\xa1\x05hello"),
            frame(0, Transfer(0, 1, b"tag", 0, False, state=TransactionalState(b"t", Modified(True, False, {"a": 1}))), b"\0\x53\x77\xa1\x05hello"),
            frame(0, Disposition(RECEIVER, 0, 1, True, ACCEPTED)),
        ]
    )


def mutated(rng: random.Random, octets: bytes) -> bytes:
    """A few things wrong with it."""
    made = bytearray(octets)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(made))
        match rng.randrange(6):
            case 0:
                made[at] = rng.randrange(256)
            case 1:
                made[at] = rng.choice(b"\x00\x40\x45\x53\x80\xa0\xa1\xb0\xc0\xc1\xd0\xd1\xe0\xf0\xff")
            case 2:
                del made[at : at + rng.randint(1, 8)]
            case 3:
                made[at:at] = rng.randbytes(rng.randint(1, 8))
            case 4:
                made[at : at + 4] = rng.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff"])
            case _:
                part = made[at : at + rng.randint(1, 64)]
                made[at:at] = part
        if not made:
            made = bytearray(b"\0")
    return bytes(made)


def chunks(rng: random.Random, octets: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(octets):
        size = rng.choice([1, 3, 8, 100, 1000])
        yield octets[at : at + size]
        at += size


# -- nothing but Malformed ------------------------------------------------------------------------------------------------------------
@given(st.binary(max_size=200))
@settings(deadline=None, max_examples=1000)
def test_random_octets(octets: bytes) -> None:
    try:
        value, at = decode(octets)
    except Malformed:
        return
    assert at <= len(octets)
    encode(value)


@given(st.one_of(values.map(encode), composites.map(write_composite)), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=1000)
def test_values_that_were_damaged(octets: bytes, rng: random.Random) -> None:
    damaged = mutated(rng, octets)
    for read in (lambda: decode(damaged), lambda: read_composite(damaged, 0, len(damaged))):
        try:
            _, at = read()
        except Malformed:
            continue
        assert at <= len(damaged)


@pytest.mark.parametrize("seed", range(40))
def test_conversations_that_were_damaged(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        reader = Reader(4096)
        try:
            for chunk in chunks(rng, mutated(rng, conversation() * 2)):
                for _ in reader.receive(chunk):
                    pass
                assert reader.kept_octets <= 4096 + 1000
        except Malformed:
            continue


def test_conversations_that_are_cut_off_are_waited_for() -> None:
    octets = conversation()
    for length in range(len(octets)):
        assert len(list(Reader(4096).receive(octets[:length]))) <= 8


# -- memory ---------------------------------------------------------------------------------------------------------------------------
HOSTILE: dict[str, Callable[[], bytes]] = {
    "empty lists": lambda: encode([[]] * VALUES_MAX),
    "empty maps": lambda: encode([{}] * (VALUES_MAX // 2)),
    "described nulls": lambda: encode([Described(ULong(0), None)] * 60_000),
    "lists of one": lambda: encode([[None]] * 30_000),
    "small numbers": lambda: encode([UInt(7)] * 60_000),
    "empty symbols": lambda: encode([Symbol("")] * 60_000),
    "a map of numbers": lambda: encode({UInt(number): None for number in range(30_000)}),
    "arrays of nulls": lambda: encode([Array(type(None), [None] * 255)] * 250),
    "an array of nulls": lambda: b"\xf0" + (5).to_bytes(4, "big") + (1 << 32 - 1).to_bytes(4, "big") + b"\x40",
    "arrays of empty arrays": lambda: encode(Array(Array, [Array(bool)] * 6_000)),
    "lists that say they are large": lambda: b"\xd0\xff\xff\xff\xff\xff\xff\xff\xff" * 10_000,
    "binary that says it is large": lambda: b"\xb0\xff\xff\xff\xff" * 20_000,
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_memory_is_in_proportion_to_what_arrived(make: Callable[[], bytes]) -> None:
    octets = make()
    tracemalloc.start()
    try:
        decode(octets)
    except Malformed:
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most <= 20_000 + OCTETS_A_VALUE * min(len(octets), VALUES_MAX)


def test_a_frame_under_way_is_held_once() -> None:
    octets = AMQP_HEADER + frame(0, Transfer(0, 0, b"t", 0), bytes(FRAME_OCTETS_MAX - 100))[:-1]
    reader = Reader(FRAME_OCTETS_MAX)
    tracemalloc.start()
    for at in range(0, len(octets), 10):
        assert all(not hasattr(each, "performative") for each in reader.receive(octets[at : at + 10]))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reader.kept_octets > FRAME_OCTETS_MAX - 200
    assert most < 3 * FRAME_OCTETS_MAX
