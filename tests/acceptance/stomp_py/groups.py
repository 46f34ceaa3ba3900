"""Message groups."""

from .client import Client


def a_group_goes_to_one_consumer_and_to_the_next_when_that_has_gone(port, name):
    first, second = Client(port), Client(port)
    first.listen(name, **{"prefetch-count": "2"})
    second.listen(name)
    sender = Client(port)
    for body in ("a1", "b1", "a2", "a3", "b2"):
        sender.send(name, body, JMSXGroupID=body[0])
    got = [first.next() for _ in range(2)]
    assert [frame.body for frame in got] == ["a1", "a2"], got
    assert [frame.headers["JMSXGroupID"] for frame in got] == ["a", "a"]
    assert second.bodies(2) == ["b1", "b2"]
    first.none()
    first.settle(got[0])
    assert first.bodies(1) == ["a3"]
    second.none()
    first.vanish()
    rest = [second.next() for _ in range(2)]
    assert [(frame.body, frame.headers["redelivered"]) for frame in rest] == [("a2", "true"), ("a3", "true")], rest
    sender.send(name, "a4", JMSXGroupID="a")
    assert second.bodies(1) == ["a4"]
    second.close()
    sender.close()


def the_last_message_of_a_group_lets_it_choose_anew(port, name):
    first, second, sender = Client(port), Client(port), Client(port)
    first.listen(name)
    sender.send(name, "a1", JMSXGroupID="a")
    second.listen(name)
    sender.send(name, "a2", JMSXGroupID="a", JMSXGroupSeq="-1")
    assert first.bodies(2) == ["a1", "a2"]
    sender.send(name, "b1", JMSXGroupID="b")
    sender.send(name, "a3", JMSXGroupID="a")
    sender.send(name, "b2", JMSXGroupID="b")
    heard = [(client, client.next().body) for client in (first, second)]
    assert {body for _, body in heard} == {"b1", "a3"}, heard
    assert next(client for client, body in heard if body == "b1").bodies(1) == ["b2"]
    for client in (first, second, sender):
        client.close()
