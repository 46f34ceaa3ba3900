"""Messages and their properties: what can be said, how it travels, and what is made of what others send."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.client import (
    BytesMessage,
    DeliveryMode,
    JMSException,
    MapMessage,
    Message,
    MessageFormatException,
    MessageNotWriteableException,
    ObjectMessage,
    Queue,
    TextMessage,
    Topic,
)
from broker_core.client.headers import split
from broker_core.client.machine import ProducerMachine
from broker_core.client.messages import as_message
from broker_core.client.properties import PROTOCOL_HEADERS, from_headers, header_lines
from tests.client.broker import INSTANT, Broker, Cut


def delivered(body: bytes = b"hello", lines: str = "", **options: Any) -> Message:
    """What an application receives when this arrives."""
    broker = Broker()
    consumer = broker.consumer(broker.session())
    broker.delivers(consumer, body=body, lines=lines, **options)
    return broker.receive(consumer)[0]


def travelled(message: Message, cut: Cut) -> Message:
    """What an application receives when another one has sent this: the header lines of its SEND are those of the MESSAGE."""
    sender = Broker()
    ProducerMachine(sender.session(), Queue("a")).send(message, INSTANT, delivery_mode=DeliveryMode.NON_PERSISTENT)
    octets = sender.client.data_to_send()
    head, _, rest = octets.partition(b"\ncontent-length:")
    lines = head.removeprefix(b"SEND\ndestination:/queue/a").decode().removeprefix("\n")
    body = rest.partition(b"\n\n")[2].removesuffix(b"\0")
    receiver = Broker(cut=cut)
    consumer = receiver.consumer(receiver.session())
    receiver.delivers(consumer, body=body, lines=lines + "\n" if lines else "")
    return receiver.receive(consumer)[0]


# -- what travels ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "message",
    [
        TextMessage("grüß\0\n:\\"), TextMessage(""), BytesMessage(bytes(range(256))), BytesMessage(b""), ObjectMessage([1, "a", None, 0.5]),
        ObjectMessage("text"), ObjectMessage(None), MapMessage({"a": {"b": [True]}, "ü": ""}), MapMessage(), Message(),
    ],
)  # fmt: skip
def test_every_kind_of_message_arrives_as_it_was_sent(message: Message, cut: Cut) -> None:
    arrived = travelled(message, cut)
    assert type(arrived) is type(message)
    assert arrived.body == message.body


def test_header_fields_arrive_as_they_were_sent(cut: Cut) -> None:
    message = TextMessage("x")
    message.jms_correlation_id, message.jms_type, message.jms_reply_to = "a:b\nc\\d\r", "greeting", Topic("answers")
    arrived = travelled(message, cut)
    assert (arrived.jms_correlation_id, arrived.jms_type, arrived.jms_reply_to) == ("a:b\nc\\d\r", "greeting", Topic("answers"))
    assert (arrived.jms_destination, arrived.jms_timestamp, arrived.jms_priority) == (Queue("a"), 1700, 4)
    assert (arrived.jms_message_id, arrived.jms_redelivered) == ("ID:n-101", False)


NAMES = st.from_regex(r"[A-Za-z_$][A-Za-z0-9_$]{0,12}", fullmatch=True).filter(
    lambda name: not name.startswith("JMS") and name not in PROTOCOL_HEADERS and name.upper() not in
    ("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE")
)  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
VALUES = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXTS


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_properties_arrive_with_their_types(properties: dict[str, Any]) -> None:
    message = TextMessage("x")
    message.properties.update(properties)
    arrived = from_headers(split(f"MESSAGE{header_lines(message.properties)}".encode()))
    assert arrived == properties
    assert {name: type(value) for name, value in arrived.items()} == {name: type(value) for name, value in properties.items()}


def test_numbers_that_are_none_arrive_too() -> None:
    message = TextMessage("x")
    message.properties.update({"nan": math.nan, "most": math.inf, "least": -math.inf})
    arrived = travelled(message, lambda octets: [octets]).properties
    assert math.isnan(arrived.get_float("nan")) and (arrived["most"], arrived["least"]) == (math.inf, -math.inf)


def test_others_read_properties_as_text_and_their_types_beside_them() -> None:
    message = TextMessage("x")
    message.properties.update({"count": 42, "ok": True, "no": False, "ratio": 1.5, "name": "north", "$": 1})
    assert header_lines(message.properties).split("\n")[1:] == [
        "count:42", "ok:true", "no:false", "ratio:1.5", "name:north", "$:1", "property-types:count=int,ok=bool,no=bool,ratio=float,$=int",
    ]  # fmt: skip


def test_a_message_sent_on_takes_its_properties_along_but_not_what_the_provider_said_of_its_delivery() -> None:
    arrived = delivered(lines="colour:red\nJMSXUserID:eve\nJMSXGroupID:g\n", redelivered=True)
    assert arrived.properties["JMSXDeliveryCount"] == 2
    broker = Broker()
    broker.producer(broker.session()).send(arrived, INSTANT)
    (frame,) = broker.hears()
    assert (frame.headers["colour"], frame.headers["JMSXGroupID"], frame.body) == ("red", "g", b"hello")
    assert not frame.headers.keys() & {"JMSXUserID", "JMSXDeliveryCount", "redelivered", "timestamp", "message-id", "ack", "subscription"}
    assert (arrived.jms_destination, arrived.jms_redelivered) == (Queue("a"), False)


# -- what others send -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("lines", "body", "kind"),
    [
        ("", b"hello", TextMessage), ("", b"\xff", BytesMessage), ("", b"", Message), ("content-type:text/plain\n", b"hello", TextMessage),
        ("content-type:text/xml; charset=utf-8\n", b"<a/>", TextMessage), ("content-type:application/json\n", b' {"a":1}', MapMessage),
        ("content-type:application/json; charset=utf-8\n", b"[1]", ObjectMessage), ("content-type:image/png\n", b"png", BytesMessage),
    ],
)  # fmt: skip
def test_the_kind_of_a_message_is_what_its_content_type_says(lines: str, body: bytes, kind: type[Message]) -> None:
    message = delivered(body, lines)
    assert type(message) is kind
    assert message.octets() == body


def test_what_is_not_what_it_says_is_an_error_when_it_is_read_and_its_octets_are_there() -> None:
    text = delivered(b"\xff", "content-type:text/plain\n")
    with pytest.raises(MessageFormatException, match="not valid UTF-8"):
        _ = text.body
    assert text.octets() == b"\xff"
    nested = b"[" * 100_000
    for body in (b"{", nested):
        message = delivered(body, "content-type:application/json\n")
        with pytest.raises(MessageFormatException, match="said to be JSON"):
            _ = message.body
        assert message.octets() == body


def test_a_header_section_that_cannot_be_read_is_an_error_when_it_is_read() -> None:
    broker = Broker()
    consumer = broker.consumer(broker.session())
    for head in (b"name:\xff\n", b"name:\\x\n"):
        broker.says(b"MESSAGE\nsubscription:2\nmessage-id:1\nack:2.1\n" + head + b"content-length:1\n\nx\0")
        message, _ = broker.receive(consumer)
        with pytest.raises(MessageFormatException, match="header section"):
            _ = message.jms_type


def test_of_repeated_headers_the_first_counts() -> None:
    assert delivered(lines="type:first\ntype:second\n").jms_type == "first"


def test_header_fields_that_make_no_sense_are_left_out_and_stand_among_the_headers() -> None:
    message = delivered(lines="reply-to:/exchange/x\npriority:high\nexpires:soon\nproperty-types:a=int,b,=,c=odd\na:x\nc:1\n")
    assert (message.jms_reply_to, message.jms_priority, message.jms_expiration) == (None, 4, 0)
    assert message.headers["reply-to"] == "/exchange/x"
    assert (message.properties["a"], message.properties["c"]) == ("x", "1")


@pytest.mark.parametrize(
    ("lines", "mode"),
    [
        ("", DeliveryMode.NON_PERSISTENT), ("persistent:true\n", DeliveryMode.PERSISTENT), ("persistent:TRUE\n", DeliveryMode.PERSISTENT),
        ("reliability:express\n", DeliveryMode.NON_PERSISTENT), ("reliability:reliable\n", DeliveryMode.PERSISTENT),
        ("persistent:true\nreliability:reliable-np\n", DeliveryMode.NON_PERSISTENT),
    ],
)  # fmt: skip
def test_the_delivery_mode_is_what_the_message_was_sent_as(lines: str, mode: DeliveryMode) -> None:
    assert delivered(lines=lines).jms_delivery_mode is mode


def test_why_a_message_is_dead_are_properties_like_others() -> None:
    properties = delivered(lines="JMS_SUN_DMQ_UNDELIVERED_REASON:EXPIRED\nJMS_SUN_DMQ_DELIVERY_COUNT:3\n").properties
    assert properties.get_string("JMS_SUN_DMQ_UNDELIVERED_REASON") == "EXPIRED"
    assert properties.get_int("JMS_SUN_DMQ_DELIVERY_COUNT") == 3


def test_a_frame_that_was_cut_anywhere_is_read_all_the_same(cut: Cut) -> None:
    broker = Broker(cut=cut)
    consumer = broker.consumer(broker.session(), "a")
    for octets in (
        b"\n\r\n" + broker.message(consumer, b"one"),
        b"MESSAGE\r\nsubscription:2\r\nack:2\\c2\r\nmessage-id:1\r\ncontent-length:3\r\n\r\ntwo\0",
        b"MESSAGE\nsubscription:2\nack:2.3\nmessage-id:1\n\nthree\0\n",
        broker.message(consumer, b"x" * 5000),
    ):
        broker.says(octets)
    received = [broker.receive(consumer)[0] for _ in range(4)]
    assert [message.body for message in received] == ["one", "two", "three", "x" * 5000]
    assert received[1].headers["ack"] == "2:2"
    assert [frame.headers["id"] for frame in broker.hears()][:3] == ["2.1", "2:2", "2.3"]


# -- properties -----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "a.b", "NULL", "between", "type", "priority", "expiration", "JMSType", "JMSXUserID", "JMS", 5])
def test_a_property_needs_a_name_that_selectors_and_stomp_can_say(name: str) -> None:
    with pytest.raises(MessageFormatException, match="cannot"):
        TextMessage("x").properties[name] = "x"


@pytest.mark.parametrize("value", [None, b"x", [], {}, 2**63, -(2**63) - 1])
def test_a_property_is_a_string_a_boolean_or_a_number(value: Any) -> None:
    with pytest.raises(MessageFormatException, match="'p'"):
        TextMessage("x").properties["p"] = value


def test_values_of_subclasses_become_plain_values() -> None:
    class Colour(IntEnum):
        RED = 7

    message = TextMessage("x")
    message.properties["colour"] = Colour.RED
    assert type(message.properties["colour"]) is int
    assert header_lines(message.properties) == "\ncolour:7\nproperty-types:colour=int"


def test_properties_are_read_as_other_types_where_jms_has_a_conversion() -> None:
    properties = TextMessage("x").properties
    properties.update({"yes": True, "five": 5, "half": 0.5, "text": "12", "word": "TRUE"})
    assert (properties.get_boolean("yes"), properties.get_boolean("word"), properties.get_boolean("absent")) == (True, True, False)
    assert (properties.get_int("five"), properties.get_int("text"), properties.get_float("half"), properties.get_float("text")) == (5, 12, 0.5, 12.0)
    assert [properties.get_string(name) for name in ("yes", "five", "half", "text", "absent")] == ["true", "5", "0.5", "12", None]
    for read, name in (
        (properties.get_boolean, "five"), (properties.get_int, "yes"), (properties.get_int, "half"), (properties.get_int, "word"),
        (properties.get_float, "five"), (properties.get_float, "word"), (properties.get_int, "absent"), (properties.get_float, "absent"),
    ):  # fmt: skip
        with pytest.raises(MessageFormatException, match=name):
            read(name)


# -- writing ----------------------------------------------------------------------------------------------------------------------------
def test_a_received_message_is_read_only_until_it_is_cleared() -> None:
    message = delivered(b"hello", "colour:red\n")
    assert isinstance(message, TextMessage)
    with pytest.raises(MessageNotWriteableException, match=r"clear_body\(\) first"):
        message.text = "other"
    with pytest.raises(MessageNotWriteableException, match=r"clear_properties\(\) first"):
        message.properties["colour"] = "blue"
    with pytest.raises(MessageNotWriteableException):
        del message.properties["colour"]
    message.clear_body()
    assert (message.text, message.properties["colour"]) == ("", "red")
    message.text = "other"
    message.clear_properties()
    message.properties["colour"] = "blue"
    assert (message.text, dict(message.properties)) == ("other", {"colour": "blue"})
    message.jms_type = "mine"
    assert (message.jms_type, message.jms_message_id) == ("mine", "ID:n-101")


@pytest.mark.parametrize(("lines", "body"), [("content-type:application/json\n", b"[1]"), ("content-type:application/json\n", b"{}"), ("", b"\xff")])
def test_so_it_is_with_every_kind(lines: str, body: bytes) -> None:
    message = delivered(body, lines)
    name = "data" if isinstance(message, BytesMessage) else "object"
    value: Any = b"new" if name == "data" else {"new": 1}
    with pytest.raises(MessageNotWriteableException):
        setattr(message, name, value)
    message.clear_body()
    setattr(message, name, value)
    assert message.body == value


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (TextMessage, b"x"), (TextMessage, 5), (BytesMessage, "x"), (ObjectMessage, {1, 2}), (ObjectMessage, math.nan), (ObjectMessage, b"x"),
        (MapMessage, [1]), (MapMessage, {1: 2}), (MapMessage, {"a": b"x"}),
    ],
)  # fmt: skip
def test_a_body_of_the_wrong_type_is_refused_when_it_is_set_or_sent(kind: type[Any], wrong: Any) -> None:
    with pytest.raises(MessageFormatException):
        kind(wrong).octets()


def test_an_object_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(MessageFormatException):
        ObjectMessage(value).octets()


def test_what_is_sent_becomes_the_message_that_carries_it() -> None:
    assert [type(as_message(content)) for content in ("x", b"x", {"x": 1}, Message())] == [TextMessage, BytesMessage, MapMessage, Message]
    with pytest.raises(JMSException):
        as_message(5)  # type: ignore[arg-type]


def test_a_message_that_was_not_received_acknowledges_nothing() -> None:
    message = TextMessage("x")
    message.acknowledge()
    message.acknowledge_this_message()
    message.acknowledge_up_through_this_message()
    assert repr(message) == "TextMessage(jms_message_id=None, jms_destination='None')"
