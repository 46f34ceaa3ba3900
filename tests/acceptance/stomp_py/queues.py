"""Queues: sending, acknowledging, redelivery, death, manners of the protocol and its versions."""

import ssl
import time

import stomp

from .client import Client

TLS_CONNECTIONS = 50


def send_and_receive(port, name):
    """Text in several scripts, headers with every escape, an empty body: all come back as sent."""
    client = Client(port)
    texts = ["hello", "", "gr\u00fc\u00dfe \u65e5\u672c\u8a9e \U0001f409", "line\nline\r\n"]
    for text in texts:
        client.send(name, text, **{"x-kind": "a:b\\c\nd"})
    client.subscribe(name, ack="auto")
    for text in texts:
        frame = client.next()
        assert frame.body == text, (frame.body, text)
        assert frame.headers["x-kind"] == "a:b\\c\nd", frame.headers
        assert frame.headers["destination"] == name and frame.headers["message-id"]
        assert frame.headers.get("redelivered", "false") == "false"
    client.none()
    client.close()


def octets_with_nul(port, name):
    """Bodies are octets; content-length tells their end."""
    client = Client(port, auto_decode=False)
    body = bytes(range(256)) * 2000
    client.send(name, body, **{"content-type": "application/octet-stream"})
    client.subscribe(name, ack="auto")
    frame = client.next()
    assert frame.body == body and frame.headers["content-type"] == "application/octet-stream"
    client.close()


def acknowledge_singly(port, name):
    """client-individual: what was not acknowledged comes back, flagged, and nothing else."""
    client = Client(port)
    for text in "abc":
        client.send(name, text)
    client.subscribe(name)
    frames = [client.next() for _ in "abc"]
    client.ack(frames[1])
    client.connection.unsubscribe(id="1", receipt="closed")
    client.next("receipt")
    client.subscribe(name, link="2")
    again = [client.next(), client.next()]
    assert [frame.body for frame in again] == ["a", "c"], again
    assert all(frame.headers["redelivered"] == "true" for frame in again)
    for frame in again:
        client.ack(frame)
    client.none()
    client.close()


def acknowledge_cumulatively(port, name):
    """client: one ACK settles all before it."""
    client = Client(port)
    for text in "abcd":
        client.send(name, text)
    client.subscribe(name, ack="client")
    frames = [client.next() for _ in "abcd"]
    client.ack(frames[2])
    client.close()
    other = Client(port)
    other.subscribe(name)
    frame = other.next()
    assert frame.body == "d" and frame.headers["redelivered"] == "true"
    other.none()
    other.ack(frame)
    other.close()


def redelivery_after_a_disconnect(port, name):
    """A consumer that vanishes leaves its messages to another, in order, flagged."""
    first = Client(port)
    for text in "abc":
        first.send(name, text)
    first.subscribe(name)
    for _ in "abc":
        first.next()
    first.vanish()
    second = Client(port)
    second.subscribe(name)
    frames = [second.next() for _ in "abc"]
    assert [(frame.body, frame.headers["redelivered"]) for frame in frames] == [(text, "true") for text in "abc"], frames
    for frame in frames:
        second.ack(frame)
    second.close()


def refused_until_dead(port, name):
    """NACK makes it dead with reason and origin (the destination of this scenario allows one redelivery at once)."""
    client = Client(port)
    client.send(name, "poison", **{"x-colour": "green"})
    client.subscribe(name)
    client.subscribe("/queue/mq.sys.dmq", link="dead")
    deliveries = 0
    while True:
        frame = client.frames["message"].get(timeout=120)
        if frame.headers["subscription"] == "dead":
            if frame.headers.get("x-colour") != "green":
                continue
            break
        deliveries += 1
        assert frame.headers.get("redelivered", "false") == ("true" if deliveries > 1 else "false"), frame.headers
        client.connection.nack(frame.headers["ack"])
        print("delivery", deliveries, frame.headers)
    print("dead", frame.headers)
    assert frame.body == "poison"
    text = " ".join(f"{header}={value}" for header, value in frame.headers.items()).lower()
    assert name.rpartition("/")[2] in text.replace(frame.headers["destination"], ""), "its origin"
    assert "undeliverable" in text or "redeliver" in text, "its reason"
    client.ack(frame)
    client.close()


