"""Request and reply over temporary destinations."""

from .client import Client

REPLIES = "/temp-queue/replies"


def _answer(responder, name):
    """Take one request and answer it, in one step."""
    request = responder.next()
    headers = request.headers
    responder.connection.begin("t")
    responder.connection.send(headers["reply-to"], f"{name}: {request.body}", **{"correlation-id": headers["correlation-id"], "transaction": "t"})
    responder.connection.ack(headers["ack"], transaction="t")
    responder.confirmed(responder.connection.commit, "t")
    return headers["reply-to"]


def requests_are_answered_to_their_own_connections(port, queue):
    """Two requesters, one name, one responder: each gets the replies to what it asked."""
    responder, requesters = Client(port), [Client(port), Client(port)]
    responder.listen(queue)
    for requester in requesters:
        requester.listen(REPLIES, ack="auto")
    addresses = set()
    for number in range(10):
        for name, requester in zip("ab", requesters, strict=True):
            requester.send(queue, f"{name}{number}", **{"reply-to": REPLIES, "correlation-id": str(number)})
            addresses.add(_answer(responder, "done"))
            reply = requester.next()
            assert (reply.body, reply.headers["correlation-id"], reply.headers["subscription"]) == (f"done: {name}{number}", str(number), "1")
    assert len(addresses) == 2 and all(address.startswith("/temp-queue/") for address in addresses), addresses
    for client in (responder, *requesters):
        client.none()
        client.close()


def a_reply_waits_for_a_requester_that_listens_later(port, queue):
    requester, responder = Client(port), Client(port)
    responder.listen(queue)
    requester.send(queue, "x", **{"reply-to": REPLIES, "correlation-id": "1"})
    _answer(responder, "early")
    requester.listen(REPLIES, ack="auto")
    assert requester.bodies(1) == ["early: x"]
    requester.close()
    responder.close()


def a_requester_that_has_gone_ends_nobody_else(port, queue):
    """Replies to it are confirmed and dropped; nobody takes its place."""
    requester, responder = Client(port), Client(port)
    responder.listen(queue)
    requester.send(queue, "x", **{"reply-to": REPLIES, "correlation-id": "1"})
    requester.vanish()
    address = _answer(responder, "late")
    responder.send(address, "later still")
    other = Client(port)
    other.subscribe(address)
    assert other.refusal() == "not the owner"
    responder.send(queue, "still here")
    assert responder.bodies(1) == ["still here"]
    responder.close()


def a_temporary_topic_is_heard_by_all_subscriptions_of_its_connection(port, queue):
    requester, responder = Client(port), Client(port)
    responder.listen(queue)
    for link in "ab":
        requester.listen("/temp-topic/news", ack="auto", link=link)
    requester.send(queue, "x", **{"reply-to": "/temp-topic/news", "correlation-id": "1"})
    _answer(responder, "all")
    assert sorted((frame.headers["subscription"], frame.body) for frame in (requester.next(), requester.next())) == [("a", "all: x"), ("b", "all: x")]
    requester.close()
    responder.close()
