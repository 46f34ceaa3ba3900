"""Whatever a sender of one protocol says, a consumer of the other gets a message that can be read."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.amqp.composite import write_composite
from broker_core.amqp.mapping import decode, delivery
from broker_core.amqp.sections import check_body, open_message
from broker_core.amqp.types import Malformed, Symbol
from broker_core.conversion import ToAmqp, to_stomp
from broker_core.engine.message import Header, Message
from broker_core.stomp.escaping import canonical, for_version, read_canonical
from tests.amqp.composites import composite
from tests.amqp.messages import NOW, data, message, section, value
from tests.amqp.test_amqp_fuzz import mutated
from tests.amqp.values import SIMPLE, simple, values

names = st.text(max_size=12)
BODIES = st.one_of(
    values.map(value), SIMPLE[bytes].map(data), st.lists(SIMPLE[bytes].map(data), max_size=3).map(b"".join),
    st.lists(values, max_size=3).map(lambda listed: section(0x76, listed)),
)  # fmt: skip
SENT = st.builds(
    lambda properties, annotations, application, body: (
        section(0x72, annotations) + write_composite(properties) + section(0x74, application) + body
    ),
    composite("properties"), st.dictionaries(SIMPLE[Symbol], simple, max_size=3), st.dictionaries(names, simple, max_size=4), BODIES,
)  # fmt: skip
HEADERS = st.dictionaries(
    st.one_of(
        names, st.sampled_from(["content-type", "expires", "type", "reply-to", "JMSXGroupID", "JMSXGroupSeq", "property-types", "reliability", "a", "b"])
    ),
    st.one_of(st.text(max_size=30), st.sampled_from(["application/json", "text/plain", "/topic/t", "-1", "7", "a=int,b=float", "1e400", "true"])),
    max_size=8,
)  # fmt: skip


def as_stomp(sent: Message) -> bytes:
    sent.destination = 1
    lines, beginning, body = to_stomp(sent, "/topic/a.*")
    assert b"\0" not in lines and isinstance(body, bytes)
    headers = read_canonical(lines)
    assert len(headers) == lines.count(b"\n") + 1 and "destination" in headers
    assert max(map(len, lines.split(b"\n"))) <= 4 * 16_384
    for version in ("1.0", "1.1"):
        for_version(lines, version)
    return beginning + body


@given(SENT)
@settings(deadline=None, max_examples=300)
def test_what_comes_by_amqp(octets: bytes) -> None:
    try:
        sent = message(octets)
    except Malformed:
        return
    as_stomp(sent)
    dict(decode(sent.header))


@pytest.mark.parametrize("seed", range(10))
def test_what_comes_by_amqp_and_is_damaged(seed: int) -> None:
    rng = random.Random(seed)
    whole = section(0x72, {Symbol("x-opt-jms-dest"): 1}) + section(0x73, ["id", b"u", "to", "s", "r", 5]) + section(0x74, {"a": [1, "x"], "b": 2.5})
    for _ in range(200):
        octets = mutated(rng, whole + rng.choice([value({"a": [1, {"b": None}]}), value("text"), data(b"x") + data(b"y"), section(0x76, [1, [2]])]))
        try:
            sent = message(octets)
            opening = open_message(octets)
            assert opening is not None and isinstance(sent.body, bytes)
            check_body(opening, sent.body)
        except Malformed:
            continue
        as_stomp(sent)
        dict(decode(sent.header))


JSONS = st.sampled_from([b'{"a":[1,2.5,null]}', b"[1e999,NaN]", b"[" * 40 + b"]" * 40])


@given(HEADERS, st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode), JSONS))
@settings(deadline=None, max_examples=500)
def test_what_comes_by_stomp(headers: dict[str, str], body: bytes) -> None:
    sent = Message(Header(canonical({name: text for name, text in headers.items() if name})), body, len(body))
    sent.sequence, sent.accepted_at = 7, NOW
    octets, converted = delivery(sent, NOW, ToAmqp("here"))
    opening = open_message(octets)
    assert opening is not None and isinstance(converted, bytes)
    check_body(opening, converted)
    opening.properties()
    opening.application_properties()
    opening.annotations()
    as_stomp(Message(Header(opening.octets, encoding=1), converted, len(converted)))
