"""Whatever the client takes of an application the broker takes of the client, and none of it is lost on the way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.client import MessageFormatException, TextMessage
from broker_core.engine.message_group import GROUP_ID, GROUP_SEQUENCE
from broker_core.stomp.mapping import BROKERS_OWN, DELAYS, OTHER_EXPIRATION, OTHER_SCHEDULES, decode, outgoing
from broker_core.stomp.sections import DUPLICATE_IDS, Malformed
from broker_core.stomp.temporaries import Temporaries
from tests.client.broker import INSTANT, Broker

NAMES = st.sampled_from([GROUP_ID, GROUP_SEQUENCE, DUPLICATE_IDS[1], "colour", "JMS_SUN_DMQ_DELIVERY_COUNT", *DELAYS, *OTHER_SCHEDULES])
LETTERS = st.text(st.sampled_from("a9-\0\r\n:\\ü€\ud800"), max_size=6)
TEXTS = LETTERS | st.builds(lambda text, times: text * times, LETTERS, st.integers(0, 6000))
VALUES = TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats()
TEMPORARIES = Temporaries("n")


@given(st.dictionaries(NAMES, VALUES, max_size=3), st.none() | TEXTS, st.none() | TEXTS, st.just("") | TEXTS)
def test_what_is_sent_the_broker_takes_with_all_its_properties(
    properties: dict[str, Any], correlation: str | None, kind: str | None, content_type: str
) -> None:
    broker, message = Broker(), TextMessage("x")
    message.jms_correlation_id, message.jms_type, message.content_type = correlation, kind, content_type
    try:
        message.properties.update(properties)
        broker.producer(broker.session()).send(message, INSTANT)
    except MessageFormatException:
        assert broker.hears() == []
    else:
        (frame,) = broker.hears()
        said = decode(outgoing(frame.headers, None, "", TEMPORARIES)[1])
        assert properties.keys() <= said.keys()
        assert (said.get("correlation-id"), said.get("type")) == (correlation, kind)
        assert said["content-type"] == (content_type or message.default_content_type)


@pytest.mark.parametrize("name", sorted(name for name in {*BROKERS_OWN, *DELAYS, *OTHER_SCHEDULES, OTHER_EXPIRATION} if name.isidentifier()))
def test_what_the_broker_takes_out_of_a_message_or_refuses_is_no_property(name: str) -> None:
    with pytest.raises(MessageFormatException, match=f"'{name}' cannot"):
        TextMessage("x").properties[name] = 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (GROUP_ID, "g" * 256), (GROUP_SEQUENCE, "last"), (GROUP_SEQUENCE, "1.0"), (GROUP_SEQUENCE, "12345678901"),
        ("_AMQ_DUPL_ID", ""), ("_AMQ_DUPL_ID", "ü" * 128),
    ],
)  # fmt: skip
def test_what_is_refused_here_the_broker_would_refuse(name: str, value: str) -> None:
    with pytest.raises(MessageFormatException, match=name):
        TextMessage("x").properties[name] = value
    with pytest.raises(Malformed, match=name):
        outgoing({"destination": "/queue/a", GROUP_ID: "g", name: value}, None, "", TEMPORARIES)


@pytest.mark.parametrize(
    ("lines", "name", "said"),
    [
        ("JMSXGroupID:g\nJMSXGroupSeq:5\nproperty-types:JMSXGroupSeq=float\n", "JMSXGroupSeq", "5"),
        ("content-type:text/plain\\ntransaction\\cx\n", "content-type", "text/plain\ntransaction:x"),
    ],
)
def test_what_others_say_ends_nobodys_connection_when_it_is_sent_on(lines: str, name: str, said: str) -> None:
    broker = Broker()
    session = broker.session()
    consumer = broker.consumer(session)
    broker.delivers(consumer, lines=lines)
    broker.producer(session).send(broker.receive(consumer)[0], INSTANT)
    frame = broker.hears()[-1]
    assert frame.headers[name] == said
    outgoing(frame.headers, None, "", TEMPORARIES)
