"""From the first octet to open, and to close (AMQP 1.0 sections 2.2, 2.4 and 5.3)."""

from __future__ import annotations

import pytest

from broker_core.amqp.frames import AMQP_HEADER, EMPTY_FRAME, SASL_HEADER, ProtocolHeader, frame, sasl_frame
from broker_core.amqp.limits import Limits
from broker_core.amqp.opening import OFFERED, SOLE_CONNECTION, Opening, taken
from broker_core.amqp.performatives import (
    Attach, Begin, Close, End, Error, Flow, Open, SaslChallenge, SaslCode, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse, Transfer,
)  # fmt: skip
from broker_core.amqp.sasl import ANONYMOUS, EXTERNAL, PLAIN, Login, Proof, read_plain
from broker_core.engine import commands as c
from tests.amqp.conversation import PEER, SESSION, Client, Cut


# -- SASL -------------------------------------------------------------------------------------------------------------------------------
def test_a_client_is_told_the_mechanisms_and_says_who_it_is(cut: Cut) -> None:
    client = Client(cut=cut, mechanisms=(EXTERNAL, PLAIN))
    client.says(SASL_HEADER)
    header, mechanisms = client.hears()
    assert header == ProtocolHeader(3, (1, 0, 0))
    assert mechanisms == SaslMechanisms((EXTERNAL, PLAIN))
    client.says(sasl_frame(SaslInit(PLAIN, b"\0guest\0secret", "host")))
    login = client.events.pop()
    assert login == Login(PLAIN, b"\0guest\0secret", "host")
    assert "secret" not in repr(login)
    assert client.machine.wants_pause
    client.machine.accept("guest")
    assert client.hears() == [SaslOutcome(SaslCode.OK)]
    client.says(AMQP_HEADER)
    assert client.hears() == [ProtocolHeader(0, (1, 0, 0))]


