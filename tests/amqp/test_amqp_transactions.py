"""Local transactions (AMQP 1.0 part 4)."""

from __future__ import annotations

import pytest

from broker_core.amqp.composite import write_composite
from broker_core.amqp.frames import frame
from broker_core.amqp.performatives import (
    ACCEPTED, SENDER, Accepted, Coordinator, Declare, Declared, Detach, Discharge, Disposition, End, Modified, Rejected, TransactionalState, Transfer,
)  # fmt: skip
from broker_core.amqp.sections import open_message
from tests.amqp.conversation import Client, bodies, message, outcomes
from tests.amqp.messages import value


def test_a_coordinator_says_what_it_can(client: Client) -> None:
    attached, flow = client.coordinates()
    assert attached.target == Coordinator(("amqp:local-transactions",))
    assert flow.link_credit == 100


def test_what_a_transaction_sends_is_there_when_it_is_committed(client: Client) -> None:
    client.coordinates()
    client.produces()
    transaction = client.declares()
    number = client.sends(message(), state=TransactionalState(transaction))
    assert outcomes(client.hears()) == {number: TransactionalState(transaction, ACCEPTED)}
    assert client.consumes(handle=3)[1:] == []
    assert client.discharges(transaction) == ACCEPTED


def test_what_is_committed_is_delivered(client: Client) -> None:
    client.coordinates()
    client.produces()
    client.consumes(handle=3)
    transaction = client.declares()
    client.sends(message(b"one"), state=TransactionalState(transaction))
    client.sends(message(b"two"), state=TransactionalState(transaction), settled=True)
    client.hears()
    client.sends(b"\0\x53\x77" + write_composite(Discharge(transaction)), 9)
    assert bodies(client.hears()) == [b"one", b"two"]


@pytest.mark.parametrize("settled", [False, True])
def test_a_transaction_of_which_a_message_could_not_be_read_is_not_committed(client: Client, settled: bool) -> None:
    client.coordinates()
    client.produces()
    transaction = client.declares()
    client.sends(message(b"one"), state=TransactionalState(transaction))
    client.sends(b"\0\x53\x75\xa0", state=TransactionalState(transaction), settled=settled)
    client.hears()
    answer = client.discharges(transaction)
    assert isinstance(answer, Rejected) and answer.error is not None and answer.error.condition == "amqp:transaction:rollback"
    assert client.consumes(handle=3)[1:] == []


def test_what_is_rolled_back_never_was_and_what_was_acknowledged_has_failed_once_more(client: Client) -> None:
    client.coordinates()
    client.produces()
    client.sends(message(b"first"))
    client.consumes(handle=3)
    transaction = client.declares()
    assert client.settles(0, state=TransactionalState(transaction, Accepted())) == []
    client.sends(message(b"second"), state=TransactionalState(transaction))
    client.hears()
    client.sends(b"\0\x53\x77" + write_composite(Discharge(transaction, fail=True)), 9)
    heard = client.hears()
    assert bodies(heard) == [b"first"]
    opening = open_message(next(each[1] for each in heard if isinstance(each, tuple)))
    assert opening is not None and opening.header is not None and opening.header.delivery_count == 1


def test_acknowledgements_hold_when_they_are_committed(client: Client) -> None:
    client.coordinates()
    client.produces()
    for name in (b"a", b"b", b"c"):
        client.sends(message(name))
    client.consumes(handle=3)
    transaction = client.declares()
    client.settles(0, 1, TransactionalState(transaction, Accepted()))
    (told,) = client.settles(2, state=TransactionalState(transaction, Accepted()), settled=False)
    assert told == Disposition(SENDER, 2, None, True, TransactionalState(transaction, ACCEPTED))
    assert client.bench.depth() == 3
    assert client.discharges(transaction) == ACCEPTED
    assert client.bench.depth() == 0


