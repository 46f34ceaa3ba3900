"""Messages that are sent again under their names. NAME is a queue with a duplicate window."""

from .client import Client


def what_is_in_doubt_is_sent_again_and_is_there_once(port, name):
    """The connection is lost before the receipts are looked at; Artemis' header means the same."""
    lost = Client(port)
    for number in range(10):
        lost.connection.send(name, f"{number}", persistent="true", receipt=f"{number}", **{"duplicate-id": f"name {number}"})
    lost.next("receipt")
    lost.vanish()
    client = Client(port)
    for number in range(10):
        header = "duplicate-id" if number % 2 else "_AMQ_DUPL_ID"
        client.send(name, f"{number}", **{header: f"name {number}"})
    client.listen(name, ack="auto")
    assert client.bodies(10) == [f"{number}" for number in range(10)]
    client.send(name, "again", **{"duplicate-id": "name 3"})
    client.send(name, "without a name")
    client.send(name, "without a name")
    assert client.bodies(2) == ["without a name"] * 2
    client.none()
    client.close()


def a_duplicate_in_a_transaction_is_left_out_alone(port, name):
    client = Client(port)
    client.send(name, "first", **{"duplicate-id": "1"})
    client.listen(name, ack="auto")
    assert client.bodies(1) == ["first"]
    client.connection.begin("t")
    for body, identifier in (("again", "1"), ("second", "2")):
        client.send(name, body, transaction="t", **{"duplicate-id": identifier})
    client.confirmed(client.connection.commit, "t")
    assert client.bodies(1) == ["second"]
    client.none()
    client.close()
