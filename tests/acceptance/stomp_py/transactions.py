"""Transactions: BEGIN, COMMIT, ABORT, and SEND, ACK and NACK within. NAME is a queue."""

from .client import Client


def nothing_is_seen_before_the_commit_and_all_after(port, name):
    """Sends to several destinations, in order (checklist item 60); their receipts say that they were taken, not that they are there."""
    client, reader = Client(port), Client(port)
    topic = f"/topic/of {name}"
    for link, destination in enumerate((name, f"{name}.other", topic)):
        reader.listen(destination, ack="auto", link=str(link))
    client.connection.begin("t")
    for text in "abc":
        client.send(name, text, transaction="t")
    client.send(f"{name}.other", "d", transaction="t")
    client.send(topic, "e", transaction="t")
    reader.none()
    client.confirmed(client.connection.commit, "t")
    frames = [reader.next() for _ in range(5)]
    assert [frame.body for frame in frames if frame.headers["subscription"] == "0"] == ["a", "b", "c"], frames
    assert sorted(frame.body for frame in frames) == ["a", "b", "c", "d", "e"], frames
    reader.none()
    client.close()
    reader.close()


def what_was_aborted_never_was(port, name):
    """The connection goes on; what was sent beside the transaction is there."""
    client = Client(port)
    client.connection.begin("t")
    client.send(name, "aborted", transaction="t")
    client.send(name, "beside it")
    client.confirmed(client.connection.abort, "t")
    client.listen(name, ack="auto")
    assert client.bodies(1) == ["beside it"]
    client.none()
    client.close()


def an_abort_brings_back_what_was_acknowledged(port, name):
    """Flagged, to be acknowledged again; a commit then is final."""
    client = Client(port)
    client.send(name, "x")
    client.listen(name)
    frame = client.next()
    client.connection.begin("t")
    client.confirmed(client.connection.ack, frame.headers["ack"], transaction="t")
    client.none()
    client.confirmed(client.connection.abort, "t")
    again = client.next()
    assert (again.body, again.headers["redelivered"]) == ("x", "true"), again
    client.connection.begin("t")
    client.connection.ack(again.headers["ack"], transaction="t")
    client.confirmed(client.connection.commit, "t")
    client.close()
    client = Client(port)
    client.listen(name)
    client.none()
    client.close()


def a_nack_within_counts_at_the_commit(port, name):
    """Until then the message is nobody's; the ACK beside it is final with it."""
    client = Client(port)
    client.send(name, "bad")
    client.send(name, "good")
    client.listen(name)
    bad, good = client.next(), client.next()
    client.connection.begin("t")
    client.connection.nack(bad.headers["ack"], transaction="t")
    client.connection.ack(good.headers["ack"], transaction="t")
    client.none()
    client.confirmed(client.connection.commit, "t")
    again = client.next()
    assert (again.body, again.headers["redelivered"]) == ("bad", "true"), again
    client.settle(again)
    client.none()
    client.close()


def a_consumed_message_becomes_another_within_one_transaction(port, name):
    """Acknowledged and answered together, cumulatively; a consumer that fails before the commit leaves everything as it was."""
    client = Client(port)
    for text in "abc":
        client.send(name, text)
    client.listen(name, ack="client")
    frames = [client.next() for _ in "abc"]
    client.connection.begin("t")
    for frame in frames:
        client.connection.send(f"{name}.out", frame.body.upper(), transaction="t", persistent="true")
    client.confirmed(client.connection.ack, frames[2].headers["ack"], transaction="t")
    client.vanish()
    client = Client(port)
    client.listen(f"{name}.out", ack="auto", link="out")
    client.none()
    client.listen(name, ack="client")
    frames = [client.next() for _ in "abc"]
    assert [(frame.body, frame.headers["redelivered"]) for frame in frames] == [(text, "true") for text in "abc"], frames
    client.connection.begin("t")
    for frame in frames:
        client.connection.send(f"{name}.out", frame.body.upper(), transaction="t", persistent="true")
    client.connection.ack(frames[2].headers["ack"], transaction="t")
    client.confirmed(client.connection.commit, "t")
    assert client.bodies(3) == ["A", "B", "C"]
    client.close()
    client = Client(port)
    client.listen(name)
    client.none()
    client.close()


