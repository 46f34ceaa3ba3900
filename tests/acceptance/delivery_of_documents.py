"""stomp.py as a producer that repeats what was not confirmed and as a consumer that acknowledges with receipts.

Both kill the node in the very moment in which they learn of the k-th confirmation or acknowledgement.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import stomp

from tests.support.clients import back_off
from tests.support.service import NotServing, Service

WINDOW = 500
PREFETCH = 500
QUIET_SECONDS = 3
STALL_SECONDS_MAX = 60
"""Nothing moves for so long: the service does not come back."""


def connect(service: Service, listener: stomp.ConnectionListener) -> stomp.Connection12:
    for _ in back_off(STALL_SECONDS_MAX):
        connection = stomp.Connection12([("127.0.0.1", service.stomp_port)], auto_decode=False, reconnect_attempts_max=1)
        connection.set_listener("", listener)
        try:
            connection.connect("guest", "guest", wait=True)
        except stomp.exception.StompException:
            continue
        return connection
    raise NotServing(f"stomp.py cannot connect within {STALL_SECONDS_MAX} s\n{service.evidence()}")


class _Client(stomp.ConnectionListener):
    """What one run saw, over all its connections. The listener's methods run in stomp.py's receiving thread."""

    def __init__(self, kills: list[int]) -> None:
        self.service: Service | None = None
        self.kills_left = sorted(kills)
        self.moved_at = time.monotonic()
        self.errors: list[str] = []
        self.changed = threading.Condition()

    def on_error(self, frame: Any) -> None:
        self.errors.append(f"{frame.headers} {frame.body!r}")

    def on_disconnected(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def count(self, reached: int) -> None:
        """The k-th answer is here: kill the node now if that was planned."""
        self.moved_at = time.monotonic()
        if self.kills_left and reached >= self.kills_left[0]:
            self.kills_left.pop(0)
            assert self.service is not None
            self.service.kill("node")

    def refuse_stall(self) -> None:
        if time.monotonic() - self.moved_at > STALL_SECONDS_MAX:
            assert self.service is not None
            raise NotServing(f"nothing moves for {STALL_SECONDS_MAX} s; errors {self.errors[-3:]}\n{self.service.evidence()}")


class Sender(_Client):
    """Sends every document until one send of each is confirmed. A send id is `<number of the document>.<attempt>`."""

    def __init__(self, documents: list[bytes], kills: list[int]) -> None:
        super().__init__(kills)
        self.documents = documents
        self.confirmed: set[str] = set()
        self.sent: set[str] = set()
        self._todo = deque((number, 0) for number in range(len(documents)))
        self._waiting: dict[str, tuple[int, int]] = {}

    def on_receipt(self, frame: Any) -> None:
        with self.changed:
            send_id = frame.headers["receipt-id"]
            if send_id not in self.sent:
                return  # the receipt for DISCONNECT
            self.confirmed.add(send_id)
            self._waiting.pop(send_id, None)
            self.changed.notify_all()
        self.count(len(self.confirmed))

    def is_done(self) -> bool:
        return not self._todo and not self._waiting

    def work(self, connection: stomp.Connection12, queue: str) -> None:
        """Send until everything is confirmed or the connection is lost."""
        while not self.is_done() and connection.is_connected():
            with self.changed:
                if not self._todo or len(self._waiting) >= WINDOW:
                    self.changed.wait(0.5)
                    self.refuse_stall()
                    continue
                number, attempt = self._todo.popleft()
                send_id = f"{number}.{attempt}"
                self._waiting[send_id] = (number, attempt)
                self.sent.add(send_id)
            connection.send(
                queue,
                self.documents[number],
                content_type="text/plain;charset=utf-8",
                persistent="true",
                receipt=send_id,
                **{"send-id": send_id},
            )

    def repeat_what_was_not_confirmed(self) -> None:
        with self.changed:
            self._todo.extendleft((number, attempt + 1) for number, attempt in reversed(self._waiting.values()))
            self._waiting.clear()


class Collector(_Client):
    """Receives and acknowledges singly, each ACK with a receipt."""

    def __init__(self, documents: list[bytes], kills: list[int]) -> None:
        super().__init__(kills)
        self.documents = documents
        self.unflagged: set[str] = set()
        self.flagged: set[str] = set()
        self.acknowledged: set[str] = set()
        self.acknowledging: set[str] = set()
        """ACK sent on the present connection, its receipt not here yet. What a killed node still heard of it nobody knows."""
        self.wrong: list[str] = []
        self.repeated: list[str] = []
        self.came_back: list[str] = []
        self.connection: stomp.Connection12 | None = None

    @property
    def arrived(self) -> set[str]:
        return self.unflagged | self.flagged

    def on_message(self, frame: Any) -> None:
        self.moved_at = time.monotonic()
        send_id = frame.headers["send-id"]
        if frame.body != self.documents[int(send_id.partition(".")[0])]:
            self.wrong.append(send_id)
        if send_id in self.acknowledged:
            self.came_back.append(send_id)
        if frame.headers.get("redelivered") == "true":
            self.flagged.add(send_id)
        elif send_id in self.unflagged:
            self.repeated.append(send_id)
        else:
            self.unflagged.add(send_id)
        assert self.connection is not None
        self.acknowledging.add(send_id)
        self.connection.ack(frame.headers["ack"], receipt=send_id)

    def on_receipt(self, frame: Any) -> None:
        send_id = frame.headers["receipt-id"]
        if send_id in self.arrived:  # not the receipt for DISCONNECT
            self.acknowledged.add(send_id)
            self.acknowledging.discard(send_id)
            self.count(len(self.acknowledged))


def send_all(service: Service, queue: str, sender: Sender) -> None:
    sender.service = service
    while not sender.is_done():
        connection = connect(service, sender)
        try:
            sender.work(connection, queue)
            if sender.is_done():
                connection.disconnect()
        except (stomp.exception.StompException, OSError) as error:  # the node is gone; what was not confirmed is repeated
            sender.errors.append(repr(error))
        sender.repeat_what_was_not_confirmed()


def acknowledge_all(service: Service, queue: str, expected: int, collector: Collector) -> None:
    """Until `expected` messages arrived, are acknowledged, and no other came for a while."""
    collector.service = service
    while True:
        collector.acknowledging.clear()
        connection = collector.connection = connect(service, collector)
        connection.subscribe(queue, id="0", ack="client-individual", headers={"prefetch-count": str(PREFETCH)})
        while connection.is_connected():
            time.sleep(0.1)
            collector.refuse_stall()
            quiet = time.monotonic() - collector.moved_at > QUIET_SECONDS
            if quiet and len(collector.arrived) >= expected and not collector.acknowledging:
                connection.disconnect()
                return
