"""Sections: told apart without looking into the body, and kept octet by octet."""

from __future__ import annotations

import random

import pytest

from broker_core.amqp.encoding import encode
from broker_core.amqp.performatives import MessageHeader, MessageProperties
from broker_core.amqp.amending import with_annotations, without_expiry, write_header
from broker_core.amqp.sections import DATA, FOOTER, SEQUENCE, VALUE, body_sections, check_body, open_message
from broker_core.amqp.types import Array, Described, Malformed, Symbol, Timestamp, UInt, ULong
from tests.amqp.messages import annotated, data, section, value, written

HEADER, DELIVERY = section(0x70, [True, None, UInt(1000)]), section(0x71, {Symbol("a"): 1})
ANNOTATIONS, PROPERTIES, APPLICATION = annotated(a=1), section(0x73, ["id", None, "to"]), section(0x74, {"p": 1})
OPENINGS = [
    b"", HEADER, HEADER + DELIVERY, ANNOTATIONS, PROPERTIES, APPLICATION, HEADER + ANNOTATIONS + PROPERTIES + APPLICATION,
    HEADER + DELIVERY + APPLICATION,
]  # fmt: skip
BODIES = {
    "text": value("hello"), "long text": value("ä" * 300), "binary": value(b"octets"), "data": data(b"octets"), "much data": data(bytes(300)),
    "null": value(None),    "a number": value(5), "a map": value({"a": [1, 2]}), "described": value(Described(Symbol("x"), Described(ULong(1), [1]))),
    "an array": value(Array(int, [1, 2])), "data in parts": data(b"one") + data(b"") + data(b"three"), "sequences": section(0x76, [1]) + section(0x76, []),
    "with a footer": data(b"octets") + section(0x78, {Symbol("sum"): 1}), "nothing": b"", "a footer alone": section(0x78, {}),
    "named by symbols": b"\0" + encode(Symbol("amqp:amqp-value:*")) + encode("hello"), "named at length": b"\0\x80\0\0\0\0\0\0\0\x75" + encode(b"octets"),
}  # fmt: skip


# -- failure --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "octets",
    [
        b"hello", b"\x40", b"\0", b"\0\x53", b"\0\x53\x77", b"\0\x53\x77\xa1", b"\0\x53\x75\xb0\0\0", b"\0\x53\x20\x45", b"\0\x53\x79\x45", b"\0\xa1\x01xE",
        HEADER[:-1], PROPERTIES + ANNOTATIONS + value(1), HEADER + HEADER + value(1), section(0x70, {}), section(0x70, [5]), section(0x75, "text"),
        section(0x75, [1]),
    ],
)  # fmt: skip
def test_what_is_no_message_is_refused(octets: bytes) -> None:
    with pytest.raises(Malformed):
        open_message(octets)


@pytest.mark.parametrize(
    "octets",
    [
        section(0x72, [1]), section(0x74, [1]), section(0x72, 5), section(0x73, [5]), section(0x73, [None] * 14), section(0x73, {}),
        section(0x73, [None] * 2 + [b"to"]), b"\0\x53\x73\xc0\x04\x01\xa1\x05x", b"\0\x53\x73\xc0\x04\x01\xa1\x01\xff", b"\0\x53\x73\xc0\x05\x01\xa1\x01xx",
        b"\0\x53\x74\xc1\x03\x01\xa1\0",
    ],
)  # fmt: skip
def test_sections_that_are_malformed_within_are_refused_when_they_are_read(octets: bytes) -> None:
    with pytest.raises(Malformed):  # noqa: PT012  # whichever finds it first
        opening = open_message(octets + value("body"))
        assert opening is not None
        opening.annotations()
        opening.property_values()
        opening.application_properties()


@pytest.mark.parametrize("body", [value("hello")[:-1], data(b"x") + b"more", data(b"x") + value("y")[:-1], section(0x78, {}) + data(b""), data(b"") + HEADER])
def test_a_body_that_does_not_consist_of_sections_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed):  # noqa: PT012
        opening = open_message(body)
        assert opening is not None
        check_body(opening, body[opening.body_at :])


