"""A broker of a few lines on a real socket: it lets everybody in, confirms what it is asked to, and can be silent, deaf or gone."""

from __future__ import annotations

import contextlib
import queue
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Self

from broker_core.stomp.frames import ACK_BY_ID, Parser
from broker_core.stomp.limits import Limits
from broker_core.stomp.sections import CLIENT_COMMANDS, Malformed
from tests.client.broker import Frame

LIMITS = Limits(large_body_octets=Limits().body_octets_max)
SECONDS = 10.0


class ListeningBroker:
    """`confirming`: RECEIPTs are given. `reading` cleared: nothing is read. What breaks the grammar of STOMP ends the connection by an ERROR."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.confirming = True
        self.silent_about: tuple[str, ...] = ()
        """Commands whose RECEIPTs are not given."""
        self.reading = threading.Event()
        self.reading.set()
        self.frames: queue.Queue[Frame] = queue.Queue()
        """What was heard on all connections, CONNECT not."""
        self.connects: queue.Queue[Frame] = queue.Queue()
        self.hanging_up = False
        """Whoever is let in is dropped at once."""
        self.answer = b""
        """Said after the next SEND. TLS must be spoken by one thread."""
        self.object = ""
        """What CONNECTED tells, as JSON."""
        self.beats = "0,0"
        """What CONNECTED promises; none is ever sent."""
        self.refusal = ""
        """What whoever connects is told."""
        self._context = context
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._connection: socket.socket | None = None
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self._unconfirmed: list[str] = []

    @property
    def address(self) -> str:
        return f"stomp{'+tls' if self._context else ''}://127.0.0.1:{self.port}"

    # -- what a test does -----------------------------------------------------------------------------------------------------------------
    def hears(self, command: str) -> Frame:
        """The next frame with this command; what comes before it is passed over."""
        while True:
            frame = self.frames.get(timeout=SECONDS)
            if frame.command == command:
                return frame

    def says(self, octets: bytes) -> None:
        assert self._connection is not None
        self._connection.sendall(octets)

    def delivers(self, subscription: str, *bodies: bytes) -> None:
        for message in messages(subscription, *bodies):
            self.says(message)

    def confirms(self) -> None:
        """What it has not confirmed."""
        receipts, self._unconfirmed = self._unconfirmed, []
        self.says(b"".join([b"RECEIPT\nreceipt-id:%b\n\n\0" % receipt.encode() for receipt in receipts]))

    def drops(self) -> None:
        """The connection is gone."""
        dropped = self._connection  # when it is shut down, the next may be there before this goes on
        assert dropped is not None
        with contextlib.suppress(OSError):
            dropped.shutdown(socket.SHUT_RDWR)
        dropped.close()

    def stops_listening(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stops_listening()
        self.reading.set()
        if self._connection is not None:
            self.drops()
        for thread in self._threads:
            thread.join(SECONDS)

    # -- threads ----------------------------------------------------------------------------------------------------------------------------
    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._socket.accept()
                if self._context is not None:
                    accepted = self._context.wrap_socket(accepted, server_side=True)
            except ssl.SSLError:
                continue
            except OSError:
                return
            self._connection = accepted
            thread = threading.Thread(target=self._serve, args=(accepted,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, accepted: socket.socket) -> None:
        parser = Parser(LIMITS, CLIENT_COMMANDS)
        with accepted, contextlib.suppress(OSError):
            while self.reading.wait() and (octets := accepted.recv(1 << 16)):
                try:
                    for frame in _frames(parser, octets):
                        self._answer(parser, accepted, frame)
                except Malformed as malformed:
                    accepted.sendall(f"ERROR\nmessage:{malformed.sentence}\n\n\0".encode())
                    accepted.shutdown(socket.SHUT_RDWR)
                    return

    def _answer(self, parser: Parser, accepted: socket.socket, frame: Frame) -> None:
        if frame.command == "CONNECT":
            self.connects.put(frame)
            parser.version = "1.2"
            if self.refusal:
                accepted.sendall(f"ERROR\nmessage:{self.refusal}\n\n\0".encode())
            else:
                told = f"administered-object:{self.object}\n".encode() if self.object else b""
                accepted.sendall(b"CONNECTED\nversion:1.2\nsession:n-1-7\nheart-beat:%b\n%b\n\0" % (self.beats.encode(), told))
                if self.hanging_up:
                    accepted.shutdown(socket.SHUT_RDWR)
            return
        if frame.receipt is not None:
            if frame.command not in (self.silent_about if self.confirming else ("SEND", *self.silent_about)):
                accepted.sendall(b"RECEIPT\nreceipt-id:%b\n\n\0" % frame.receipt.encode())
            else:
                self._unconfirmed.append(frame.receipt)
        if frame.command == "SEND" and self.answer:
            said, self.answer = self.answer, b""
            accepted.sendall(said)
        self.frames.put(frame)


def messages(subscription: str, *bodies: bytes) -> Iterator[bytes]:
    for number, body in enumerate(bodies, 1):
        yield b"MESSAGE\nsubscription:%b\nmessage-id:%d\nack:%b.%d\ndestination:/queue/a\ncontent-length:%d\n\n%b\0" % (
            subscription.encode(), number, subscription.encode(), number, len(body), body,
        )  # fmt: skip


def _frames(parser: Parser, octets: bytes) -> Iterator[Frame]:
    for section, receipt, body in parser.events(octets):
        assert body is not None
        headers = {"id": body.decode()} if section is ACK_BY_ID else dict(section.headers)
        if section.transaction is not None:
            headers["transaction"] = section.transaction.decode()
        if receipt is not None:
            headers["receipt"] = receipt.decode()
        yield Frame("ACK" if section is ACK_BY_ID else section.command, headers, body)
