"""Topics: who gets a copy and who keeps one, by what a subscription's headers say."""

import stomp

from .client import Client

DURABLE = "durable-subscription-name"


def _come_and_go(port, topic, bodies, **headers):
    """Open a durable subscription and leave it; what is sent meanwhile is there when its client is back."""
    client_id = f"{topic} {sorted(headers)}"
    client = Client(port, client_id=client_id)
    client.listen(topic, **headers)
    client.close()
    with_others = Client(port)
    for body in bodies:
        with_others.send(topic, body)
    with_others.close()
    client = Client(port, client_id=client_id)
    client.listen(topic, **headers)
    return client


def all_who_are_subscribed_get_a_copy(port, topic):
    """Each of them once, in order; who comes later gets nothing of it (checklist items 40 and 96)."""
    publisher, early = Client(port), [Client(port), Client(port)]
    for client in early:
        client.listen(topic, ack="auto")
    for text in "abc":
        publisher.send(topic, text)
    late = Client(port)
    late.listen(topic, ack="auto")
    for client in early:
        frames = [client.next() for _ in "abc"]
        assert [frame.body for frame in frames] == ["a", "b", "c"], frames
        assert all(frame.headers["destination"] == topic for frame in frames)
        assert all(frame.headers.get("redelivered", "false") == "false" for frame in frames)
    late.none()
    publisher.send(topic, "d")
    for client in [*early, late]:
        assert client.bodies(1) == ["d"]
        client.none()
    for client in [publisher, late, *early]:
        client.close()


def two_subscriptions_of_one_connection_get_a_copy_each(port, topic):
    """One settled by the broker, one by the client: what is acknowledged in one stays unacknowledged in the other."""
    client = Client(port)
    client.listen(topic, ack="auto", link="a")
    client.listen(topic, link="b")
    client.send(topic, "x")
    frames = {frame.headers["subscription"]: frame for frame in (client.next(), client.next())}
    assert sorted(frames) == ["a", "b"]
    assert "ack" in frames["b"].headers and "ack" not in frames["a"].headers
    client.settle(frames["b"])
    client.none()
    client.close()


def a_durable_subscription_keeps_what_its_client_missed(port, topic):
    """By our header (items 41, 93 to 96): in order, not flagged, until it is acknowledged."""
    client = _come_and_go(port, topic, "abc", **{DURABLE: "d"})
    frames = [client.next() for _ in "abc"]
    assert [(frame.body, frame.headers.get("redelivered", "false")) for frame in frames] == [(text, "false") for text in "abc"]
    client.settle(frames[0])
    client.settle(frames[2])
    client.close()
    client = Client(port, client_id=f"{topic} {[DURABLE]}")
    client.listen(topic, **{DURABLE: "d"})
    frame = client.next()
    assert (frame.body, frame.headers["redelivered"]) == ("b", "true"), frame
    client.settle(frame)
    client.none()
    client.close()


def a_durable_subscription_in_the_words_of_activemq(port, topic):
    """activemq.subscriptionName, and activemq.noLocal beside it."""
    client = _come_and_go(port, topic, "a", **{"activemq.subscriptionName": "d", "activemq.noLocal": "true"})
    assert client.bodies(1) == ["a"]
    client.send(topic, "its own")
    client.none()
    client.close()


def a_durable_subscription_in_the_words_of_artemis(port, topic):
    """durable-subscriber-name."""
    client = _come_and_go(port, topic, "a", **{"durable-subscriber-name": "d"})
    assert client.bodies(1) == ["a"]
    client.close()


def a_durable_subscription_in_the_words_of_rabbitmq(port, topic):
    """durable:true; the id names it, the connection has no client identifier; two share it; UNSUBSCRIBE with the same headers ends it."""
    words = {"durable": "true", "auto-delete": "false"}
    link = f"id of {topic}"
    client = Client(port)
    client.listen(topic, link=link, **words)
    client.close()
    publisher = Client(port)
    publisher.send(topic, "a")
    client, other = Client(port), Client(port)
    client.listen(topic, ack="auto", link=link, **words)
    assert client.bodies(1) == ["a"]
    other.listen(topic, ack="auto", link=link, **words)
    for text in "bcde":
        publisher.send(topic, text)
    assert sorted(client.bodies(2) + other.bodies(2)) == ["b", "c", "d", "e"]
    other.close()
    client.confirmed(client.connection.unsubscribe, link, **words)
    publisher.send(topic, "f")
    client.listen(topic, ack="auto", link=link, **words)
    client.none()
    client.confirmed(client.connection.unsubscribe, link, **words)
    client.close()
    publisher.close()


def the_same_name_of_another_client_is_another_subscription(port, topic):
    """Identity is the name and the client identifier (item 97)."""
    clients = [Client(port, client_id=f"{topic} {number}") for number in range(2)]
    for client in clients:
        client.listen(topic, **{DURABLE: "d"})
    clients[0].send(topic, "x")
    for client in clients:
        frame = client.next()
        assert frame.body == "x"
        client.settle(frame)
        client.close()


