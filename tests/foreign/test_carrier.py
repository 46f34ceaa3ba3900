"""The machine that carries messages from one broker to another, with a clock of the test's own."""

from __future__ import annotations

import pytest

from broker_core.foreign.carrier import ON_THEIR_WAY_MAX, REFUSE_MS_MAX
from broker_core.foreign.end import CONNECT_MS_MAX, LIMITS, PART_OCTETS
from tests.foreign.wires import FAR, NEAR, ROUTES, Wires
from tests.support.clients import encode


# -- what must not happen --------------------------------------------------------------------------------------------------------------
def test_nothing_is_acknowledged_before_the_target_has_confirmed_it() -> None:
    wires = Wires()
    wires.deliver(1)
    (sent,) = wires.target()
    assert wires.source() == []
    wires.confirm(sent)
    assert [(frame.command, frame.headers["id"]) for frame in wires.source()] == [("ACK", "1.1")]
    assert wires.carrier.carried == 1


def test_confirmations_out_of_order_acknowledge_what_they_name() -> None:
    wires = Wires()
    for number in (1, 2, 3):
        wires.deliver(number)
    first, second, third = wires.target()
    for sent in (third, first):
        wires.confirm(sent)
    assert [frame.headers["id"] for frame in wires.source()] == ["1.3", "1.1"]
    wires.confirm(third)
    assert wires.carrier.ended == "far:61613 confirmed what it was not sent"
    assert second.headers["receipt"] not in (first.headers["receipt"], third.headers["receipt"])


def test_a_target_that_does_not_answer_is_given_up() -> None:
    wires = Wires(opened=False)
    wires.passes(CONNECT_MS_MAX - 1)
    assert not wires.carrier.ended
    wires.passes(1)
    assert wires.carrier.ended == "this broker did not answer CONNECT within 10000 ms"


def test_silence_beyond_the_heart_beat_ends_it_and_beats_are_sent() -> None:
    wires = Wires()
    wires.passes(750)
    assert wires.carrier.target.take(wires.now) == b"\n"
    wires.octets(wires.carrier.target, b"\n")
    wires.passes(1999)
    assert not wires.carrier.ended
    wires.passes(1)
    assert wires.carrier.ended == "far:61613 has sent neither a heart-beat nor a frame for 2000 ms"


def test_the_silence_of_an_end_that_the_driver_does_not_read_from_is_not_its_own() -> None:
    wires = Wires(source=FAR, target=NEAR)
    wires.carrier.source.idle = True
    wires.passes(60_000)
    assert not wires.carrier.ended
    wires.carrier.source.idle = False
    wires.passes(1999)
    assert not wires.carrier.ended
    wires.passes(1)
    assert wires.carrier.ended == "far:61613 has sent neither a heart-beat nor a frame for 2000 ms"


def test_no_heart_beat_stands_within_a_large_body() -> None:
    wires = Wires()
    frame = encode("MESSAGE", {"subscription": "0", "message-id": "m", "ack": "a"}, bytes(3 * PART_OCTETS))
    wires.octets(wires.carrier.source, frame[: 2 * PART_OCTETS])
    assert wires.carrier.target.take(wires.now)
    wires.octets(wires.carrier.target, b"\n")
    wires.passes(1500)
    assert wires.carrier.target.take(wires.now) == b""
    assert not wires.carrier.ended


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ({"subscription": "0"}, "this broker delivered a message that cannot be acknowledged, or for nobody"),
        ({"subscription": "2", "ack": "a"}, "this broker delivered a message that cannot be acknowledged, or for nobody"),
        ({"subscription": "none", "ack": "a"}, "this broker delivered a message that cannot be acknowledged, or for nobody"),
    ],
)
def test_deliveries_that_nobody_asked_for_end_it(headers: dict, sentence: str) -> None:
    wires = Wires()
    wires.says(wires.carrier.source, "MESSAGE", {"message-id": "m", **headers}, b"x")
    assert wires.carrier.ended == sentence


def test_a_message_before_both_have_let_us_in_ends_it() -> None:
    wires = Wires(opened=False)
    wires.connect(wires.carrier.source)
    wires.deliver(1)
    assert wires.carrier.ended == "this broker sent a MESSAGE that nobody asked for"


@pytest.mark.parametrize("octets", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"CONNECTED\nno colon\n\n\0", b"\0", b"SEND\n\n\0"])
def test_what_is_no_stomp_ends_it(octets: bytes) -> None:
    wires = Wires(opened=False)
    wires.octets(wires.carrier.target, octets)
    assert wires.carrier.ended.startswith("far:61613 sent what is no STOMP: ")


def test_an_older_protocol_ends_it() -> None:
    wires = Wires(opened=False)
    wires.connect(wires.carrier.target, version="1.1")
    assert wires.carrier.ended == "far:61613 speaks STOMP 1.1, not 1.2"


def test_what_was_said_of_an_error_is_redacted() -> None:
    wires = Wires(opened=False, redacted=lambda text: text.replace("secret", "***"))
    wires.says(wires.carrier.target, "ERROR", {"message": "login user passcode secret is wrong"})
    assert wires.carrier.ended == "far:61613 said: login user passcode *** is wrong"


def test_a_source_that_delivers_without_end_is_not_read_from_and_nothing_is_lost() -> None:
    wires = Wires(window=1)
    octets = b"".join(
        encode("MESSAGE", {"subscription": "0", "message-id": str(number), "ack": str(number)}, b"x") for number in range(ON_THEIR_WAY_MAX + 5)
    )
    wires.octets(wires.carrier.source, octets)
    assert wires.carrier.wants_pause and wires.carrier.on_their_way == ON_THEIR_WAY_MAX
    sent = wires.target()
    for frame in sent:
        wires.confirm(frame)
    assert wires.carrier.on_their_way == 5
    assert [frame.headers["foreign-message-id"] for frame in [*sent, *wires.target()]] == [str(number) for number in range(ON_THEIR_WAY_MAX + 5)]


