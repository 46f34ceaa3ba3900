"""Full destinations. NAME is a queue that holds two messages and lets producers wait."""

from .client import Client


def a_producer_waits_and_goes_on_when_a_consumer_takes(port, name):
    """Its receipt is withheld, its connection stays, with heart-beats both ways; nothing is lost and nothing comes out of order."""
    producer = Client(port, heartbeats=(500, 500))
    for text in "ab":
        producer.send(name, text)
    for text in "cd":
        producer.connection.send(name, text, persistent="true", receipt=text)
    producer.none("receipt")
    producer.none("receipt")
    assert producer.connection.is_connected() and producer.frames["error"].empty()
    producer.send(f"{name}.other", "another queue goes on")
    consumer = Client(port)
    consumer.listen(name, ack="client-individual")
    for text in "abcd":
        frame = consumer.next()
        assert frame.body == text, frame.body
        consumer.ack(frame)
    assert [producer.next("receipt").headers["receipt-id"] for _ in "cd"] == ["c", "d"]
    producer.send(name, "e")
    assert consumer.next().body == "e"
    for client in (producer, consumer):
        client.close()


def without_a_receipt_there_is_only_the_limit(port, name):
    """A persistent message that does not fit is refused; one that is not is dropped, and the connection goes on."""
    client = Client(port)
    for text in "ab":
        client.send(name, text)
    client.connection.send(name, "dropped")
    client.none("error")
    client.connection.send(name, "refused", persistent="true")
    error = client.next("error")
    assert error.headers["message"] == "destination full" and "max_messages is 2" in error.body, error