def unsubscribing_with_the_name_ends_it_for_good(port, topic):
    """Closing it does not: UNSUBSCRIBE without the name only closes the consumer."""
    client = Client(port, client_id=topic)
    client.listen(topic, **{DURABLE: "d"})
    client.confirmed(client.connection.unsubscribe, "1")
    client.send(topic, "kept")
    client.listen(topic, **{DURABLE: "d"})
    client.settle(client.next())
    client.send(topic, "discarded with it")
    client.confirmed(client.connection.unsubscribe, "1", **{DURABLE: "d"})
    client.send(topic, "sent to nobody")
    client.listen(topic, **{DURABLE: "d"})
    client.frames["message"].get(timeout=5)  # delivered before the subscription ended
    client.none()
    client.close()


def a_subscription_that_is_not_there_cannot_be_ended(port, topic):
    """An ERROR says so."""
    client = Client(port, client_id=topic)
    client.connection.unsubscribe("1", **{DURABLE: "nothing"})
    assert client.refusal() == "no subscription of this name"


def a_durable_subscription_needs_a_client_identifier(port, topic):
    """Without one it would be nobody's (items 43 to 46)."""
    client = Client(port)
    client.subscribe(topic, **{DURABLE: "d"})
    assert client.refusal() == "client-id required"


def a_durable_subscription_has_one_consumer(port, topic):
    """A second one is refused and the first goes on undisturbed (item 43)."""
    client = Client(port, client_id=topic)
    client.listen(topic, **{DURABLE: "d"})
    client.subscribe(topic, link="2", **{DURABLE: "d"})
    assert client.refusal() == "subscription in use"
    client = Client(port, client_id=topic)
    client.listen(topic, **{DURABLE: "d"})
    client.send(topic, "x")
    assert client.bodies(1) == ["x"]
    client.close()


def a_client_identifier_in_use_is_refused(port, topic):
    """Its holder is alive and keeps it (item 45); when that has left, the next one has it."""
    holder = Client(port, client_id=topic)
    holder.listen(topic, ack="auto", **{DURABLE: "d"})
    try:
        Client(port, client_id=topic)
    except stomp.exception.ConnectFailedException:
        holder.send(topic, "undisturbed")
        assert holder.bodies(1) == ["undisturbed"]
        holder.close()
        Client(port, client_id=topic).close()
        return
    raise AssertionError("two connections have one client identifier")


def a_shared_durable_subscription_divides_its_messages(port, topic):
    """Every message to one of its consumers, whatever connections they have; it outlives all of them."""
    publisher, consumers = Client(port), [Client(port), Client(port)]
    shared = {DURABLE: f"shared {topic}", "shared": "true", "prefetch-count": "1"}
    for client in consumers:
        client.listen(topic, **shared)
    for number in range(10):
        publisher.send(topic, str(number))
    got = {0: [], 1: []}
    for _ in range(5):
        for number, client in enumerate(consumers):
            frame = client.next()
            got[number].append(frame.body)
            client.settle(frame)
    assert sorted(got[0] + got[1], key=int) == [str(number) for number in range(10)], got
    for client in consumers:
        client.none()
        client.close()
    publisher.send(topic, "while nobody was there")
    again = Client(port)
    again.listen(topic, **shared)
    frame = again.next()
    assert frame.body == "while nobody was there"
    again.settle(frame)
    again.confirmed(again.connection.unsubscribe, "1", **shared)
    again.close()
    publisher.close()


def a_shared_subscription_that_is_not_durable_ends_with_its_last_consumer(port, topic):
    """Until then its consumers divide what comes."""
    publisher, consumers = Client(port), [Client(port), Client(port)]
    shared = {"subscription-name": f"shared {topic}", "shared": "true", "prefetch-count": "1"}
    for client in consumers:
        client.listen(topic, **shared)
    publisher.send(topic, "a")
    publisher.send(topic, "b")
    frames = [client.next() for client in consumers]
    assert sorted(frame.body for frame in frames) == ["a", "b"]
    consumers[1].settle(frames[1])
    consumers[0].close()
    again = consumers[1].next()
    assert (again.body, again.headers["redelivered"]) == (frames[0].body, "true"), "what the first had not acknowledged"
    consumers[1].close()
    publisher.send(topic, "to nobody")
    late = Client(port)
    late.listen(topic, **shared)
    late.none()
    late.close()
    publisher.close()


def what_was_not_acknowledged_comes_back_to_its_own_subscription(port, topic):
    """Flagged, and to nobody else (items 69 and 70)."""
    client, other = Client(port, client_id=f"{topic} 1"), Client(port, client_id=f"{topic} 2")
    for each in (client, other):
        each.listen(topic, **{DURABLE: "d"})
    other.send(topic, "x")
    other.settle(other.next())
    client.next()
    client.vanish()
    client = Client(port, client_id=f"{topic} 1")
    client.listen(topic, **{DURABLE: "d"})
    frame = client.next()
    assert (frame.body, frame.headers["redelivered"]) == ("x", "true"), frame
    client.settle(frame)
    other.none()
    client.close()
    other.close()
