"""Selectors and no-local, on queues and on topics. NAME is a queue."""

from .client import Client

DURABLE = "durable-subscription-name"


def a_selector_chooses(port, name):
    """Each subscription by its own (item 42); a header is compared as a number where the selector means one."""
    topic = f"/topic/of {name}"
    wanted = {
        "heavy": "weight > 10",
        "north": "region = 'north' AND weight BETWEEN 1 AND 20",
        "no region": "region IS NULL",
        "like": "region LIKE 'no%' OR region IN ('south', 'west')",
    }
    client = Client(port)
    for link, selector in wanted.items():
        client.listen(topic, ack="auto", link=link, selector=selector)
    client.send(topic, "1", weight="9", region="north")
    client.send(topic, "2", weight="100")
    client.send(topic, "3", weight="12", region="south")
    client.send(topic, "4")
    got = {link: [] for link in wanted}
    for _ in range(7):
        frame = client.next()
        got[frame.headers["subscription"]].append(frame.body)
    assert got == {"heavy": ["2", "3"], "north": ["1"], "no region": ["2", "4"], "like": ["1", "3"]}, got
    client.none()
    client.close()


def a_durable_subscription_keeps_only_what_its_selector_chooses(port, name):
    """Another selector redefines it: what it kept is discarded (JMS 6.11.3)."""
    topic = f"/topic/of {name}"
    client = Client(port, client_id=topic)
    client.listen(topic, **{DURABLE: "d", "selector": "colour = 'red'"})
    client.confirmed(client.connection.unsubscribe, "1")
    for colour in ("red", "green", "red"):
        client.send(topic, colour, colour=colour)
    client.listen(topic, **{DURABLE: "d", "selector": "colour = 'red'"})
    assert client.bodies(2) == ["red", "red"]
    client.none()
    client.confirmed(client.connection.unsubscribe, "1")
    client.listen(topic, **{DURABLE: "d", "selector": "colour = 'green'"})
    client.none()
    client.send(topic, "green", colour="green")
    assert client.bodies(1) == ["green"]
    client.close()


def a_bad_selector_is_refused(port, name):
    """The ERROR names the header."""
    topic = f"/topic/of {name}"
    client = Client(port)
    client.subscribe(topic, selector="colour = ")
    assert client.refusal().startswith("header selector is not valid")


def no_local_leaves_out_ones_own(port, name):
    """What this client publishes goes to the others only (JMS 6.11.1)."""
    topic = f"/topic/of {name}"
    client, other = Client(port, client_id=topic), Client(port)
    client.listen(topic, ack="auto", **{"no-local": "true"})
    client.listen(topic, ack="auto", link="all")
    client.send(topic, "mine")
    frame = client.next()
    assert (frame.body, frame.headers["subscription"]) == ("mine", "all")
    client.none()
    other.send(topic, "theirs")
    assert client.bodies(2) == ["theirs", "theirs"]
    client.close()
    other.close()


def a_consumer_of_a_queue_takes_what_its_selector_chooses(port, name):
    """What nobody chooses stays, for whoever comes later; in order for each (item 27)."""
    red, heavy, rest = Client(port), Client(port), Client(port)
    red.listen(name, ack="auto", selector="colour = 'red'")
    heavy.listen(name, ack="auto", selector="colour <> 'red' AND weight > 10")
    for number, (colour, weight) in enumerate([("red", "1"), ("green", "100"), ("green", "9"), ("red", "50"), ("blue", "11"), ("blue", "1")]):
        red.send(name, str(number), colour=colour, weight=weight)
    assert red.bodies(2) == ["0", "3"]
    assert heavy.bodies(2) == ["1", "4"]
    for client in (red, heavy):
        client.none()
    rest.listen(name, ack="auto")
    assert rest.bodies(2) == ["2", "5"]
    for client in (red, heavy, rest):
        client.close()


def what_a_selector_chose_comes_back_to_who_chooses_it(port, name):
    """Flagged; a consumer that does not want it never sees it."""
    chosen, other = Client(port), Client(port)
    chosen.listen(name, selector="kind = 'a'")
    other.listen(name, selector="kind = 'b'")
    other.send(name, "x", kind="a")
    assert chosen.bodies(1) == ["x"]
    chosen.vanish()
    other.none()
    again = Client(port)
    again.listen(name, selector="kind = 'a'")
    frame = again.next()
    assert (frame.body, frame.headers["redelivered"]) == ("x", "true"), frame
    again.settle(frame)
    other.none()
    again.close()
    other.close()


def no_local_on_a_queue_leaves_ones_own_to_others(port, name):
    """Who sends and consumes under one client identifier does not take its own back."""
    client, other = Client(port, client_id=f"{name} own"), Client(port)
    client.listen(name, ack="auto", **{"no-local": "true"})
    client.send(name, "mine")
    client.none()
    other.listen(name, ack="auto")
    assert other.bodies(1) == ["mine"]
    other.close()
    client.close()