def a_durable_subscription_acknowledges_within_a_transaction(port, name):
    """Aborted: it comes back to this subscription, flagged; committed: it is over."""
    topic, durable = f"/topic/of {name}", {"durable-subscription-name": "d"}
    client = Client(port, client_id=name)
    client.listen(topic, **durable)
    client.send(topic, "x")
    client.connection.begin("t")
    client.connection.ack(client.next().headers["ack"], transaction="t")
    client.confirmed(client.connection.abort, "t")
    again = client.next()
    assert (again.body, again.headers["redelivered"]) == ("x", "true"), again
    client.connection.begin("t")
    client.connection.ack(again.headers["ack"], transaction="t")
    client.confirmed(client.connection.commit, "t")
    client.close()
    client = Client(port, client_id=name)
    client.listen(topic, **durable)
    client.none()
    client.confirmed(client.connection.unsubscribe, "1", **durable)
    client.close()


def what_went_back_with_its_subscription_is_not_acknowledged_within_a_transaction(port, name):
    """The commit is refused, and what was sent beside the acknowledgement never was: else it would be sent again with the message that comes again."""
    client = Client(port)
    client.send(name, "x")
    client.listen(name)
    frame = client.next()
    client.confirmed(client.connection.unsubscribe, "1")
    client.connection.begin("t")
    client.connection.send(f"{name}.out", "answer", transaction="t")
    client.connection.ack(frame.headers["ack"], transaction="t")
    client.connection.commit("t", receipt="c")
    assert "delivery not outstanding" in client.refusal()
    client = Client(port)
    client.listen(f"{name}.out", ack="auto", link="out")
    client.none()
    client.listen(name)
    client.settle(client.next())
    client.close()


def two_transactions_of_one_connection_end_apart(port, name):
    """One committed, one aborted, interleaved."""
    client = Client(port)
    for transaction in ("kept", "dropped"):
        client.connection.begin(transaction)
    for text in "ab":
        for transaction in ("kept", "dropped"):
            client.send(name, f"{text} {transaction}", transaction=transaction)
    client.confirmed(client.connection.abort, "dropped")
    client.confirmed(client.connection.commit, "kept")
    client.listen(name, ack="auto")
    assert client.bodies(2) == ["a kept", "b kept"]
    client.none()
    client.close()


def a_client_that_vanishes_aborts_its_transaction(port, name):
    """What it sent never was; what it had acknowledged is another's, flagged."""
    client, other = Client(port), Client(port)
    other.send(name, "x")
    client.listen(name)
    frame = client.next()
    client.connection.begin("t")
    client.send(name, "y", transaction="t")
    client.confirmed(client.connection.ack, frame.headers["ack"], transaction="t")
    client.vanish()
    other.listen(name)
    again = other.next()
    assert (again.body, again.headers["redelivered"]) == ("x", "true"), again
    other.none()
    other.settle(again)
    other.close()


def a_transaction_that_has_not_begun_is_refused(port, name):
    """COMMIT, ABORT and SEND in it: an ERROR, and nothing is there."""
    for misuse in (
        lambda client: client.connection.commit("t"),
        lambda client: client.connection.abort("t"),
        lambda client: client.connection.send(name, "x", transaction="t"),
    ):
        client = Client(port)
        misuse(client)
        assert client.refusal() == "no such transaction"
    client = Client(port)
    client.connection.begin("t")
    client.connection.begin("t")
    assert client.refusal() == "transaction exists"
    client = Client(port)
    client.listen(name)
    client.none()
    client.close()
