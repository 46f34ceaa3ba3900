"""Clients of the kill loop that consume tasks and send results, a few at a time within one transaction."""

from __future__ import annotations

import time

from tests.acceptance.places import RESULTS, TOPIC, places_of
from tests.acceptance.traffic import IDLE_SECONDS, Receiver, body_of, send_headers
from tests.support.clients import Connection, Frame

TASKS_MAX = 5
"""Of one transaction."""
PREFETCH = 20
ABORT_EVERY, LEAVE_EVERY, DOUBT_EVERY = 15, 100, 40
"""One transaction in so many is aborted; in one the client dies before its end, in one just after its COMMIT has left."""

Task = tuple[str, str]
"""(ack, send id) of a delivery."""


class Transactor(Receiver):
    """Each task becomes a result in a queue and one on the topic. A result is a message of its own: a task that comes again makes another."""

    def work(self, connection: Connection) -> None:
        self.subscribe(connection, "client-individual", PREFETCH)
        self._tasks: list[Task] = []
        self._ends: dict[str, str] = {}
        self._count = 0
        self._heard = time.monotonic()
        while not self.stopping.is_set():
            nothing = self._receive(connection)
            if self._tasks and (nothing or len(self._tasks) >= self.chance.randint(1, TASKS_MAX)):
                tasks, self._tasks = self._tasks, []
                if not self._transact(connection, tasks):
                    return
                while self._ends and self.chance.random() < 0.9:  # else the next one begins while the database commits this one
                    self._receive(connection)

    def _receive(self, connection: Connection) -> bool:
        """Take a frame. True: there was none."""
        frame = connection.receive(IDLE_SECONDS)
        if frame is not None:
            self._heard = time.monotonic()
            self._take(frame)
        elif self._ends:
            self.refuse_silence(self._heard)
        return frame is None

    def _take(self, frame: Frame) -> None:
        if frame.command == "RECEIPT":
            receipt = frame.headers["receipt-id"]
            name = self._ends.pop(receipt)
            if receipt.startswith("commit"):
                self.book.committed(name)
        else:
            self._tasks.append((frame.headers["ack"], self.note(frame)))

    def _transact(self, connection: Connection, tasks: list[Task]) -> bool:
        """All of these tasks. False: this client dies now."""
        self._count += 1
        name = f"{self.stream}-{self._count}"
        chance = self.chance.random()
        self.book.begin(name)
        left = False
        try:
            connection.command("BEGIN", {"transaction": name})
            for number, (ack, _) in enumerate(tasks):
                for destination, kind in ((RESULTS.destination, "r"), (TOPIC, "t")):
                    self._send(connection, name, destination, f"{name}-{kind}{number}.0")
                connection.command("ACK", {"id": ack, "transaction": name})
            if chance < 1 / LEAVE_EVERY:
                connection.reset()
                return False
            if chance < 1 / LEAVE_EVERY + 1 / ABORT_EVERY:
                self._end(connection, "ABORT", name)
                return True
            self.book.committing(name, [(self.place.name, send_id) for _, send_id in tasks])
            left = True
            self._end(connection, "COMMIT", name)
        finally:
            if not left:
                self.book.aborted(name)
        if chance > 1 - 1 / DOUBT_EVERY:
            connection.reset()
            return False
        return True

    def _send(self, connection: Connection, transaction: str, destination: str, send_id: str) -> None:
        headers = send_headers(send_id)
        delay = int(headers.get("delay", 0))
        self.book.sent(send_id, places_of(destination, headers), stream=self.stream, transaction=transaction, delay_ms=delay)
        connection.send(destination, body_of(send_id), headers | {"transaction": transaction})

    def _end(self, connection: Connection, command: str, name: str) -> None:
        receipt = f"{command.lower()} {name}"
        self._ends[receipt] = name
        connection.command(command, {"transaction": name, "receipt": receipt})
