"""What a message of AMQP asks of the broker, what selectors see of it, and what a consumer gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.amqp.encoding import encode
from broker_core.amqp.arrivals import DELAY_MS_MAX, Arrivals, Arrived
from broker_core.amqp.mapping import decode, delivery
from broker_core.amqp.performatives import MessageHeader, MessageProperties
from broker_core.amqp.sections import open_message
from broker_core.amqp.types import UUID, Byte, Char, Decimal32, Described, Float, Int, Malformed, Symbol, Timestamp, UByte, ULong
from broker_core.engine.dead import ORIGIN, REASON, TRUNCATED
from broker_core.engine.levels import LevelMapping
from broker_core.engine.message import Encoding, Message, Reliability, StoredBody
from broker_core.engine.message_group import MessageGroup
from tests.amqp.messages import NOW, annotated, arrived, data, message, section, value, written

DURABLE = section(0x70, [True])
REPEATING = [
    written(), written(MessageHeader(True)), written(MessageHeader(True, 5)), written(MessageHeader(ttl=5)), written(properties=MessageProperties("id")),
    written(properties=MessageProperties(to="q")), written(count=1), annotated(delivery_time=NOW + 5) + written(), annotated(delivery_delay=5) + written(),
]  # fmt: skip
FORGED = f"x-opt-{REASON}"


def convert(message: Message) -> tuple[bytes, bytes | StoredBody]:
    raise AssertionError("a message of AMQP needs no conversion")


def delivered(message: Message) -> tuple[MessageHeader, dict[Any, Any], bytes]:
    """Its header, its annotations, and what else it is."""
    octets, body = delivery(message, NOW, convert)
    opening = open_message(octets)
    assert opening is not None and opening.header is not None and isinstance(body, bytes)
    return opening.header, opening.annotations(), opening.octets[opening.annotations_end :] + octets[opening.body_at :] + body


# -- failure --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("octets", "sentence"),
    [
        (annotated(delivery_delay=-1) + written(), "delays the message by -1 ms"),
        (annotated(delivery_delay=DELAY_MS_MAX + 1) + written(), "ten years"),
        (annotated(delivery_time=NOW + DELAY_MS_MAX + 1) + written(), "ten years"),
        (annotated(delivery_delay="soon") + written(), "no number of milliseconds"),
        (annotated(reliability="sure") + written(), "none of best-effort"),
        (annotated(reliability=5) + written(), "none of best-effort"),
        (written(properties=MessageProperties(group_id="g" * 256)), "group-id must have at most 255"),
        (written(properties=MessageProperties(absolute_expiry_time=-5)), "before 1970"),
        (written(_AMQ_DUPL_ID="d" * 256), "1 to 255 octets"),
        (written(_AMQ_DUPL_ID=""), "1 to 255 octets"),
    ],
)
def test_what_makes_no_sense_is_refused(octets: bytes, sentence: str) -> None:
    with pytest.raises(Malformed, match=sentence) as refused:
        arrived(octets)
    assert refused.value.condition == "amqp:invalid-field"


@pytest.mark.parametrize("octets", [section(0x74, {5: 1}) + value(1), section(0x72, {5: 1}) + value(1), section(0x73, [5]) + value(1)])
def test_what_could_not_be_read_later_is_refused_now(octets: bytes) -> None:
    with pytest.raises(Malformed):
        arrived(octets)


def test_what_the_broker_says_of_dead_messages_cannot_be_said_by_senders() -> None:
    octets = section(0x72, {Symbol(FORGED): "EXPIRED", Symbol("x-opt-mine"): 1}) + written(**{REASON: "EXPIRED", "p": 1})
    header = arrived(octets)
    assert header.octets.startswith(section(0x72, {Symbol("x-opt-mine"): 1}))
    assert dict(decode(header)) == {"p": 1}


# -- what is asked for ----------------------------------------------------------------------------------------------------------------
def test_a_message_that_says_nothing_is_non_persistent_and_leaves_its_level_to_the_destination() -> None:
    header = arrived(written())
    assert (header.reliability, header.stated, header.priority, header.expiration, header.delay) == (Reliability.EXPRESS, False, 4, 0, 0)
    assert (header.encoding, header.message_id, header.client_id, header.group, header.duplicate_id) == (Encoding.AMQP, "", "a client", None, "")


def test_durable_is_persistent_and_priorities_go_up_to_nine() -> None:
    header = arrived(written(MessageHeader(True, 7)))
    assert (header.reliability, header.stated, header.priority) == (Reliability.ASSURED, True, 7)
    assert arrived(written(MessageHeader(priority=255))).priority == 9


def test_a_level_may_be_named_or_mapped_from_the_delivery_mode() -> None:
    header = arrived(DURABLE + annotated(reliability=Symbol("best-effort")) + written())
    assert (header.reliability, header.stated, header.annotations) == (Reliability.BEST_EFFORT, True, "")
    mapped = arrived(written(MessageHeader(True)), LevelMapping(persistent="reliable"))
    assert (mapped.reliability, mapped.stated, mapped.annotations) == (Reliability.RELIABLE, True, '{"reliability":"reliable"}')
    assert not arrived(DURABLE + annotated(reliability="as-destination") + written()).stated


def test_expiration_is_counted_from_now_or_an_instant() -> None:
    assert arrived(written(MessageHeader(ttl=5000))).expiration == NOW + 5000
    assert arrived(written(properties=MessageProperties(absolute_expiry_time=NOW + 7000))).expiration == NOW + 7000
    both = written(MessageHeader(ttl=5000), MessageProperties(absolute_expiry_time=NOW + 7000))
    assert arrived(both).expiration == NOW + 5000


def test_a_delay_is_counted_from_now_or_an_instant_and_is_not_asked_for_again() -> None:
    header = arrived(annotated(delivery_delay=500, other=1) + written())
    assert (header.delay, header.octets) == (500, arrived(annotated(other=1) + written()).octets)
    at = annotated(delivery_time=NOW + 300) + written()
    assert (arrived(at).delay, annotated(delivery_time=NOW + 300) in arrived(at).octets) == (300, True)
    assert arrived(annotated(delivery_time=NOW - 300) + written()).delay == 0


@pytest.mark.parametrize(
    ("message_id", "text"),
    [
        ("ID:x-1", "ID:x-1"), ("plain", "plain"), (ULong(5), "ID:AMQP_ULONG:5"), (b"\xab\xcd", "ID:AMQP_BINARY:ABCD"),
        (UUID(bytes(range(16))), "ID:AMQP_UUID:00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ],
)  # fmt: skip
def test_message_identifiers_are_known_by_their_jms_names(message_id: object, text: str) -> None:
    assert arrived(written(properties=MessageProperties(message_id))).message_id == text


def test_groups_and_duplicates() -> None:
    assert arrived(written(properties=MessageProperties(group_id="g", group_sequence=5))).group == MessageGroup("g")
    assert arrived(written(properties=MessageProperties(group_id="g", group_sequence=0xFFFFFFFF))).group == MessageGroup("g", closes=True)
    assert arrived(written(properties=MessageProperties(group_id=""))).group is None
    assert arrived(written(_AMQ_DUPL_ID="once")).duplicate_id == "once"
    assert arrived(section(0x74, {"duplicate-id": "twice"}) + value(1)).duplicate_id == "twice"


def test_what_repeats_is_made_once() -> None:
    arrivals = Arrivals("c")

    def read(octets: bytes, now: int = NOW) -> Any:
        found = arrivals.read(octets, now)
        assert found is not None
        return found.header

    octets = written(MessageHeader(True), MessageProperties(to="q"), count=1)
    assert read(octets) is read(octets)
    assert read(octets) is not read(written(MessageHeader(True), MessageProperties(to="q"), count=2))
    assert read(octets).priority != read(written(MessageHeader(True, 5), MessageProperties(to="q"), count=1)).priority
    for timed in (written(MessageHeader(ttl=10)), annotated(delivery_time=NOW + 1000) + written()):
        assert (read(timed).expiration, read(timed).delay) != (read(timed, NOW + 10).expiration, read(timed, NOW + 10).delay)


@given(st.lists(st.tuples(st.sampled_from(REPEATING), st.integers(0, 1)), max_size=12))
def test_what_is_remembered_never_shows(sent: list[tuple[bytes, int]]) -> None:
    """However messages follow each other, each is read as if it were the only one."""
    arrivals = Arrivals("a client")
    for octets, later in sent:
        here, alone = arrivals.read(octets, NOW + later), Arrivals("a client").read(octets, NOW + later)
        assert here is not None and alone is not None
        assert (repr(here.header), here.body_at, _said(here)) == (repr(alone.header), alone.body_at, _said(alone))


IDS = (None, "ID:1", "ID:2", "ID:10", "", "a\0b", ULong(1), UUID(b"0123456789abcdef"), b"\1")
LIKE = [
    written(MessageHeader(True), MessageProperties(name, to="q", content_type=kind, creation_time=created), body)
    for name in IDS
    for created, kind in ((None, None), (5, None), (6, "text/plain"))
    for body in (None, value("héllo"), data(b""), data(b"x" * 300), data(b"a") + data(b"b"), value(b"octets"), value({"a": 1}), value(None))
]


@given(st.lists(st.tuples(st.sampled_from(LIKE), st.sampled_from((None, None, None, -1, -2, -9)), st.sampled_from((b"", b"", b"ID:", b"\xa1"))), max_size=12))
def test_messages_that_are_alike_are_each_read_as_they_are(sent: list[tuple[bytes, int | None, bytes]]) -> None:
    """Cut off, or with an octet that is wrong, too."""
    arrivals = Arrivals("a client")
    for octets, end, spoilt in sent:
        octets = octets.replace(spoilt, b"\xff" * len(spoilt), 1)[:end]  # noqa: PLW2901
        assert _outcome(arrivals, octets) == _outcome(Arrivals("a client"), octets)


def _outcome(arrivals: Arrivals, octets: bytes) -> Any:
    try:
        found = arrivals.read(octets, NOW)
    except Malformed as malformed:
        return malformed.condition, str(malformed)
    assert found is not None
    return repr(found.header), found.body_at, _said(found)


def test_what_only_its_identifier_tells_apart_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    arrivals = Arrivals("a client")
    first, second, third = [written(properties=MessageProperties(f"ID:{n}", to="q", creation_time=n), count=1, body=data(b"x" * n)) for n in (1, 2, 3)]
    known = arrivals.read(first, NOW)
    monkeypatch.setattr("broker_core.amqp.arrivals.open_message", lambda *_, **__: pytest.fail("it was looked into"))
    for octets, name in ((second, "ID:2"), (third, "ID:3")):
        found = arrivals.read(octets, NOW)
        assert known is not None and found is not None
        assert (found.header.message_id, found.said) == (name, known.said)


def _said(arrived: Arrived) -> tuple[Any, ...]:
    return arrived.said.to, arrived.said.kind, arrived.said.reply_to


def test_addresses_are_given_as_written() -> None:
    found = Arrivals("c").read(written(properties=MessageProperties(to="topic://prices", reply_to="temp-queue://x")), NOW)
    assert found is not None
    assert _said(found) == ("topic://prices", None, "temp-queue://x")


# -- selectors ------------------------------------------------------------------------------------------------------------------------
def test_selectors_see_properties_with_their_types_and_fields_by_their_jms_names() -> None:
    properties = MessageProperties(
        "id", b"someone", subject="order", correlation_id=ULong(7), creation_time=NOW - 5, group_id="g", group_sequence=0xFFFFFFFF
    )
    said = {
        "a_bool": True, "an_int": Int(5), "a_long": 1 << 40, "a_byte": Byte(-1), "a_ubyte": UByte(200), "a_float": Float(0.5), "a_double": 2.5, "text": "x",
        "symbol": Symbol("s"), "char": Char("c"), "at": Timestamp(9), "null": None, "octets": b"x", "decimal": Decimal32(b"1234"), "type": "mine",
    }  # fmt: skip
    seen = decode(arrived(written(properties=properties, **said)))
    assert seen["type"] == "mine"
    assert dict(seen) == {
        "a_bool": True, "an_int": 5, "a_long": 1 << 40, "a_byte": -1, "a_ubyte": 200, "a_float": 0.5, "a_double": 2.5, "text": "x", "symbol": "s",
        "char": "c", "at": 9, "null": None, "octets": None, "decimal": None, "type": "mine", "JMSType": "order", "JMSCorrelationID": "ID:AMQP_ULONG:7",
        "JMSTimestamp": NOW - 5, "JMSXGroupID": "g", "JMSXGroupSeq": -1, "JMSXUserID": "someone",
    }  # fmt: skip
    assert {type(each) for each in seen.values()} == {bool, int, float, str, type(None)}
    assert seen.get("other") is None and len(seen) == 21


def test_a_message_without_properties_has_none() -> None:
    assert dict(decode(arrived(written()))) == {}
    assert decode(arrived(written())).get("JMSXGroupID") is None


@pytest.mark.parametrize("name", ["JMSTimestamp", "JMSCorrelationID", "JMSXGroupSeq"])
def test_a_property_of_the_application_called_as_a_field_is_none(name: str) -> None:
    seen = decode(arrived(written(**{name: 1, "a": 2})))
    assert (dict(seen), len(seen), seen.get(name)) == ({"a": 2}, 1, None)


# -- what a consumer gets -------------------------------------------------------------------------------------------------------------
BARE = [
    written(properties=MessageProperties("id", to="q"), count=1), written(), data(b"one") + data(b"two") + section(0x78, {}), value({"a": [1]}),
    section(0x73, ["id", None, None]) + b"\0\x80\0\0\0\0\0\0\0\x77" + encode(Described(Symbol("x"), 1)),
]  # fmt: skip


@pytest.mark.parametrize("bare", BARE)
def test_the_bare_message_is_delivered_octet_by_octet(bare: bytes) -> None:
    header, annotations, rest = delivered(message(bare))
    assert (header, annotations, rest) == (MessageHeader(first_acquirer=True), {}, bare)
    annotations_too = annotated(mine=1) + bare
    assert delivered(message(annotations_too)) == (MessageHeader(first_acquirer=True), {"x-opt-mine": 1}, bare)


def test_the_header_is_written_anew() -> None:
    sent = message(written(MessageHeader(True, 200, 5000, True, 9)))
    assert delivered(sent)[0] == MessageHeader(True, 9, 5000, True, 0)
    sent.redelivered = True
    assert delivered(sent)[0].delivery_count == 1 and not delivered(sent)[0].first_acquirer
    sent.failures = 3
    assert delivered(sent)[0].delivery_count == 3
    octets, _ = delivery(sent, NOW + 6000, convert)
    late = open_message(octets)
    assert late is not None and late.header is not None and late.header.ttl == 1


def test_what_the_broker_adds_are_annotations() -> None:
    sent = message(annotated(mine=1) + BARE[0])
    sent.header.annotations = f'{{"{REASON}":"EXPIRED","{ORIGIN}":"queue/q"}}'
    _, annotations, rest = delivered(sent)
    assert annotations == {"x-opt-mine": 1, FORGED: "EXPIRED", f"x-opt-{ORIGIN}": "queue/q"}
    assert rest == BARE[0]


@pytest.mark.parametrize(
    ("body", "left"), [(value("hello"), value("")), (value(b"x"), value(b"")), (data(bytes(300)), data(b"")), (value([1]), value(None))]
)
def test_a_dead_message_without_its_body_is_a_message_still(body: bytes, left: bytes) -> None:
    sent = message(written(properties=MessageProperties("id"), body=body))
    sent.header.annotations, sent.body = f'{{"{REASON}":"EXPIRED","{TRUNCATED}":true}}', b""
    _, annotations, rest = delivered(sent)
    assert (annotations[f"x-opt-{TRUNCATED}"], rest) == (True, written(properties=MessageProperties("id"), body=left))


def test_a_large_body_is_streamed_behind_its_opening() -> None:
    sent = message(written(body=data(b"octets")))
    sent.body = StoredBody(5, 6)
    octets, body = delivery(sent, NOW, convert)
    assert body == StoredBody(5, 6)
    assert octets.endswith(b"\0\x53\x75\xa0\x06")


def test_messages_of_other_protocols_are_converted() -> None:
    sent = message(written(MessageHeader(True)))
    sent.header.encoding = Encoding.STOMP
    octets, body = delivery(sent, NOW, lambda message: (b"\0\x53\x75\xa0\x01", b"x"))
    assert (octets, body) == (section(0x70, [True, None, None, True]) + b"\0\x53\x75\xa0\x01", b"x")
