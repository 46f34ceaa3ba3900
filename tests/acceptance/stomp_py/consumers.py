"""Who of several consumers receives, and who only looks: exclusive consumers, priorities of consumers and of messages, browsers. NAME is a queue."""

from .client import Client


def an_exclusive_consumer_is_followed_by_the_next(port, name):
    """It alone receives; when it is gone the next takes over, with what it held first and in order (items 36 and 37)."""
    first, second = Client(port), Client(port)
    first.listen(name, exclusive="true")
    second.listen(name, **{"activemq.exclusive": "true"})
    for text in "abc":
        second.send(name, text)
    first.settle(first.next())
    assert first.bodies(2) == ["b", "c"]
    second.none()
    second.send(name, "d")
    first.vanish()
    frames = [second.next() for _ in "bcd"]
    assert [frame.body for frame in frames] == ["b", "c", "d"], frames
    assert [frame.headers["redelivered"] for frame in frames[:2]] == ["true", "true"]
    for frame in frames:
        second.settle(frame)
    second.close()


def a_consumer_of_higher_priority_receives_as_long_as_it_has_room(port, name):
    """In the words of Artemis, ActiveMQ and RabbitMQ; with its prefetch exhausted the lower ones get the rest."""
    low, middle, high = Client(port), Client(port), Client(port)
    low.listen(name, **{"x-priority": "-1", "prefetch-count": "10"})
    middle.listen(name, **{"activemq.priority": "1", "prefetch-count": "2"})
    high.listen(name, **{"consumer-priority": "5", "prefetch-count": "2"})
    for number in range(6):
        low.send(name, str(number))
    assert high.bodies(2) == ["0", "1"]
    assert middle.bodies(2) == ["2", "3"]
    assert low.bodies(2) == ["4", "5"]
    for client in (low, middle, high):
        client.none()
        client.close()


def messages_of_higher_priority_come_first(port, name):
    """Of what waits; equal ones in order (item 26)."""
    client = Client(port)
    for body, priority in (("a", "4"), ("b", "0"), ("c", "9"), ("d", "4"), ("e", "9")):
        client.send(name, body, priority=priority)
    client.listen(name, ack="auto")
    assert client.bodies(5) == ["c", "e", "a", "d", "b"]
    client.close()


def a_browser_sees_everything_and_takes_nothing(port, name):
    """What another one holds, too; the end is told; then it is consumed as if nobody had looked."""
    holder, browser = Client(port), Client(port)
    for text in "abc":
        holder.send(name, text)
    holder.listen(name, **{"prefetch-count": "1"})
    held = holder.next()
    browser.listen(name, ack="auto", link="look", browser="true")
    frames = [browser.next() for _ in range(4)]
    assert [frame.body for frame in frames] == ["a", "b", "c", ""], frames
    assert frames[3].headers["browser"] == "end" and frames[3].headers["message-id"] == "0"
    holder.send(name, "d")
    browser.none()
    holder.settle(held)
    frame = holder.next()
    assert (frame.body, frame.headers.get("redelivered", "false")) == ("b", "false"), frame
    browser.confirmed(browser.connection.unsubscribe, "look")
    browser.close()
    holder.close()


def a_browser_with_a_selector_sees_what_it_chooses(port, name):
    """And counts nothing that is acknowledged before it comes by."""
    client = Client(port)
    for number in range(6):
        client.send(name, str(number), odd=str(number % 2))
    client.listen(name, ack="auto", link="look", browser="true", selector="odd = 1")
    frames = [client.next() for _ in range(4)]
    assert [frame.body for frame in frames] == ["1", "3", "5", ""], frames
    client.close()