def receipts_for_everything(port, name):
    """SEND, SUBSCRIBE, ACK, UNSUBSCRIBE and DISCONNECT are confirmed, in order."""
    client = Client(port)
    client.connection.send(name, "x", receipt="1")
    client.connection.subscribe(name, id="1", ack="client", receipt="2")
    frame = client.next()
    client.connection.ack(frame.headers["ack"], receipt="3")
    client.connection.unsubscribe(id="1", receipt="4")
    client.connection.disconnect(receipt="5")
    receipts = [client.next("receipt").headers["receipt-id"] for _ in range(5)]
    assert receipts == ["1", "2", "3", "4", "5"], receipts


def a_misuse_gets_an_error(port, name):
    """Unknown kind of destination, ACK for nothing, subscription id in use: an ERROR that names the mistake, then the end."""
    for misuse in (
        lambda client: client.connection.send("/nonsense/x", "x"),
        lambda client: client.connection.ack("no-such-delivery"),
        lambda client: [client.subscribe(name), client.subscribe(name)],
    ):
        client = Client(port)
        misuse(client)
        error = client.next("error")
        assert len(error.headers["message"]) > 5, error
        client.next("disconnected")


def a_bad_login_is_refused(port, name):
    """Wrong password, unknown account: no connection; a good one still works."""
    for login, passcode in (("guest", "wrong"), ("nobody", "guest"), ("", "")):
        try:
            Client(port, login=login, passcode=passcode)
        except stomp.exception.ConnectFailedException:
            continue
        raise AssertionError(f"{login}/{passcode} got in")
    Client(port).close()


def heart_beats(port, name):
    """Both sides beat: an idle connection stays open, and the client hears the broker's beats."""
    client = Client(port, heartbeats=(500, 500))
    time.sleep(3)
    assert client.connection.is_connected()
    assert client.frames["heartbeat"].qsize() >= 2, client.frames["heartbeat"].qsize()
    client.send(name, "still here")
    client.close()


def version_1_0(port, name):
    """STOMP 1.0: ACK by message-id."""
    _old_version(port, name, stomp.Connection10)


def version_1_1(port, name):
    """STOMP 1.1: ACK by message-id and subscription."""
    _old_version(port, name, stomp.Connection11)


def _old_version(port, name, kind):
    client = Client(port, kind=kind)
    client.send(name, "first")
    client.send(name, "second")
    if kind is stomp.Connection10:
        client.connection.subscribe(name, ack="client", headers={"id": "1"})
    else:
        client.connection.subscribe(name, id="1", ack="client")
    frames = [client.next(), client.next()]
    assert [frame.body for frame in frames] == ["first", "second"]
    if kind is stomp.Connection10:
        client.connection.ack(frames[1].headers["message-id"])
    else:
        client.connection.ack(frames[1].headers["message-id"], "1")
    client.close()
    other = Client(port)
    other.subscribe(name)
    other.none()
    other.close()


def over_tls(port, name, certificate):
    """The same over TLS, the certificate checked. Again and again: stomp.py before 9 writes CONNECT in one thread while another reads, so that what the
    broker says of itself right after the handshake may cost it the CONNECT, once in 25 connections."""
    for _ in range(TLS_CONNECTIONS):
        Client(port, tls=certificate).close()
    client = Client(port, tls=certificate)
    assert isinstance(client.connection.transport.socket, ssl.SSLSocket)
    client.send(name, "secret")
    client.subscribe(name, ack="auto")
    assert client.next().body == "secret"
    client.close()
