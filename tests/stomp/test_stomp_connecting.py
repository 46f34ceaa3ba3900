"""CONNECT: versions, logins, what comes too early, too late or twice, and heart-beats."""

from __future__ import annotations

import pytest

from broker_core.engine.commands import Open, PeerLost, Send
from broker_core.stomp.limits import Limits
from broker_core.stomp.login import Login
from tests.stomp.conversation import Client, Cut, connected


# -- refused ------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ["SEND", "SUBSCRIBE", "ACK", "DISCONNECT", "CONNECTED"])
def test_any_frame_before_connect_is_refused(command: str, cut: Cut) -> None:
    client = Client(cut=cut)
    assert client.says(f"{command}\nid:1\n\n\0".encode()) == []
    assert client.error().headers["message"] == f"'{command}' comes before CONNECT"


def test_an_http_request_is_refused_in_words(cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert client.error().headers["message"] == "'GET / HTTP/1.1' comes before CONNECT"


@pytest.mark.parametrize("command", ["CONNECT", "STOMP"])
def test_a_second_connect_is_refused(command: str, cut: Cut) -> None:
    client = Client(cut=cut)
    client.connects()
    client.says(f"{command}\naccept-version:1.2\nhost:/\n\n\0".encode())
    assert client.error().headers["message"] == f"'{command}' is not a command that a client may send now"


def test_no_common_version_is_answered_with_ours(cut: Cut) -> None:
    client = Client(cut=cut)
    assert client.says(b"CONNECT\naccept-version:2.0,3.1\nhost:/\n\n\0") == []
    error = client.error()
    assert error.headers["version"] == "1.0,1.1,1.2"
    assert error.body == b"Supported protocol versions are 1.0 1.1 1.2"


@pytest.mark.parametrize("beat", ["10", "a,b", "1,2,3", "-1,5", "1.5,2", " 1,2", "1,", "", "9999999999,1"])
def test_a_malformed_heart_beat_is_refused_naming_it(beat: str, cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(f"CONNECT\naccept-version:1.2\nhost:/\nheart-beat:{beat}\n\n\0".encode())
    assert client.error().headers["message"] == f"header heart-beat is '{beat}', not two numbers of milliseconds"


def test_a_client_identifier_is_bounded_as_it_is_stored_with_every_message(cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(b"CONNECT\naccept-version:1.2\nhost:/\nclient-id:%b\n\n\0" % (b"c" * 256))
    assert client.error().headers["message"] == "header client-id must have at most 255 characters"


@pytest.mark.parametrize(("line", "shares"), [(b"", False), (b"client-id-shared:false\n", False), (b"client-id-shared:true\n", True)])
def test_a_client_may_share_its_identifier(line: bytes, shares: bool, cut: Cut) -> None:
    client = Client(cut=cut)
    (login,) = client.says(b"CONNECT\naccept-version:1.2\nhost:/\nclient-id:c\n%b\n\0" % line)
    assert isinstance(login, Login) and login.shares_client_id == shares


def test_whether_it_does_is_true_or_false(cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(b"CONNECT\naccept-version:1.2\nhost:/\nclient-id:c\nclient-id-shared:perhaps\n\n\0")
    assert "client-id-shared" in client.error().headers["message"]


def test_a_refused_login_is_told_why_and_never_reaches_the_engine(cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(b"CONNECT\naccept-version:1.2\nhost:/\nlogin:eve\npasscode:x\n\n\0SEND\ndestination:a\n\nx\0")
    client.machine.reject("login refused")
    assert client.error().headers["message"] == "login refused"
    assert client.machine.accept("eve", "s", client.now) == []
    assert client.machine.receive_eof(client.now) == []


def test_too_much_before_connected_is_refused() -> None:
    client = Client(limits=Limits(early_octets_max=1000))
    client.says(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
    client.says(b"x" * 1001)
    assert client.error().headers["message"] == "more than 1000 octets were sent before CONNECTED"
    assert client.machine.kept_octets == 0


def test_a_socket_without_connect_is_closed_in_time() -> None:
    client = Client(limits=Limits(connect_ms_max=5000))
    assert client.machine.next_deadline() == client.now + 5000
    client.now += 4999
    client.machine.tick(client.now)
    assert not client.machine.wants_close
    client.now += 1
    client.machine.tick(client.now)
    assert client.error().headers["message"] == "no CONNECT frame within 5000 ms"


def test_neither_repr_nor_the_log_sentence_shows_the_passcode(cut: Cut) -> None:
    client = Client(cut=cut)
    (login,) = client.says(b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:s3cret\n\n\0")
    assert "s3cret" not in repr(login)
    client = Client(cut=cut)
    client.says(b"CONNECT\naccept-version:1.2\npasscode:s3cret\ns3cret\n\n\0")
    assert "s3cret" not in client.machine.close_reason and b"s3cret" not in client.octets()


# -- accepted -----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("accepted", "spoken"),
    [("1.0", "1.0"), ("1.1", "1.1"), ("1.2", "1.2"), ("1.0,1.1,2.0", "1.1"), ("1.2,1.1,1.0", "1.2"), ("1.1, 1.2", "1.2")],
)
def test_the_highest_common_version_is_spoken(accepted: str, spoken: str, cut: Cut) -> None:
    client = Client(cut=cut)
    client.says(f"CONNECT\naccept-version:{accepted}\nhost:/\n\n\0".encode())
    client.machine.accept("guest", "s", client.now)
    assert client.hears()[0].headers["version"] == spoken


def test_without_accept_version_1_0_is_spoken_and_padding_trimmed(cut: Cut) -> None:
    client = Client(cut=cut)
    assert client.says(b"CONNECT\nlogin: guest\npasscode: secret \n\n\0") == [Login("guest", "secret", "", "")]
    assert client.machine.version == "1.0"


@pytest.mark.parametrize("command", ["CONNECT", "STOMP"])
def test_the_login_is_handed_out_as_it_was_written(command: str, cut: Cut) -> None:
    client = Client(cut=cut)
    octets = f"{command}\naccept-version:1.2\nhost:/vh\nlogin: a\\nb\npasscode:c:d\\\nclient-id:me\n\n\0"
    assert client.says(octets.encode()) == [Login(" a\\nb", "c:d\\", "/vh", "me")]


def test_connected_names_version_server_session_and_heart_beat() -> None:
    client = Client(limits=Limits(heart_beat_ms_min=2000))
    client.says(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
    assert client.machine.accept("guest", "s-1", client.now) == [Open(7, "guest", "", "s-1")]
    assert client.octets() == b"CONNECTED\nversion:1.2\nserver:Surety/0.1.0\nsession:s-1\nheart-beat:2000,2000\n\n\0"


def test_what_was_sent_after_connect_waits_for_the_verdict(cut: Cut) -> None:
    client = Client(cut=cut)
    octets = b"CONNECT\naccept-version:1.2\nhost:/\nclient-id:me\n\n\0\nSEND\ndestination:a\nreceipt:1\n\nx\0SEND\ndestination:b\n\ny\0ACK"
    assert [type(event) for event in client.says(octets)] == [Login]
    assert client.machine.wants_pause
    opened, *sends = client.machine.accept("guest", "s", client.now)
    assert opened == Open(7, "guest", "me", "s")
    assert [(send.address, send.message.body, send.message.header.client_id) for send in sends] == [
        ("queue/a", b"x", "me"),
        ("queue/b", b"y", "me"),
    ]
    assert not client.machine.wants_pause
    client.says(b"\nid:1.1\n\n\0")
    assert client.hears()[1].headers["message"] == "id '1.1' names no delivery of this connection"


# -- the end ------------------------------------------------------------------------------------------------------------------------
def test_a_lost_connection_is_told_to_the_engine_once() -> None:
    client = Client()
    client.connects()
    assert client.machine.receive_eof(client.now) == [PeerLost(7)]
    assert client.machine.receive_eof(client.now) == []
    assert client.machine.wants_close and client.machine.close_reason == "the peer closed the connection"


def test_a_connection_lost_before_its_login_is_not() -> None:
    assert Client().machine.receive_eof(0) == []


def test_a_connection_that_ended_with_an_error_is_told_to_the_engine_too() -> None:
    client = Client()
    client.connects()
    client.machine.refuse("the node is shutting down")
    assert client.error().headers["message"] == "the node is shutting down"
    assert client.machine.receive_eof(client.now) == [PeerLost(7)]


# -- heart-beats --------------------------------------------------------------------------------------------------------------------
def beating(headers: bytes) -> Client:
    client = Client()
    client.connects(headers)
    return client


def test_without_heart_beats_no_timer_is_needed() -> None:
    assert beating(b"").machine.next_deadline() is None
    assert beating(b"heart-beat:0,0\n").machine.next_deadline() is None


def test_a_silent_peer_is_given_up_after_twice_the_agreed_interval() -> None:
    client = beating(b"heart-beat:3000,0\n")
    assert client.machine.next_deadline() == client.now + 6000
    client.now += 5999
    client.machine.tick(client.now)
    assert not client.machine.wants_close
    client.now += 1
    client.machine.tick(client.now)
    assert client.error().headers["message"] == "no heart-beat and no frame for 6000 ms"


@pytest.mark.parametrize("octets", [b"\n", b"SEND\ndestination:a\n\nx\0", b"SEND\ndest"])
def test_any_octet_counts_as_a_heart_beat(octets: bytes) -> None:
    client = beating(b"heart-beat:3000,0\n")
    client.now += 5000
    client.says(octets)
    client.now += 5000
    client.machine.tick(client.now)
    assert not client.machine.wants_close


def test_while_we_do_not_read_silence_is_not_held_against_the_peer() -> None:
    client = beating(b"heart-beat:1000,0\n")
    client.machine.listening = False
    for _ in range(5):
        client.now += 2000
        client.machine.tick(client.now)
    client.machine.listening = True
    assert not client.machine.wants_close and client.machine.next_deadline() == client.now + 2000


def test_a_line_feed_is_sent_before_the_agreed_interval_is_over_and_only_if_nothing_else_was() -> None:
    client = beating(b"heart-beat:0,4000\n")
    client.now += 3000
    assert client.machine.next_deadline() == client.now
    client.machine.tick(client.now)
    assert client.octets() == b"\n"
    client.now += 2000
    (send,) = client.says(b"SEND\ndestination:a\nreceipt:1\n\nx\0")
    assert isinstance(send, Send)
    client.confirm([send])
    client.octets()
    client.now += 2999
    client.machine.tick(client.now)
    assert client.octets() == b""
    client.now += 1
    client.machine.tick(client.now)
    assert client.octets() == b"\n"


def test_intervals_shorter_than_our_minimum_are_not_agreed_to() -> None:
    client = beating(b"heart-beat:10,10\n")
    assert client.machine.next_deadline() == client.now + 750
    client.now += 10
    client.machine.tick(client.now)
    assert client.octets() == b""


def test_an_administered_object_is_told_in_connected_to_who_asks_for_it(cut: Cut) -> None:
    client = Client(cut=cut)
    (login,) = client.says(b"CONNECT\naccept-version:1.2\nhost:/\nlookup:the shop: 1\n\n\0")
    assert isinstance(login, Login) and login.lookup == "the shop: 1"
    client.machine.accept("guest", "s", client.now, told='{"kind":"factory","a":"b:c"}')
    assert client.hears()[0].headers["administered-object"] == '{"kind":"factory","a":"b:c"}'
    assert "administered-object" not in connected(cut).machine._handshake.connected("s").decode()


def test_a_name_to_be_looked_up_is_bounded(cut: Cut) -> None:
    client = Client(cut=cut)
    assert client.says(b"CONNECT\naccept-version:1.2\nhost:/\nlookup:" + b"x" * 256 + b"\n\n\0") == []
    assert client.error().headers["message"] == "header lookup must have at most 255 characters"
