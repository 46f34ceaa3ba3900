"""BEGIN, COMMIT, ABORT, and what is said within a transaction (STOMP 1.2, "BEGIN" and after)."""

from __future__ import annotations

import pytest

from broker_core.engine.commands import Begin, End, Send, Settle, Sync, Transacted
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Confirmed, Refused
from broker_core.engine.refusal import Refusal
from tests.stomp.conversation import LINK, PEER, Cut, connected, subscribed, whole


def test_the_three_commands_reach_the_engine(cut: Cut) -> None:
    client = connected(cut)
    begin, commit = client.says(b"BEGIN\ntransaction:t1\nreceipt:1\n\n\0COMMIT\ntransaction:t1\nreceipt:2\n\n\0")
    (abort,) = client.says(b"ABORT\ntransaction:t\\c2\n\n\0")
    assert (begin.peer, begin.transaction, type(begin)) == (PEER, b"t1", Begin)
    assert (commit.transaction, commit.commit) == (b"t1", True)
    assert abort == End(PEER, b"t\\c2", False, None)
    client.confirm([begin, commit])
    assert [frame.headers["receipt-id"] for frame in client.hears()] == ["1", "2"]


def test_an_error_drops_the_frames_that_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.stomp.connection.FRAMES_MAX", 1)
    client = connected(whole)
    (begin,) = client.says(b"BEGIN\ntransaction:t1\n\n\0BEGIN\ntransaction:t2\n\n\0")
    assert client.machine.unfinished
    client.gets(Refused(PEER, begin.token, Refusal.TRANSACTION_EXISTS))
    assert not client.machine.unfinished
    assert client.says(b"") == []


@pytest.mark.parametrize("command", ["BEGIN", "COMMIT", "ABORT"])
def test_a_transaction_must_have_a_name(command: str, cut: Cut) -> None:
    client = connected(cut)
    client.says(f"{command}\nreceipt:4\n\n\0".encode())
    error = client.error()
    assert error.headers["message"] == f"{command} needs header transaction"
    assert error.headers["receipt-id"] == "4"


def test_a_send_within_a_transaction_waits_for_it_and_its_receipt_says_that_it_was_taken(cut: Cut) -> None:
    client = connected(cut)
    for name in (b"t1", b"t2", b"t1"):
        (sent,) = client.says(b"SEND\ndestination:/queue/a\ntransaction:%b\nreceipt:7\ncontent-length:1\n\nx\0" % name)
        assert isinstance(sent, Transacted) and isinstance(sent.work, Send)
        assert (sent.transaction, sent.work.address, sent.work.token, sent.token) == (name, "queue/a", None, b"7")
        assert sent.work.message.header.octets == b"destination:/queue/a"
        client.confirm([sent])
        assert [frame.headers for frame in client.hears()] == [{"receipt-id": "7"}]


def test_the_same_section_within_and_without_a_transaction_is_told_apart(cut: Cut) -> None:
    client = connected(cut)
    plain, within = b"SEND\ndestination:a\n\nx\0", b"SEND\ndestination:a\ntransaction:t\n\nx\0"
    kinds = [type(event) for event in client.says(plain + plain + within + within + within + plain + within + plain)]
    assert kinds == [Send, Send, Transacted, Transacted, Transacted, Send, Transacted, Send]


def test_an_acknowledgement_within_a_transaction_waits_for_it(cut: Cut) -> None:
    client = subscribed(cut, b"client-individual")
    commands = client.says(b"ACK\nid:1.1\ntransaction:t\n\n\0NACK\nid:1.2\ntransaction:t\n\n\0ACK\nid:1.3\n\n\0")
    assert commands == [
        Transacted(PEER, b"t", Settle(PEER, LINK, [1], 0, Outcome.ACCEPTED)),
        Transacted(PEER, b"t", Settle(PEER, LINK, [2], 0, Outcome.FAILED)),
        Settle(PEER, LINK, [3], 0, Outcome.ACCEPTED),
    ]


NOTHING_OUTSTANDING = Transacted(PEER, b"t", Settle(PEER, 0, [], 0, Outcome.ACCEPTED))


def test_an_acknowledgement_within_a_transaction_of_what_went_back_with_its_subscription_is_not_left_out(cut: Cut) -> None:
    """The engine must know of it: the transaction cannot be done as a whole."""
    client = subscribed(cut, b"client-individual")
    (detach,) = client.says(b"UNSUBSCRIBE\nid:0\n\n\0")
    assert client.says(b"ACK\nid:1.1\ntransaction:t\n\n\0") == [NOTHING_OUTSTANDING]
    client.confirm([detach])
    assert client.says(b"ACK\nid:1.1\ntransaction:t\n\n\0") == [NOTHING_OUTSTANDING]


def test_nor_is_one_of_what_was_acknowledged_before_by_its_message_id(cut: Cut) -> None:
    client = subscribed(cut, b"client-individual", "1.1")
    ack = b"ACK\nsubscription:0\nmessage-id:ID\\cnode1-100\ntransaction:t\n\n\0"
    (first,) = client.says(ack)
    assert first == Transacted(PEER, b"t", Settle(PEER, LINK, [1], 0, Outcome.ACCEPTED))
    assert client.says(ack) == [NOTHING_OUTSTANDING]


def test_a_receipt_for_an_acknowledgement_that_has_nothing_to_do_comes_all_the_same(cut: Cut) -> None:
    client = subscribed(cut, b"auto")
    assert client.says(b"BEGIN\ntransaction:t\n\n\0") == [Begin(PEER, b"t")]
    (sync,) = client.says(b"ACK\nid:1.1\ntransaction:t\nreceipt:9\n\n\0")
    assert isinstance(sync, Sync)


def test_a_transaction_that_is_refused_ends_the_connection_with_its_reason(cut: Cut) -> None:
    client = connected(cut)
    (commit,) = client.says(b"COMMIT\ntransaction:t\nreceipt:2\n\n\0")
    client.gets(Refused(PEER, commit.token, Refusal.NO_SUCH_TRANSACTION))
    error = client.error()
    assert (error.headers["message"], error.headers["receipt-id"]) == ("no such transaction", "2")


def test_a_send_refused_within_a_transaction_names_its_receipt(cut: Cut) -> None:
    client = connected(cut)
    (sent,) = client.says(b"SEND\ndestination:a\ntransaction:t\nreceipt:5\n\nx\0")
    client.gets(Refused(PEER, sent.token, Refusal.TRANSACTION_TOO_LARGE))
    assert client.error().headers["receipt-id"] == "5"
    client.gets(Confirmed(PEER, sent.token))
    assert client.octets() == b""


def test_a_name_means_the_same_however_it_is_written(cut: Cut) -> None:
    client = connected(cut)
    begin, sent, commit = client.says(b"BEGIN\ntransaction:a:b\n\n\0SEND\ndestination:a\ntransaction:a:b\n\nx\0COMMIT\ntransaction:a\\cb\n\n\0")
    assert begin.transaction == sent.transaction == commit.transaction
