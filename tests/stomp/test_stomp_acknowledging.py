"""ACK and NACK in every version: which delivery is meant, what is settled with it, and what is no delivery."""

from __future__ import annotations

import pytest

from broker_core.engine.commands import Settle, Sync, Transacted
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Confirmed, Refused
from broker_core.engine.refusal import Refusal
from tests.stomp.conversation import LINK, PEER, Cut, message, subscribed


# -- ACK and NACK, 1.2 --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "ack", [b"1.6", b"1.0", b"2.1", b"0.1", b"abc", b"1.", b".1", b"1", b"1.x", b"1.+1", b"1.1_0", b"-1.1", b"1." + b"9" * 30]
)
@pytest.mark.parametrize("command", [b"ACK", b"NACK"])
def test_an_id_that_was_never_delivered_here_is_an_error(command: bytes, ack: bytes, cut: Cut) -> None:
    client = subscribed(cut, b"client")
    assert client.says(b"%b\nid:%b\nreceipt:4\n\n\0" % (command, ack)) == []
    error = client.error()
    assert error.headers == {
        "message": f"id '{ack.decode()}' names no delivery of this connection",
        "content-type": "text/plain",
        "content-length": str(len(error.body)),
        "receipt-id": "4",
    }


@pytest.mark.parametrize("command", [b"ACK", b"NACK"])
def test_an_acknowledgement_without_id_is_an_error(command: bytes, cut: Cut) -> None:
    client = subscribed(cut, b"client")
    client.says(b"%b\nmessage-id:ID\\cnode1-100\nsubscription:0\n\n\0" % command)
    assert client.error().headers["message"] == f"{command.decode()} needs header id"


def test_client_mode_acknowledges_up_to_the_message() -> None:
    client = subscribed(lambda octets: [octets], b"client")
    assert client.says(b"ACK\nid:1.3\n\n\0") == [Settle(PEER, LINK, (), 3, Outcome.ACCEPTED)]


def test_client_individual_mode_acknowledges_the_message_alone(cut: Cut) -> None:
    client = subscribed(cut, b"client-individual")
    assert client.says(b"ACK\nid:1.3\n\n\0") == [Settle(PEER, LINK, [3], 0, Outcome.ACCEPTED)]


@pytest.mark.parametrize(("command", "outcome"), [(b"ACK", Outcome.ACCEPTED), (b"NACK", Outcome.FAILED)])
def test_in_client_mode_one_delivery_alone_can_be_named(command: bytes, outcome: Outcome, cut: Cut) -> None:
    client = subscribed(cut, b"client")
    assert client.says(b"%b\nid:1.3\nack:client-individual\n\n\0" % command) == [Settle(PEER, LINK, [3], 0, outcome)]
    within = client.says(b"%b\nid:1.2\nack:client-individual\ntransaction:t\n\n\0" % command)
    assert within == [Transacted(PEER, b"t", Settle(PEER, LINK, [2], 0, outcome))]
    (settle,) = client.says(b"%b\nid:1.4\nack:client-individual\nreceipt:r\n\n\0" % command)
    assert settle.tags == [4]
    client.confirm([settle])
    assert [frame.headers["receipt-id"] for frame in client.hears()] == ["r"]


def test_what_is_acknowledged_alone_and_what_is_not_are_two_commands() -> None:
    client = subscribed(lambda octets: [octets], b"client")
    alone = b"ACK\nid:1.%d\nack:client-individual\n\n\0"
    assert client.says(alone % 3 + b"ACK\nid:1.1\n\n\0" + alone % 5 + b"ACK\nid:1.2\n\n\0") == [
        Settle(PEER, LINK, [3]), Settle(PEER, LINK, (), 1), Settle(PEER, LINK, [5]), Settle(PEER, LINK, (), 2),
    ]  # fmt: skip


