"""Delayed messages: not before their time. NAME is a queue."""

import time

from .client import Client

DELAY_MS = 1500
LATE_SECONDS_MAX = 5


def _in_time(client, began):
    frame = client.next()
    took = time.monotonic() - began
    assert DELAY_MS / 1000 - 0.05 <= took < DELAY_MS / 1000 + LATE_SECONDS_MAX, took
    assert "delay" not in frame.headers and "AMQ_SCHEDULED_DELAY" not in frame.headers, "who sends it on does not delay it again"
    return frame.body


def a_delayed_message_comes_when_it_is_due(port, name):
    """What was sent later without a delay is there before it; ActiveMQ's header means the same."""
    client = Client(port)
    client.listen(name, ack="auto")
    began = time.monotonic()
    client.send(name, "delayed", delay=str(DELAY_MS))
    client.send(name, "delayed, too", AMQ_SCHEDULED_DELAY=str(DELAY_MS))
    client.send(name, "at once")
    assert client.bodies(1) == ["at once"]
    assert time.monotonic() - began < DELAY_MS / 1000
    assert [_in_time(client, began) for _ in range(2)] == ["delayed", "delayed, too"]
    client.none()
    client.close()


def a_delayed_message_of_a_topic_is_for_who_is_there_when_it_is_due(port, name):
    """Not for who left meanwhile."""
    topic = f"/topic/of {name}"
    client = Client(port)
    client.listen(topic, ack="auto", link="before")
    began = time.monotonic()
    client.send(topic, "x", delay=str(DELAY_MS))
    client.confirmed(client.connection.unsubscribe, "before")
    client.listen(topic, ack="auto", link="after")
    assert _in_time(client, began) == "x"
    client.none()
    client.close()


def a_delayed_message_of_a_transaction_counts_from_its_send(port, name):
    """And is nowhere if that is aborted."""
    client = Client(port)
    client.listen(name, ack="auto")
    began = time.monotonic()
    for transaction in ("kept", "dropped"):
        client.connection.begin(transaction)
        client.send(name, transaction, delay=str(DELAY_MS), transaction=transaction)
    client.confirmed(client.connection.abort, "dropped")
    client.confirmed(client.connection.commit, "kept")
    assert _in_time(client, began) == "kept"
    client.none()
    client.close()


def a_delay_that_cannot_be_is_refused(port, name):
    """The ERROR names the header."""
    for header, value in (("delay", "-1"), ("delay", "soon"), ("AMQ_SCHEDULED_CRON", "0 * * * *")):
        client = Client(port)
        client.connection.send(name, "x", **{header: value})
        assert header in client.refusal()
