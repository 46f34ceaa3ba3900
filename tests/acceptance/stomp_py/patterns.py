"""Wildcard subscriptions: all topics whose names match a pattern. NAME is a topic."""

from .client import Client

DURABLE = "durable-subscription-name"


def patterns_take_topics_of_today_and_those_to_come(port, topic):
    """`*` stands for one level, `**` for one or more, `>` for any number (Open MQ's and ActiveMQ's)."""
    client, publisher = Client(port), Client(port)
    root = f"{topic}~"
    publisher.send(f"{root}.a", "before anybody was there")
    for link, pattern in {"one": f"{root}.*", "more": f"{root}.**", "any": f"{root}.>", "middle": f"{root}.*.c"}.items():
        client.listen(pattern, ack="auto", link=link)
    for name in ("", ".a", ".b", ".b.c", ".b.c.d"):
        publisher.send(f"{root}{name}", name)
    got = {link: [] for link in ("one", "more", "any", "middle")}
    for _ in range(2 + 4 + 5 + 1):
        frame = client.next()
        assert frame.headers["destination"] == f"{root}{frame.body}", frame
        got[frame.headers["subscription"]].append(frame.body)
    assert {link: sorted(bodies) for link, bodies in got.items()} == {
        "one": [".a", ".b"], "more": [".a", ".b", ".b.c", ".b.c.d"], "any": ["", ".a", ".b", ".b.c", ".b.c.d"], "middle": [".b.c"],
    }, got  # fmt: skip
    client.none()
    client.close()
    publisher.close()


def a_durable_wildcard_subscription_keeps_what_came_to_topics_new_meanwhile(port, topic):
    """Until it is ended by its name."""
    client, publisher = Client(port, client_id=topic), Client(port)
    client.listen(f"{topic}~.*", **{DURABLE: "d"})
    client.close()
    for name in ("old", "new"):
        publisher.send(f"{topic}~.{name}", name)
    client = Client(port, client_id=topic)
    client.listen(f"{topic}~.*", **{DURABLE: "d"})
    frames = [client.next(), client.next()]
    assert sorted(frame.body for frame in frames) == ["new", "old"]
    for frame in frames:
        client.settle(frame)
    client.none()
    client.confirmed(client.connection.unsubscribe, "1", **{DURABLE: "d"})
    publisher.send(f"{topic}~.new", "to nobody")
    client.listen(f"{topic}~.*", **{DURABLE: "d"})
    client.none()
    client.close()
    publisher.close()


def consumers_of_a_shared_wildcard_subscription_divide_its_messages(port, topic):
    """Whatever topic each comes from; a selector chooses as elsewhere."""
    consumers, publisher = [Client(port), Client(port)], Client(port)
    shared = {DURABLE: f"shared {topic}", "shared": "true", "prefetch-count": "1", "selector": "weight > 1"}
    for client in consumers:
        client.listen(f"{topic}~.>", **shared)
    for number in range(8):
        publisher.send(f"{topic}~.{number % 3}", str(number), weight=str(number % 4))
    got = []
    for _ in range(2):
        for client in consumers:
            frame = client.next()
            got.append(frame.body)
            client.settle(frame)
    assert sorted(got) == ["2", "3", "6", "7"], got
    for client in (*consumers, publisher):
        client.none()
        client.close()


def nothing_is_sent_to_a_pattern(port, topic):
    """The ERROR says so."""
    client = Client(port)
    client.connection.send(f"{topic}~.*", "x")
    assert "*" in client.refusal()