def test_where_acknowledgements_are_individual_anyway_it_changes_nothing() -> None:
    client = subscribed(lambda octets: [octets], b"client-individual")
    assert client.says(b"ACK\nid:1.3\nack:client-individual\n\n\0ACK\nid:1.1\nack:client-individual\n\n\0") == [Settle(PEER, LINK, [3, 1])]
    client = subscribed(lambda octets: [octets], b"auto", "1.1")
    assert client.says(b"ACK\nsubscription:0\nmessage-id:ID\\cnode1-102\nack:client-individual\n\n\0") == []


def test_1_1_names_one_delivery_alone_by_its_message_id(cut: Cut) -> None:
    client = subscribed(cut, b"client", "1.1")
    one = b"ACK\nsubscription:0\nmessage-id:ID\\cnode1-%d\nack:client-individual\n\n\0"
    assert client.says(one % 102) == [Settle(PEER, LINK, [3])]
    assert client.says(b"ACK\nsubscription:0\nmessage-id:ID\\cnode1-101\n\n\0") == [Settle(PEER, LINK, (), 2)]


def test_acknowledgements_that_arrive_together_become_one_command() -> None:
    client = subscribed(lambda octets: [octets], b"client")
    assert client.says(b"ACK\nid:1.2\n\n\0ACK\nid:1.4\n\n\0ACK\nid:1.3\n\n\0") == [Settle(PEER, LINK, (), 4)]
    client = subscribed(lambda octets: [octets], b"client-individual")
    assert client.says(b"ACK\nid:1.2\n\n\0ACK\nid:1.4\n\n\0ACK\nid:1.3\n\n\0") == [Settle(PEER, LINK, [2, 4, 3])]


def test_but_not_across_outcomes_receipts_links_and_other_commands() -> None:
    client = subscribed(lambda octets: [octets], b"client-individual")
    second = client.subscribes(b"client-individual", b"1")
    client.is_delivered(second, message(sequence=200))
    events = client.says(
        b"ACK\nid:1.1\n\n\0NACK\nid:1.2\n\n\0ACK\nid:1.3\nreceipt:r\n\n\0ACK\nid:1.4\n\n\0ACK\nid:2.1\n\n\0SEND\ndestination:a\n\nx\0ACK\nid:1.5\n\n\0"
    )
    settles = [(event.link, event.tags, event.outcome) for event in events if isinstance(event, Settle)]
    assert settles == [
        (LINK, [1], Outcome.ACCEPTED),
        (LINK, [2], Outcome.FAILED),
        (LINK, [3], Outcome.ACCEPTED),
        (LINK, [4], Outcome.ACCEPTED),
        (second, [1], Outcome.ACCEPTED),
        (LINK, [5], Outcome.ACCEPTED),
    ]


def test_nack_is_a_failure_and_cumulative_only_in_client_mode(cut: Cut) -> None:
    assert subscribed(cut, b"client").says(b"NACK\nid:1.3\n\n\0") == [Settle(PEER, LINK, (), 3, Outcome.FAILED)]
    assert subscribed(cut, b"client-individual").says(b"NACK\nid:1.3\n\n\0") == [Settle(PEER, LINK, [3], 0, Outcome.FAILED)]


@pytest.mark.parametrize(("requeue", "outcome"), [(b"false", Outcome.REJECTED), (b"FALSE", Outcome.REJECTED), (b"true", Outcome.FAILED)])
def test_a_nack_that_wants_no_other_delivery_is_a_rejection(requeue: bytes, outcome: Outcome, cut: Cut) -> None:
    client = subscribed(cut, b"client-individual")
    assert client.says(b"NACK\nid:1.3\nrequeue:%b\n\n\0" % requeue) == [Settle(PEER, LINK, [3], 0, outcome)]
    within = client.says(b"NACK\nid:1.2\nrequeue:%b\ntransaction:t\n\n\0" % requeue)
    assert within == [Transacted(PEER, b"t", Settle(PEER, LINK, [2], 0, outcome))]


def test_a_nack_that_does_not_say_clearly_what_it_wants_is_refused(cut: Cut) -> None:
    client = subscribed(cut, b"client")
    assert client.says(b"NACK\nid:1.3\nrequeue:perhaps\nreceipt:r\n\n\0") == []
    error = client.error()
    assert (error.headers["message"], error.headers["receipt-id"]) == ("header requeue is 'perhaps', neither true nor false", "r")


