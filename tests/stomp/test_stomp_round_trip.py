"""What is written is read again: frames in every version, headers through the store, messages from any sender to any receiver."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_core.engine.commands import Send
from broker_core.stomp.escaping import VERSIONS, canonical, for_version, read_canonical
from broker_core.stomp.frames import Parser, serialise
from broker_core.stomp.limits import Limits
from broker_core.stomp.mapping import BROKERS_OWN, OTHER_SCHEDULES
from broker_core.stomp.sections import CLIENT_COMMANDS, SERVER_COMMANDS, UNESCAPED, WITH_BODY
from tests.stomp.conversation import Client, Frame, byte_by_byte, message, parse, whole

# The same examples every time, and no verdict on how fast the machine is.
UNHURRIED = settings(derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
NAMES = TEXT.filter(lambda name: name not in ("", "content-length", "receipt"))
BODIES = st.binary(max_size=300)


def sayable(command: str, version: str) -> st.SearchStrategy[dict[str, str]]:
    """Headers that the version can express: see escaping. A CR before LF is part of the line end, so none may end a value unescaped."""
    if command in UNESCAPED or version == "1.0":
        names = NAMES.filter(lambda name: not set(name) & set(":\n\r"))
        values = TEXT.filter(lambda value: "\n" not in value and not value.endswith("\r"))
        if command not in UNESCAPED:
            values = values.map(str.strip)  # 1.0 trims
        return st.dictionaries(names, values, max_size=8)
    values = TEXT if version == "1.2" else TEXT.filter(lambda value: not value.endswith("\r"))
    return st.dictionaries(NAMES, values, max_size=8)


@pytest.mark.parametrize("version", VERSIONS)
@UNHURRIED
@given(data=st.data())
def test_a_frame_that_is_written_is_read_again(version: str, data: st.DataObject) -> None:
    command = data.draw(st.sampled_from(sorted(CLIENT_COMMANDS | SERVER_COMMANDS)))
    headers = data.draw(sayable(command, version))
    body = data.draw(BODIES) if command in WITH_BODY else b""
    sized = body.find(b"\0") >= 0 or data.draw(st.booleans())
    written = {**headers, "content-length": str(len(body))} if sized else headers
    if command != "SEND":
        headers = written
    octets = serialise(command, written.items(), body, version)
    for cut in (whole, byte_by_byte):
        parser = Parser(Limits(), CLIENT_COMMANDS | SERVER_COMMANDS)
        parser.version = version
        assert parse(parser, octets * 2, cut) == [Frame(command, headers, body)] * 2


@pytest.mark.parametrize("headers", [{"a": "b\nc"}, {"a:b": "c"}, {"a\nb": "c"}, {"": "c"}])
@pytest.mark.parametrize(("command", "version"), [("CONNECT", "1.2"), ("SEND", "1.0")])
def test_what_cannot_be_said_without_escapes_is_not_written(command: str, version: str, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="cannot be written"):
        serialise(command, headers.items(), version=version)


@UNHURRIED
@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=8))
def test_stored_headers_are_read_again(headers: dict[str, str]) -> None:
    assert read_canonical(canonical(headers)) == headers
    assert canonical(headers).count(b"\n") == max(0, len(headers) - 1)


@UNHURRIED
@given(st.dictionaries(TEXT.filter(bool), TEXT, max_size=8))
def test_nothing_in_a_stored_header_can_add_a_line_for_any_receiver(headers: dict[str, str]) -> None:
    octets = canonical(headers)
    for version in VERSIONS:
        lines = for_version(octets, version).split(b"\n") if headers else []
        assert len([line for line in lines if line]) <= len(headers)
        assert all(b":" in line for line in lines if line)


@settings(UNHURRIED, max_examples=60)
@given(sender=st.sampled_from(("1.1", "1.2")), receiver=st.sampled_from(("1.1", "1.2")), data=st.data())
def test_a_message_arrives_with_the_headers_and_the_body_it_was_sent_with(sender: str, receiver: str, data: st.DataObject) -> None:
    own = BROKERS_OWN | {*OTHER_SCHEDULES, "destination", "transaction", "priority", "expires", "persistent", "reliability"}
    headers = data.draw(sayable("SEND", "1.1").map(lambda drawn: {name: value for name, value in drawn.items() if name not in own}))
    body = data.draw(BODIES)
    producer, consumer = Client(sender), Client(receiver)
    producer.connects()
    consumer.connects()
    wanted = {"destination": "/queue/größe", **headers}
    (send,) = producer.says(serialise("SEND", [*wanted.items(), ("content-length", str(len(body)))], body, sender))
    assert isinstance(send, Send) and send.address == "queue/größe"
    made = message(send.message.header.octets, body)
    consumer.is_delivered(consumer.subscribes(), made)
    (frame,) = consumer.hears()
    ours = {"subscription", "message-id", "ack", "timestamp", "content-length"}
    assert {name: value for name, value in frame.headers.items() if name not in ours} == wanted
    assert frame.body == body
