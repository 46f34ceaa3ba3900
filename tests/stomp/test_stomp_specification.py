"""The example frames of the STOMP 1.2 specification, as it prints them (^@ is NUL), read and answered as it says."""

from __future__ import annotations

import pytest

from broker_core.engine.commands import Attach, Detach, Settle
from broker_core.stomp.frames import Parser
from broker_core.stomp.limits import Limits
from broker_core.stomp.login import Login
from broker_core.stomp.sections import CLIENT_COMMANDS, SERVER_COMMANDS
from tests.stomp.conversation import Client, Cut, Frame, message, parse

EXAMPLES = [
    ("CONNECT\naccept-version:1.2\nhost:stomp.github.org\n\n^@", Frame("CONNECT", {"accept-version": "1.2", "host": "stomp.github.org"})),
    ("CONNECTED\nversion:1.2\n\n^@", Frame("CONNECTED", {"version": "1.2"})),
    (
        "ERROR\nversion:1.2,2.1\ncontent-type:text/plain\n\nSupported protocol versions are 1.2 2.1^@",
        Frame("ERROR", {"version": "1.2,2.1", "content-type": "text/plain"}, b"Supported protocol versions are 1.2 2.1"),
    ),
    (
        "SEND\ndestination:/queue/a\ncontent-type:text/plain\n\nhello queue a\n^@",
        Frame("SEND", {"destination": "/queue/a", "content-type": "text/plain"}, b"hello queue a\n"),
    ),
    (
        "SUBSCRIBE\nid:0\ndestination:/queue/foo\nack:client\n\n^@",
        Frame("SUBSCRIBE", {"id": "0", "destination": "/queue/foo", "ack": "client"}),
    ),
    ("UNSUBSCRIBE\nid:0\n\n^@", Frame("UNSUBSCRIBE", {"id": "0"})),
    ("ACK\nid:12345\ntransaction:tx1\n\n^@", Frame("ACK", {"id": "12345", "transaction": "tx1"})),
    ("BEGIN\ntransaction:tx1\n\n^@", Frame("BEGIN", {"transaction": "tx1"})),
    ("COMMIT\ntransaction:tx1\n\n^@", Frame("COMMIT", {"transaction": "tx1"})),
    ("ABORT\ntransaction:tx1\n\n^@", Frame("ABORT", {"transaction": "tx1"})),
    ("DISCONNECT\nreceipt:77\n^@", Frame("DISCONNECT", {"receipt": "77"})),
    ("RECEIPT\nreceipt-id:77\n^@", Frame("RECEIPT", {"receipt-id": "77"})),
    (
        "SEND\ndestination:/queue/a\nreceipt:message-12345\n\nhello queue a^@",
        Frame("SEND", {"destination": "/queue/a", "receipt": "message-12345"}, b"hello queue a"),
    ),
    (
        "MESSAGE\nsubscription:0\nmessage-id:007\ndestination:/queue/a\ncontent-type:text/plain\n\nhello queue a^@",
        Frame(
            "MESSAGE",
            {"subscription": "0", "message-id": "007", "destination": "/queue/a", "content-type": "text/plain"},
            b"hello queue a",
        ),
    ),
    ("RECEIPT\nreceipt-id:message-12345\n\n^@", Frame("RECEIPT", {"receipt-id": "message-12345"})),
    ("MESSAGE\nfoo:World\nfoo:Hello\n\n^@", Frame("MESSAGE", {"foo": "World"})),
]


@pytest.mark.parametrize(("printed", "frame"), EXAMPLES)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_every_example_is_read_as_the_specification_means_it(printed: str, frame: Frame, end: str, cut: Cut) -> None:
    head, blank, body = printed.partition("\n\n")
    octets = (head.replace("\n", end) + blank.replace("\n", end) + body).replace("^@", "\0").encode()
    parser = Parser(Limits(), CLIENT_COMMANDS | SERVER_COMMANDS)
    parser.version = "1.2"
    assert parse(parser, octets + octets, cut) == [frame, frame]


def test_protocol_negotiation_as_in_the_specification(cut: Cut) -> None:
    client = Client(cut=cut)
    assert client.says(b"CONNECT\naccept-version:1.0,1.1,2.0\nhost:stomp.github.org\n\n\0") == [Login("", "", "stomp.github.org", "")]
    client.machine.accept("anyone", "s", client.now)
    (connected,) = client.hears()
    assert connected.headers["version"] == "1.1"


def test_a_session_as_in_the_specification(cut: Cut) -> None:
    client = Client(cut=cut)
    client.connects()
    (send,) = client.says(b"SEND\ndestination:/queue/a\nreceipt:message-12345\n\nhello queue a\0")
    client.confirm([send])
    assert client.octets() == b"RECEIPT\nreceipt-id:message-12345\n\n\0"
    (attach,) = client.says(b"SUBSCRIBE\nid:0\ndestination:/queue/a\nack:client\n\n\0")
    assert isinstance(attach, Attach)
    client.is_delivered(attach.link, message(b"destination:/queue/a\ncontent-type:text/plain", b"hello queue a"))
    (delivered,) = client.hears()
    assert (delivered.command, delivered.body) == ("MESSAGE", b"hello queue a")
    assert delivered.headers["destination"] == "/queue/a" and delivered.headers["content-type"] == "text/plain"
    (settle,) = client.says(b"ACK\nid:%b\n\n\0" % delivered.headers["ack"].encode())
    assert isinstance(settle, Settle)
    (detach,) = client.says(b"UNSUBSCRIBE\nid:0\n\n\0")
    assert isinstance(detach, Detach)
    events = client.says(b"DISCONNECT\nreceipt:77\n\0")
    client.confirm([detach, *events])
    assert client.octets() == b"RECEIPT\nreceipt-id:77\n\n\0"
    assert client.machine.wants_close