@pytest.mark.parametrize("headers", [b"", b"receipt:r\n", b"ack:client-individual\n", b"transaction:t\n"])
@pytest.mark.parametrize("mode", [b"client", b"client-individual"])
def test_a_nack_may_say_why_in_so_many_characters_that_can_be_printed(mode: bytes, headers: bytes, cut: Cut) -> None:
    client = subscribed(cut, mode)
    (command,) = client.says(b"NACK\nid:1.3\n%bcomment:\xc3\xa4\\nred\\c %b\n\n\0" % (headers, b"x" * 1000))
    settle = command.work if isinstance(command, Transacted) else command
    assert settle.comment == "ä red: " + "x" * 493


def test_what_one_nack_says_is_not_of_another_nor_of_an_ack(cut: Cut) -> None:
    nacks = b"".join(b"NACK\nid:1.%d\n%b\n\0" % each for each in ((1, b""), (2, b"comment:red\n"), (3, b"comment:red\n"), (4, b"")))
    settled = subscribed(cut, b"client-individual").says(nacks + b"ACK\nid:1.5\ncomment:well\n\n\0")
    said = [(tag, settle.comment) for settle in settled for tag in settle.tags]
    assert said == [(1, ""), (2, "red"), (3, "red"), (4, ""), (5, "")]


def test_what_is_said_of_a_delivery_that_is_over_is_of_no_other(cut: Cut) -> None:
    client = subscribed(cut, b"client-individual", "1.1")
    client.says(b"NACK\nmessage-id:ID\\cnode1-100\nsubscription:0\n\n\0")
    settled = client.says(
        b"NACK\nmessage-id:ID\\cnode1-101\nsubscription:0\n\n\0NACK\nmessage-id:ID\\cnode1-100\nsubscription:0\ncomment:red\n\n\0"
    )
    assert [settle.comment for settle in settled] == [""]


def test_an_acknowledgement_is_receipted_when_it_is_durable(cut: Cut) -> None:
    client = subscribed(cut, b"client")
    (settle,) = client.says(b"ACK\nid:1.3\nreceipt:a\\c1\n\n\0")
    assert client.octets() == b""
    client.gets(Confirmed(PEER, settle.token))
    assert client.octets() == b"RECEIPT\nreceipt-id:a\\c1\n\n\0"


@pytest.mark.parametrize("receipt", [b"", b"receipt:r\n"])
def test_acknowledging_again_what_is_settled_is_no_error(receipt: bytes, cut: Cut) -> None:
    client = subscribed(cut, b"client")
    (settle,) = client.says(b"ACK\nid:1.3\n%b\n\0" % receipt)
    client.gets(Refused(PEER, settle.token, Refusal.NO_SUCH_DELIVERY, "3", LINK))
    assert client.octets() == (b"RECEIPT\nreceipt-id:r\n\n\0" if receipt else b"")
    assert not client.machine.wants_close


def test_acknowledging_in_auto_mode_changes_nothing_in_1_1_either(cut: Cut) -> None:
    client = subscribed(cut, b"auto", version="1.1")
    assert client.says(b"ACK\nsubscription:0\nmessage-id:ID\\cnode1-100\n\n\0") == []
    assert not client.machine.wants_close


def test_acknowledging_in_auto_mode_changes_nothing(cut: Cut) -> None:
    client = subscribed(cut, b"auto")
    assert client.says(b"ACK\nid:1.3\n\n\0") == []
    (sync,) = client.says(b"ACK\nid:1.3\nreceipt:r\n\n\0")
    assert isinstance(sync, Sync)
    client.confirm([sync])
    assert client.octets() == b"RECEIPT\nreceipt-id:r\n\n\0"