# -- success --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_message_is_kept_octet_by_octet(body: bytes) -> None:
    for before in OPENINGS:
        octets = before + body
        opening = open_message(octets)
        assert opening is not None
        rest = octets[opening.body_at :]
        check_body(opening, rest)
        kept = octets.removeprefix(HEADER).removeprefix(DELIVERY)
        assert opening.octets + rest == kept
        again = open_message(opening.octets)
        assert again is not None
        assert (again.octets, again.content, again.content_octets) == (opening.octets, opening.content, opening.content_octets)
        assert opening.annotations() == ({Symbol("x-opt-a"): 1} if ANNOTATIONS in before else {})
        assert opening.properties() == (MessageProperties("id", None, "to") if PROPERTIES in before else MessageProperties())
        assert opening.property_values() == (["id", None, "to"] if PROPERTIES in before else [])
        assert opening.fields_said == (3 if PROPERTIES in before else 0)
        assert opening.application_properties() == ({"p": 1} if APPLICATION in before else {})
        assert opening.header == (MessageHeader(True, 4, 1000) if HEADER in before else None)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_what_has_not_all_come_is_waited_for(body: bytes) -> None:
    for before in OPENINGS:
        octets = before + body
        whole = open_message(octets)
        assert whole is not None
        for length in range(len(octets)):
            opening = open_message(octets[:length], complete=False)
            assert opening is None or (length >= whole.body_at and opening.octets == whole.octets)


def test_the_body_of_most_messages_is_what_their_sender_calls_it() -> None:
    for body, content, kind in ((value("hello"), b"hello", str), (value(b"octets"), b"octets", ULong), (data(bytes(300)), bytes(300), bytes)):
        opening = open_message(HEADER + PROPERTIES + body)
        assert opening is not None
        assert (HEADER + PROPERTIES + body)[opening.body_at :] == content
        assert (opening.content, opening.content_octets) == (kind, len(content))


def test_what_a_body_consists_of() -> None:
    def parts(body: bytes) -> list[tuple[int, bytes]]:
        opening = open_message(body)
        assert opening is not None
        return list(body_sections(opening, body[opening.body_at :]))

    assert parts(BODIES["data in parts"]) == [(DATA, b"one"), (DATA, b""), (DATA, b"three")]
    assert parts(BODIES["sequences"]) == [(SEQUENCE, encode([1])), (SEQUENCE, encode([]))]
    assert parts(BODIES["a map"]) == [(VALUE, encode({"a": [1, 2]}))]
    assert parts(BODIES["with a footer"]) == [(DATA, b"octets"), (FOOTER, encode({Symbol("sum"): 1}))]
    assert parts(value("hello") + section(0x78, {})) == [(VALUE, b"\xb1\0\0\0\5hello"), (FOOTER, encode({}))]
    assert parts(b"") == []


def test_annotations_are_added_and_taken_away() -> None:
    octets = written(properties=MessageProperties("id"))
    with_one = with_annotations(octets, {"x-opt-a": 5})
    assert with_one == annotated(a=5) + octets
    assert with_annotations(with_one, {"x-opt-b": "six"}) == section(0x72, {Symbol("x-opt-a"): 5, Symbol("x-opt-b"): "six"}) + octets
    assert with_annotations(with_one, {"x-opt-a": None}) == octets


def test_headers_are_written_as_they_are_meant() -> None:
    octets = write_header(durable=True, priority=4, ttl=0, failures=0)
    assert octets == section(0x70, [True, None, None, True])
    assert write_header(durable=False, priority=9, ttl=5, failures=2)[:3] == b"\0\x53\x70"
    assert write_header(durable=False, priority=4, ttl=0, failures=1) == section(0x70, [None, None, None, None, UInt(1)])


# -- damaged --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(20))
def test_damaged_messages_are_read_or_malformed(seed: int) -> None:
    rng = random.Random(seed)
    whole = HEADER + DELIVERY + ANNOTATIONS + PROPERTIES + APPLICATION + BODIES[rng.choice(list(BODIES))]
    for _ in range(300):
        made = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            made[rng.randrange(len(made))] = rng.choice([rng.randrange(256), 0, 0x40, 0x53, 0xB0, 0xC0, 0xD0, 0xFF])
        octets = bytes(made[: rng.choice([len(made), rng.randrange(len(made))])])
        try:
            opening = open_message(octets)
            assert opening is not None
            check_body(opening, octets[opening.body_at :])
            opening.annotations()
            opening.property_values()
            opening.properties()
            opening.application_properties()
        except Malformed:
            continue
        again = open_message(opening.octets)
        assert again is not None and again.octets == opening.octets


def test_what_has_expired_and_is_kept_says_no_longer_when() -> None:
    octets = written(properties=MessageProperties(ULong(7), absolute_expiry_time=Timestamp(5), group_id="g"), colour="green")
    opening = open_message(octets)
    assert opening is not None
    changed = open_message(without_expiry(opening.octets) + octets[opening.body_at :])
    assert changed is not None
    assert changed.properties() == MessageProperties(ULong(7), group_id="g")
    assert changed.application_properties() == {"colour": "green"}
    assert without_expiry(changed.octets) == changed.octets
