"""What the pictures show: a shop that works, and what goes wrong in one."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from broker_core.client import Connection, Queue, Topic
from tests.acceptance.delivery_audit import cannot
from tests.acceptance.python_client import factory, leave_in_doubt
from tests.browser.watched import ADMINISTRATOR
from tests.support.browser import Browser
from tests.support.service import REPOSITORY, Service

BUSY = ("orders.new", "orders.paid", "orders.shipped", "invoices", "mail.out", "stock.changes")
CONSUMED = BUSY[:4]
QUIET = tuple(f"region.{number}.events" for number in range(1, 25))
FAILING = "mail.out"
REJECTED_SECONDS = 0.4
"""Between two messages that the mailer fails with."""
LATE_SECONDS = 3600
BRIEF_SECONDS = 20.0


class Traffic:
    """Busy queues with consumers that keep up, one that does not, one whose messages die, a topic with durable subscriptions, mail for later, quotes that
    expire, transactions in doubt, and dead messages of which an operator has sent some back."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stop = threading.Event()
        self._chance = random.Random(7)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            operator = Browser(self._service.http_port)
            operator.log_in(*ADMINISTRATOR)
            operator.does("POST", "destinations", {"address": f"queue/{FAILING}", "settings": {"redelivery_max": 1, "redelivery_delay_ms": 0}})
            producing = stack.enter_context(self._connected("shop"))
            consuming = stack.enter_context(self._connected("warehouse"))
            failing = stack.enter_context(self._connected("mailer"))
            self._lie_still(producing)
            for order in ("order-1042", "order-1043"):
                leave_in_doubt(self._service, Queue("ledger.bookings"), order, "payments", f"{order} is paid")
            work = ((self._produce, producing), (self._consume, consuming), (self._fail, failing))
            threads = [threading.Thread(target=done, args=(connection,)) for done, connection in work]
            for thread in threads:
                thread.start()
            try:
                yield
            finally:
                self._stop.set()
                for thread in threads:
                    thread.join()

    def look_after(self) -> None:
        """What an operator does once there are dead messages: he has some sent back, counts others, and has the ledger audited, where Spark can run."""
        operator = Browser(self._service.http_port)
        operator.log_in(*ADMINISTRATOR)
        number = operator.does("GET", "destinations?address=queue/mq.sys.dmq")["items"][0]["number"]
        for dry, limit in (("false", 10), ("true", 1_000)):
            operator.does("POST", f"destinations/{number}/operations?dry_run={dry}", {"verb": "retry", "limit": limit})
        if why := cannot():
            print(f"Reports are empty: {why}")
            return
        command = [sys.executable, "manage.py", "pipeline", "audit"]
        subprocess.run(command, cwd=REPOSITORY, env=self._service.environment(), check=True, capture_output=True)

    def _connected(self, client_id: str) -> Connection:
        return factory(self._service, configured_client_id=client_id).create_connection()

    def _lie_still(self, connection: Connection) -> None:
        with connection.create_session() as session:
            for name in QUIET:
                producer = session.create_producer(Queue(name))
                for number in range(self._chance.randrange(5)):
                    producer.send(f"event {number}")
            later = session.create_producer(Queue("reminders"))
            for minutes in range(1, 8):
                later.delivery_delay = LATE_SECONDS + 60.0 * minutes
                later.send(f"The invoice is due in {minutes} days.")

    def _produce(self, connection: Connection) -> None:
        with connection.create_session() as session:
            producers = {name: session.create_producer(Queue(name)) for name in BUSY if name != FAILING}
            mail = session.create_producer(Queue(FAILING))
            prices, quotes = session.create_producer(Topic("prices")), session.create_producer(Queue("quotes"))
            number = 0
            while not self._stop.is_set():
                wave = 1 + 4 * abs((time.monotonic() % 60) / 30 - 1)
                for producer in producers.values():
                    for _ in range(self._chance.randrange(int(2 + wave))):
                        number += 1
                        producer.send(f'{{"order": {number}, "customer": "c-{number % 97}", "total": {self._chance.randrange(500)}.00}}')
                if not self._chance.randrange(4):
                    mail.send(f'{{"to": "c-{number % 97}@example.org", "order": {number}}}')
                    quotes.send(f'{{"offer": {number}}}', time_to_live=BRIEF_SECONDS)
                prices.send(str(number))
                self._stop.wait(0.1)

    def _consume(self, connection: Connection) -> None:
        with connection.create_session() as session:
            consumers = [session.create_consumer(Queue(name)) for name in CONSUMED]
            consumers.append(session.create_durable_consumer(Topic("prices"), "board"))
            while not self._stop.is_set():
                for consumer in consumers:
                    for _ in range(4):
                        consumer.receive(0.005)

    def _fail(self, connection: Connection) -> None:
        """Its transactions are rolled back until their messages are dead."""
        with connection.create_session(transacted=True) as session:
            consumer = session.create_consumer(Queue(FAILING))
            while not self._stop.is_set():
                if consumer.receive(0.2) is not None:
                    self._stop.wait(REJECTED_SECONDS)
                    session.rollback()