def test_after_unsubscribe_an_acknowledgement_is_ignored_but_not_receipted(cut: Cut) -> None:
    client = subscribed(cut, b"client")
    client.says(b"UNSUBSCRIBE\nid:0\n\n\0")
    assert client.says(b"ACK\nid:1.3\n\n\0") == []
    assert not client.machine.wants_close
    assert client.says(b"ACK\nid:1.3\nreceipt:r\n\n\0") == []
    assert client.error().headers["message"] == "id '1.3' is of a subscription that is closed: the message went back to its queue"


def test_a_late_acknowledgement_cannot_hit_the_next_subscription(cut: Cut) -> None:
    client = subscribed(cut, b"client")
    client.says(b"UNSUBSCRIBE\nid:0\n\n\0")
    client.is_delivered(client.subscribes(), message())
    assert client.says(b"ACK\nid:1.1\n\n\0") == []
    assert client.says(b"ACK\nid:2.1\n\n\0") == [Settle(PEER, LINK + 1, (), 1)]


# -- ACK and NACK, 1.0 and 1.1 ------------------------------------------------------------------------------------------------------
def test_1_1_acknowledges_by_subscription_and_message_id(cut: Cut) -> None:
    client = subscribed(cut, b"client-individual", version="1.1")
    assert client.says(b"ACK\nsubscription:0\nmessage-id:ID\\cnode1-102\n\n\0") == [Settle(PEER, LINK, [3])]
    assert client.says(b"NACK\nsubscription:0\nmessage-id:ID\\cnode1-100\n\n\0") == [Settle(PEER, LINK, [1], 0, Outcome.FAILED)]


def test_1_0_acknowledges_by_message_id_alone(cut: Cut) -> None:
    client = subscribed(cut, b"client", version="1.0")
    assert client.says(b"ACK\nmessage-id: ID:node1-102\n\n\0") == [Settle(PEER, LINK, (), 3)]


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        (b"subscription:0\n", "ACK needs header message-id"),
        (b"id:1.1\n", "ACK needs header message-id"),
        (b"message-id:ID\\cnode1-100\n", "ACK needs header subscription"),
        (b"subscription:9\nmessage-id:ID\\cnode1-100\n", "no subscription with id '9' is open on this connection"),
        (b"subscription:0\nmessage-id:ID\\cnode1-105\n", "message-id 'ID:node1-105' names no delivery of this connection"),
        (b"subscription:0\nmessage-id:ID\\cother-1\n", "message-id 'ID:other-1' names no delivery of this connection"),
    ],
)
def test_1_1_refuses_what_names_no_delivery(headers: bytes, sentence: str, cut: Cut) -> None:
    client = subscribed(cut, b"client", version="1.1")
    assert client.says(b"ACK\n" + headers + b"\n\0") == []
    assert client.error().headers["message"] == sentence


def test_1_1_lets_clients_acknowledge_out_of_order_and_twice(cut: Cut) -> None:
    client = subscribed(cut, b"client", version="1.1")
    assert client.says(b"ACK\nsubscription:0\nmessage-id:ID\\cnode1-103\n\n\0") == [Settle(PEER, LINK, (), 4)]
    assert client.says(b"ACK\nsubscription:0\nmessage-id:ID\\cnode1-101\n\n\0") == []
    (sync,) = client.says(b"ACK\nsubscription:0\nmessage-id:ID\\cnode1-103\nreceipt:1\n\n\0")
    assert isinstance(sync, Sync)


def test_message_ids_are_forgotten_once_settled(cut: Cut) -> None:
    client = subscribed(cut, b"client", version="1.1")
    client.says(b"ACK\nsubscription:0\nmessage-id:ID\\cnode1-103\n\n\0")
    link = client.machine._subscriptions.link(LINK)
    assert link is not None and link._tags == {"ID:node1-104": 5}


def test_a_message_delivered_again_is_acknowledged_by_its_last_delivery(cut: Cut) -> None:
    client = subscribed(cut, b"client-individual", version="1.1")
    client.is_delivered(LINK, message(sequence=100), tag=6)
    assert client.says(b"ACK\nsubscription:0\nmessage-id:ID\\cnode1-100\n\n\0") == [Settle(PEER, LINK, [6])]