def test_wrong_credentials_are_refused_and_the_connection_ends(cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(SASL_HEADER + sasl_frame(SaslInit(PLAIN, b"\0guest\0wrong")))
    client.hears()
    client.machine.reject("the password is wrong")
    assert client.hears() == [SaslOutcome(SaslCode.AUTH)]
    assert client.machine.wants_close
    assert client.machine.close_reason == "the password is wrong"


def test_a_mechanism_that_is_not_offered_is_refused(cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(SASL_HEADER + sasl_frame(SaslInit(ANONYMOUS)))
    assert client.hears()[-1] == SaslOutcome(SaslCode.AUTH)
    assert client.machine.wants_close
    assert client.events == []


def test_a_challenge_is_answered_by_a_proof(cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(SASL_HEADER + sasl_frame(SaslInit(PLAIN, b"first")))
    client.events.clear()
    client.hears()
    client.machine.challenge(b"prove it")
    assert client.hears() == [SaslChallenge(b"prove it")]
    client.says(sasl_frame(SaslResponse(b"the proof")))
    assert client.events.pop() == Proof(b"the proof")
    client.machine.accept("guest", additional=b"mine")
    assert client.hears() == [SaslOutcome(SaslCode.OK, b"mine")]


def test_who_does_not_log_in_is_told_to_unless_anonymous_clients_are_let_in(cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(AMQP_HEADER)
    assert client.hears() == [ProtocolHeader(3, (1, 0, 0))]
    assert client.machine.wants_close
    client = Client(cut=cut, mechanisms=(ANONYMOUS,))
    client.says(AMQP_HEADER)
    assert client.events.pop() == Login(ANONYMOUS, b"", "")
    client.machine.accept("somebody")
    client.says(frame(0, Open("c")))
    assert isinstance(client.events.pop(), Opening)


@pytest.mark.parametrize("header", [b"AMQP\2\1\0\0", b"AMQP\0\0\x09\1", b"AMQP\3\1\0\1", b"AMQP\1\1\0\0"])
def test_another_protocol_is_answered_by_the_one_that_is_spoken(cut: Cut, header: bytes) -> None:
    client = Client(cut=cut)
    client.says(header)
    assert client.hears() == [ProtocolHeader(3, (1, 0, 0))]
    assert client.machine.wants_close


def test_octets_that_are_no_amqp_are_answered_by_the_protocol_header(cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(b"GET / HTTP/1.1\r\n\r\n")
    assert client.octets() == SASL_HEADER
    assert client.machine.wants_close


@pytest.mark.parametrize(
    ("response", "read"),
    [(b"\0guest\0secret", ("", "guest", "secret")), (b"me\0guest\0", ("me", "guest", "")), (b"guest", None), (b"a\0b\0c\0d", None), (b"\0\xff\0x", None)],
)  # fmt: skip
def test_the_response_of_plain_has_three_parts(response: bytes, read: tuple[str, str, str] | None) -> None:
    assert read_plain(response) == read


def test_a_response_that_is_too_long_ends_the_connection(cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(SASL_HEADER + sasl_frame(SaslInit(PLAIN, bytes(5000))))
    assert client.machine.wants_close
    assert client.hears()[-1].code == SaslCode.SYS_PERM


# -- open -------------------------------------------------------------------------------------------------------------------------------
def test_open_is_answered_with_what_the_broker_offers(cut: Cut) -> None:
    client = Client(cut=cut)
    client.logs_in()
    client.hears()
    client.says(frame(0, Open("me", desired_capabilities=(SOLE_CONNECTION,))))
    assert client.events.pop() == Opening("me", sole=True)
    assert client.machine.open(SESSION, client.bench.now) == [c.Open(PEER, "guest", "me", SESSION, detaches=True)]
    (opened,) = client.hears()
    assert opened.container_id == "surety-node1"
    assert opened.offered_capabilities == OFFERED
    assert (opened.max_frame_size, opened.channel_max, opened.idle_time_out) == (128 * 1024, 1023, 30_000)
    assert opened.properties == {"product": "Surety", "version": "0.1.0"}


def test_what_comes_before_the_verdict_on_open_is_done_after_it(cut: Cut) -> None:
    client = Client(cut=cut)
    client.logs_in()
    client.says(frame(0, Open("me")) + frame(0, Begin(None, 0, 10, 10)))
    client.hears()
    client.machine.open(SESSION, client.bench.now)
    opened, begun = client.hears()
    assert isinstance(opened, Open)
    assert begun.remote_channel == 0


def test_a_connection_is_refused_by_an_open_that_says_so_and_a_close_with_the_reason(cut: Cut) -> None:
    client = Client(cut=cut)
    client.logs_in()
    client.says(frame(0, Open("me")))
    client.hears()
    client.machine.refuse_opening(taken("me", "the client identifier is in use"))
    opened, closed = client.hears()
    assert opened.properties["amqp:connection-establishment-failed"] is True
    assert closed.error.condition == "amqp:invalid-field"
    assert closed.error.info == {"invalid-field": "container-id"}
    assert client.machine.wants_close
    assert client.machine.receive_eof(0) == [], "the engine has never heard of it"


@pytest.mark.parametrize("opened", [Open("x" * 256), Open("me", max_frame_size=511)])
def test_an_open_that_cannot_be_is_refused(cut: Cut, opened: Open) -> None:
    client = Client(cut=cut)
    client.logs_in()
    client.says(frame(0, opened))
    _, closed = client.hears()[-2:]
    assert closed.error.condition == "amqp:invalid-field"


@pytest.mark.parametrize("performative", [Begin(None, 0, 1, 1), Close(), Attach("a", 0, False), Transfer(0), SaslInit(PLAIN)])
def test_nothing_else_comes_before_open(cut: Cut, performative: object) -> None:
    client = Client(cut=cut)
    client.logs_in()
    client.says(sasl_frame(performative) if isinstance(performative, SaslInit) else frame(0, performative))  # type: ignore[arg-type]
    assert client.hears()[-1].error.condition == "amqp:illegal-state"
    assert client.machine.wants_close


def test_too_much_before_the_verdict_ends_the_connection() -> None:
    client = Client(limits=Limits(early_octets_max=100))
    client.logs_in()
    client.says(frame(0, Open("me")))
    client.says(bytes(101))
    assert client.hears()[-1].error.condition == "amqp:resource-limit-exceeded"


# -- close ------------------------------------------------------------------------------------------------------------------------------
def test_close_is_answered_when_what_was_asked_before_is_done(client: Client) -> None:
    client.says(frame(0, Close()))
    assert client.hears() == [Close()]
    assert client.machine.wants_close
    assert client.machine.receive_eof(0) == [c.PeerLost(PEER)]
    assert client.machine.receive_eof(0) == []


def test_what_it_is_closed_for_is_no_line_of_the_log_of_its_own(client: Client) -> None:
    client.speaks(Close(Error("amqp:odd\n\x1b[2J", "first\nsecond" + "x" * 1000)))
    assert client.machine.close_reason.startswith("the peer closed the connection: 'amqp:odd??[2J' 'first?second")
    assert len(client.machine.close_reason) < 250


def test_the_broker_closes_with_a_reason(client: Client) -> None:
    client.machine.refuse("the broker is shutting down")
    assert client.hears() == [Close(Error("amqp:connection:forced", "the broker is shutting down"))]


def test_a_frame_that_is_too_large_ends_the_connection(client: Client) -> None:
    client.says((128 * 1024 + 1).to_bytes(4, "big") + b"\2\0\0\0")
    assert client.hears_one(Close).error.condition == "amqp:connection:framing-error"


def test_a_frame_that_cannot_be_read_ends_the_connection(client: Client) -> None:
    client.says(b"\0\0\0\x0c\2\0\0\0\0\x53\x10\x99")
    assert client.hears_one(Close).error.condition == "amqp:decode-error"


# -- idle time-outs ---------------------------------------------------------------------------------------------------------------------
def test_a_peer_that_is_silent_for_longer_than_it_was_told_is_given_up(client: Client) -> None:
    assert client.machine.next_deadline() == client.bench.now + 60_000
    client.passes(59_999)
    assert client.hears() == []
    client.says(EMPTY_FRAME)
    client.passes(59_999)
    assert client.hears() == []
    client.passes(1)
    assert client.hears_one(Close).error.condition == "amqp:resource-limit-exceeded"


def test_a_silence_for_which_the_broker_did_not_listen_is_not_counted(client: Client) -> None:
    client.machine.listening = False
    client.passes(60_000)
    client.machine.listening = True
    client.passes(59_000)
    assert client.hears() == []


def test_a_peer_with_an_idle_time_out_hears_something_in_half_of_it(cut: Cut) -> None:
    client = Client(cut=cut).opens(idle_time_out=10_000)
    assert client.machine.next_deadline() == client.bench.now + 5_000
    client.passes(5_000)
    assert client.octets() == EMPTY_FRAME
    client.passes(4_999)
    assert client.octets() == b""


def test_who_does_not_get_to_open_in_time_is_turned_away(cut: Cut) -> None:
    client = Client(cut=cut)
    client.logs_in()
    client.hears()
    client.passes(30_000)
    assert client.machine.wants_close


# -- sessions ---------------------------------------------------------------------------------------------------------------------------
def test_a_session_begins_on_any_channel_and_ends(client: Client) -> None:
    client.begins(channel=5)
    begun = client.hears_one(Begin)
    assert begun.remote_channel == 5
    client.says(frame(5, End()))
    assert client.hears() == [End()]
    client.begins(channel=5)
    assert client.hears_one(Begin).remote_channel == 5


@pytest.mark.parametrize(
    ("channel", "performative", "condition"),
    [
        (0, Begin(None, 0, 1, 1), "amqp:illegal-state"),
        (3, Begin(0, 0, 1, 1), "amqp:invalid-field"),
        (1024, Begin(None, 0, 1, 1), "amqp:not-allowed"),
        (3, Flow(0, 1, 0, 1), "amqp:illegal-state"),
        (0, Open("again"), "amqp:illegal-state"),
    ],
)
def test_what_no_session_can_be_ends_the_connection(client: Client, channel: int, performative: object, condition: str) -> None:
    client.says(frame(channel, performative))  # type: ignore[arg-type]
    assert client.hears_one(Close).error.condition == condition


def test_a_mistake_within_a_session_ends_that_and_no_other(client: Client) -> None:
    client.begins(channel=1)
    client.hears()
    client.says(frame(0, Transfer(4, 0, b"t")))
    assert client.hears_one(End).error.condition == "amqp:session:unattached-handle"
    client.says(frame(0, Transfer(4, 1, b"t")) + frame(0, End()))
    client.begins(channel=0)
    assert client.hears_one(Begin).remote_channel == 0
    assert not client.machine.wants_close
