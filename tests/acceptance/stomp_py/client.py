"""A stomp.py connection and everything it heard."""

import queue
import ssl
import time

import stomp

from .tls import SharedSocket

TIMEOUT = 15
QUIET = 1.0


class Client(stomp.ConnectionListener):
    """`client_id`: the client identifier to state in CONNECT."""

    def __init__(self, port, kind=stomp.Connection12, login="guest", passcode="guest", tls=None, client_id=None, **options):
        self.frames = {name: queue.Queue() for name in ("message", "receipt", "error", "disconnected", "heartbeat")}
        self.connection = kind([("127.0.0.1", port)], reconnect_attempts_max=1, **options)
        if tls:
            ssl.SSLContext.sslsocket_class = SharedSocket
            self.connection.set_ssl([("127.0.0.1", port)], ca_certs=tls)
        self.connection.set_listener("", self)
        self.connection.connect(login, passcode, wait=True, headers={"client-id": client_id} if client_id else {})

    def on_message(self, frame):
        self.frames["message"].put(frame)

    def on_receipt(self, frame):
        self.frames["receipt"].put(frame)

    def on_error(self, frame):
        self.frames["error"].put(frame)

    def on_disconnected(self):
        self.frames["disconnected"].put(None)

    def on_heartbeat(self):
        self.frames["heartbeat"].put(None)

    def next(self, name="message"):
        return self.frames[name].get(timeout=TIMEOUT)

    def bodies(self, count):
        """Of the next messages."""
        return [self.next().body for _ in range(count)]

    def none(self, name="message"):
        time.sleep(QUIET)
        assert self.frames[name].empty(), self.frames[name].get()

    def confirmed(self, act, *arguments, **headers):
        """Do it with a receipt and return when that is here."""
        act(*arguments, receipt="confirmed", **headers)
        frame = self.next("receipt")
        assert frame.headers["receipt-id"] == "confirmed", frame

    def send(self, destination, body, **headers):
        """A persistent message; returns when it is confirmed."""
        self.confirmed(self.connection.send, destination, body, persistent="true", **headers)

    def subscribe(self, destination, ack="client-individual", link="1", **headers):
        self.connection.subscribe(destination, id=link, ack=ack, headers=headers)

    def listen(self, destination, ack="client-individual", link="1", **headers):
        """Subscribe; what is sent once this returns is for it."""
        self.confirmed(self.connection.subscribe, destination, id=link, ack=ack, **headers)

    def ack(self, frame):
        self.connection.ack(frame.headers["ack"])

    def settle(self, frame):
        """Acknowledge, and return when it cannot come again."""
        self.confirmed(self.connection.ack, frame.headers["ack"])

    def refusal(self):
        """The `message` of the ERROR that ends this connection."""
        message = self.next("error").headers["message"]
        self.next("disconnected")
        return message

    def close(self):
        """With DISCONNECT; returns when the broker has hung up, so that the client identifier is free again."""
        self.connection.disconnect()
        self.next("disconnected")

    def vanish(self):
        """End without DISCONNECT."""
        self.connection.transport.disconnect_socket()
        self.next("disconnected")