def test_the_silence_of_a_source_that_is_not_read_from_is_not_its_own() -> None:
    wires = Wires(source=FAR, target=NEAR, cautious=True)
    wires.deliver(1)
    assert wires.carrier.wants_pause
    wires.passes(5000)
    assert not wires.carrier.ended


# -- one message that the target will not take ------------------------------------------------------------------------------------------
def test_an_error_that_names_a_message_refuses_it_at_the_source() -> None:
    wires = Wires()
    wires.deliver(1)
    wires.deliver(2)
    _, second = wires.target()
    wires.says(wires.carrier.target, "ERROR", {"message": "too large", "receipt-id": second.headers["receipt"]}, b"it has 7 octets")
    (nack,) = wires.source()
    assert (nack.command, nack.headers["id"]) == ("NACK", "1.2")
    assert nack.headers["comment"] == "far:61613 would not take a message: too large: it has 7 octets"
    wires.carrier.lost(wires.carrier.target, "closed")
    assert not wires.carrier.ended, "the source has not heard of it"
    wires.deliver(3)
    wires.says(wires.carrier.source, "RECEIPT", {"receipt-id": nack.headers["receipt"]})
    assert wires.carrier.ended == nack.headers["comment"] and wires.carrier.refused


def test_a_source_that_takes_no_note_is_not_waited_for_long() -> None:
    wires = Wires()
    wires.deliver(1)
    (sent,) = wires.target()
    wires.says(wires.carrier.target, "ERROR", {"receipt-id": sent.headers["receipt"]})
    wires.passes(REFUSE_MS_MAX)
    assert wires.carrier.ended == "far:61613 would not take a message: an ERROR without a word"


def test_an_error_that_names_nothing_is_no_messages_fault_unless_they_go_one_by_one() -> None:
    wires = Wires()
    wires.deliver(1)
    wires.says(wires.carrier.target, "ERROR", {"message": "no"})
    assert wires.carrier.ended == "far:61613 said: no" and wires.carrier.nameless
    assert wires.source() == []
    wires = Wires(cautious=True)
    wires.deliver(1)
    wires.deliver(2)
    assert len(wires.target()) == 1 and wires.carrier.wants_pause
    wires.says(wires.carrier.target, "ERROR", {"message": "no"})
    assert [(frame.command, frame.headers["id"]) for frame in wires.source()] == [("NACK", "1.1")]


# -- what it says -------------------------------------------------------------------------------------------------------------------------
def test_it_logs_in_at_both_and_subscribes_to_each_address_with_a_window() -> None:
    wires = Wires(opened=False)
    assert [frame.headers for frame in wires.source()] == [{"accept-version": "1.2", "host": "/", "heart-beat": "0,0"}]
    (connect,) = wires.target()
    assert connect.headers == {"accept-version": "1.2", "host": "vhost", "heart-beat": "1000,1000", "login": "user", "passcode": "secret"}
    wires.connect(wires.carrier.source)
    assert not wires.carrier.is_open and wires.source() == []
    wires.connect(wires.carrier.target)
    subscriptions = wires.source()
    assert wires.carrier.is_open
    assert [(frame.headers["id"], frame.headers["destination"], frame.headers["ack"], frame.headers["prefetch-count"]) for frame in subscriptions] == [
        ("0", "/queue/a", "client-individual", "100"), ("1", "/queue/b", "client-individual", "100"),
    ]  # fmt: skip


def test_each_subscription_has_its_address_at_the_target() -> None:
    wires = Wires()
    wires.deliver(1)
    wires.deliver(2, subscription="1")
    assert [frame.headers["destination"] for frame in wires.target()] == list(ROUTES.values())


@pytest.mark.parametrize("size", [0, 1, PART_OCTETS, PART_OCTETS + 1, 5 * PART_OCTETS + 3])
@pytest.mark.parametrize("piece", [1 << 20, 70_001])
def test_bodies_pass_octet_for_octet_however_they_come(size: int, piece: int) -> None:
    wires = Wires()
    body = bytes(number % 251 for number in range(size))
    octets = b"MESSAGE\nsubscription:0\nmessage-id:m\nack:a\ncontent-length:%d\n\n%b\0" % (size, body)
    frames = []
    for at in range(0, len(octets), piece):
        wires.octets(wires.carrier.source, octets[at : at + piece])
        assert wires.carrier.source.kept_octets <= LIMITS.large_body_octets + LIMITS.header_octets_max
        frames += wires.target()
    (sent,) = frames
    assert sent.body == body and sent.headers["content-length"] == str(size)
    wires.confirm(sent)
    assert wires.source()[0].headers["id"] == "a"


def test_a_body_without_a_length_passes_without_one() -> None:
    wires = Wires()
    for body in (b"text", b"t" * (3 * PART_OCTETS)):
        wires.octets(wires.carrier.source, b"MESSAGE\nsubscription:0\nmessage-id:m\nack:a\n\n" + body + b"\0")
        (sent,) = wires.target()
        assert sent.body == body and "content-length" not in sent.headers


def test_either_end_that_is_lost_ends_it() -> None:
    wires = Wires()
    wires.carrier.lost(wires.carrier.target, "")
    assert wires.carrier.ended == "far:61613: the connection was closed"
    wires = Wires(source=FAR, target=NEAR)
    wires.carrier.lost(wires.carrier.target, "reset")
    assert wires.carrier.ended == "this broker: reset"