def test_a_commit_and_the_next_declare_may_be_said_without_waiting(client: Client) -> None:
    client.coordinates()
    client.produces()
    first = client.declares()
    octets = frame(0, Transfer(1, 10, b"a", 0, state=TransactionalState(first)), message(b"one"))
    octets += frame(0, Transfer(9, 11, b"b", 0), b"\0\x53\x77" + write_composite(Discharge(first)))
    octets += frame(0, Transfer(9, 12, b"c", 0), b"\0\x53\x77" + write_composite(Declare()))
    client.says(octets)
    told = outcomes(client.hears())
    assert told[10] == TransactionalState(first, ACCEPTED)
    assert told[11] == ACCEPTED
    assert isinstance(told[12], Declared) and told[12].txn_id != first


def test_transactions_of_one_connection_are_apart(client: Client) -> None:
    client.coordinates()
    client.produces()
    first, second = client.declares(), client.declares()
    client.sends(message(b"a"), state=TransactionalState(first))
    client.sends(message(b"b"), state=TransactionalState(second))
    client.hears()
    assert client.discharges(first, fail=True) == ACCEPTED
    assert client.discharges(second) == ACCEPTED
    assert client.bench.attach(99) == ["b"]


def test_a_commit_that_cannot_be_done_rolls_back(client: Client) -> None:
    client.coordinates()
    client.produces("queue://mq.sys.dmq")
    transaction = client.declares()
    number = client.sends(message(), state=TransactionalState(transaction))
    assert isinstance(outcomes(client.hears())[number], Rejected)
    rejected = client.discharges(transaction)
    assert rejected.error.condition == "amqp:transaction:rollback"


def test_a_transaction_that_took_too_long_is_rolled_back(client: Client) -> None:
    client.coordinates()
    transaction = client.declares()
    client.bench.now += 300_001
    assert client.discharges(transaction).error.condition == "amqp:transaction:rollback"


def test_a_transaction_that_is_not_known_takes_nothing(client: Client) -> None:
    client.coordinates()
    client.produces()
    number = client.sends(message(), state=TransactionalState(b"nobody's"))
    assert outcomes(client.hears())[number].error.condition == "amqp:transaction:unknown-id"


def test_a_discharge_of_what_was_not_declared_ends_the_link(client: Client) -> None:
    client.coordinates()
    client.sends(b"\0\x53\x77" + write_composite(Discharge(b"nobody's")), 9)
    assert client.hears_one(Detach).error.condition == "amqp:transaction:unknown-id"


@pytest.mark.parametrize("octets", [b"", b"\0\x53\x77\x40", value("declare"), b"\0\x53\x77" + write_composite(Modified()), b"\0\x53\x75\xa0\0", b"\x99"])
def test_a_coordinator_understands_nothing_else(client: Client, octets: bytes) -> None:
    client.coordinates()
    client.sends(octets, 9)
    assert client.hears_one(Detach).error.condition == "amqp:decode-error"


def test_a_distributed_transaction_is_not_begun(client: Client) -> None:
    client.coordinates()
    client.sends(b"\0\x53\x77" + write_composite(Declare(b"global")), 9)
    assert client.hears_one(Detach).error.condition == "amqp:not-implemented"


def test_what_is_longer_than_a_declare_can_be_ends_the_link(client: Client) -> None:
    client.coordinates()
    client.sends(value("x" * 2000), 9)
    assert client.hears_one(Detach).error.condition == "amqp:invalid-field"


@pytest.mark.parametrize("ended", [Detach(9, closed=True), End()])
def test_what_was_declared_and_not_discharged_is_rolled_back_when_its_link_goes(client: Client, ended: object) -> None:
    client.produces()
    client.sends(message(b"a"))
    client.coordinates()
    client.consumes(handle=3)
    transaction = client.declares()
    client.settles(0, state=TransactionalState(transaction, Accepted()))
    client.hears()
    client.speaks(ended)  # type: ignore[arg-type]
    assert not client.bench.engine.shard.peers[client.peer].transactions
    assert client.bench.depth() == 1


def test_there_are_as_many_transactions_as_there_may_be(client: Client) -> None:
    client.coordinates()
    for _ in range(100):
        client.declares()
    number = client.sends(b"\0\x53\x77" + write_composite(Declare()), 9)
    assert outcomes(client.hears())[number].error.condition == "amqp:resource-limit-exceeded"


