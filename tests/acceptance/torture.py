"""The kill loop: `python -m tests.acceptance.torture --seed N [--short] [--standby]`.

Producers and consumers work on a queue, on a queue whose consumers have selectors, on a topic with durable and shared subscriptions, on tasks
whose results are sent within transactions, on a queue with a duplicate window, whose producer repeats what is in doubt under its name, and on a
queue of message groups, whose consumers come and go; some messages are delayed. Segments are small, and an operator has them compacted by hand.
Meanwhile the node is killed 100 times, PostgreSQL 20 times and the node stopped for 10 s 10 times, at moments that the seed chooses. Then everything
is drained and the book of what the clients saw is audited (tests.acceptance.book), and so is the ledger, by the data pipeline where its runtime is
there (tests.acceptance.delivery_audit): both must prove every message. It prints progress; on failure the seed, the faults, the broken promises and
the ends of the logs. Takes about 15 minutes, `--short` one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass

from tests.acceptance import delivery_audit, faults
from tests.acceptance.book import Book
from tests.acceptance.compacting import SEGMENT_ROWS, Compactor
from tests.acceptance.grouped import GroupConsumer, GroupingProducer
from tests.acceptance.places import EVERYTHING, GROUPED, HEAVY, ONCE, QUEUE, RED, REST, RESULTS, SHARED, SORTED, TASKS, TOPIC
from tests.acceptance.traffic import Consumer, NamingProducer, Producer, Receiver
from tests.acceptance.transactors import Transactor
from tests.acceptance.windows import open_window
from tests.support.service import Service

PACES = ((QUEUE.destination, 250), (QUEUE.destination, 250), (TOPIC, 150), (TASKS.destination, 150), (SORTED, 100))
"""Messages a second of each producer: enough to have hundreds under way at any moment, few enough to keep every one of them in memory."""
NAMING_PACE = 150
"""The same of the producer that names its messages."""
GROUPING_PACES = (100, 100)
"""And of those whose messages belong to groups."""
GROUP_CONSUMERS = 4
DUPLICATE_WINDOW_MS = 600_000
"""More than any interruption lasts; at its pace a producer names less meanwhile than a destination remembers."""
CONSUMERS = (QUEUE, QUEUE, QUEUE, EVERYTHING, HEAVY, SHARED, SHARED, RESULTS, RED, REST, REST, ONCE, ONCE)
"""Every second one acknowledges singly, the others cumulatively."""
TRANSACTORS = 2
RECOVERY_SECONDS_MAX = 90
"""No confirmation for so long after a fault: the service does not come back. The longest parts are PostgreSQL's own recovery and the pause of up to
30 s that the supervisor makes before it starts what has died on its way up several times in a row."""
SUBSCRIBE_SECONDS_MAX = 30
QUIET_SECONDS = 5
"""Everything counts as drained when all is acknowledged and nothing came for so long; the first redelivery back-off is 1 s."""
DRAIN_SECONDS_MAX = 180
PROGRESS_SECONDS = 5


@dataclass(slots=True, frozen=True)
class Form:
    node: int
    database: int
    stops: int
    stop_seconds: float


FULL = Form(node=100, database=20, stops=10, stop_seconds=10)
SHORT = Form(node=8, database=3, stops=1, stop_seconds=4)


class Failed(Exception):
    """The service or a client did not do what the loop needs; not a broken promise, but no success either."""


class Torture:
    """One run on a service that is ready. `ports`: where the nodes listen for STOMP."""

    def __init__(self, service: Service, seed: int, form: Form, ports: list[int]) -> None:
        self.service, self.seed, self.book = service, seed, Book()
        self.faults = faults.plan(seed, node=form.node, database=form.database, stops=form.stops, stop_seconds=form.stop_seconds)
        self.producers = [
            Producer(f"p{number}", ports, self.book, seed, destination=destination, pace=pace) for number, (destination, pace) in enumerate(PACES)
        ]
        self.naming = NamingProducer("n", ports, self.book, seed, destination=ONCE.destination, pace=NAMING_PACE)
        self.producers.append(self.naming)
        self.producers += [
            GroupingProducer(f"g{number}", ports, self.book, seed, destination=GROUPED.destination, pace=pace)
            for number, pace in enumerate(GROUPING_PACES)
        ]
        self.consumers: list[Receiver] = [
            Consumer(f"c{number}", ports, self.book, seed, place=place, individual=number % 2 == 0) for number, place in enumerate(CONSUMERS)
        ]
        self.consumers += [
            GroupConsumer(f"o{number}", ports, self.book, seed, place=GROUPED, individual=number % 2 == 0) for number in range(GROUP_CONSUMERS)
        ]
        self.consumers += [Transactor(f"x{number}", ports, self.book, seed, place=TASKS) for number in range(TRANSACTORS)]
        self.compactor = Compactor(service, seed)
        self.done: list[str] = []
        self.slowest = 0.0
        """The longest time from a fault to the next confirmation, in seconds."""
        self._began = time.monotonic()
        self._printed = self._began

    def run(self) -> list[str]:
        """The broken promises."""
        open_window(self.service, ONCE.destination[1:], DUPLICATE_WINDOW_MS)
        for consumer in self.consumers:
            consumer.start()
        for consumer in self.consumers:
            if not consumer.subscribed.wait(SUBSCRIBE_SECONDS_MAX):
                raise Failed(f"{consumer.place.name} is not subscribed")
        for producer in self.producers:
            producer.start()
        self.compactor.start()
        self._await_confirmation(time.monotonic())
        for number, fault in enumerate(self.faults, 1):
            self._sleep(fault.pause)
            began = time.monotonic()
            pid = faults.apply(fault, self.service)
            self.book.next_generation()
            self.done.append(f"{time.strftime('%H:%M:%S')} {number}/{len(self.faults)} {fault.kind.value} {pid}{' in haste' if fault.hasty else ''}")
            if number == len(self.faults) or not self.faults[number].hasty:
                self._await_confirmation(time.monotonic())
                self.slowest = max(self.slowest, time.monotonic() - began)
        self._drain()
        return self.book.verdict()

    def evidence(self, verdict: list[str]) -> str:
        shown = [*verdict[:40], f"... and {len(verdict) - 40} more"] if len(verdict) > 40 else verdict
        errors = [f"{count} x ERROR {text}" for text, count in Counter(self.book.errors).most_common(10)]
        return "\n".join([f"seed {self.seed}", self.book.progress(), *shown, *errors, "faults:", *self.done[-30:]])

    # -- phases ---------------------------------------------------------------------------------------------------------------------
    def _await_confirmation(self, since: float) -> None:
        while self.book.last_confirmed_at <= since:
            self._sleep(0.05)
            if time.monotonic() - since > RECOVERY_SECONDS_MAX:
                raise Failed(f"nothing was confirmed for {RECOVERY_SECONDS_MAX} s: {self.service.get('/health/ready')}")

    def _drain(self) -> None:
        for producer in self.producers:
            producer.stop()
        self.compactor.stop()
        deadline = time.monotonic() + DRAIN_SECONDS_MAX
        while any(producer.is_alive() for producer in self.producers):
            self._sleep(0.1)
            if time.monotonic() > deadline:
                raise Failed("producers wait for confirmations")
        while time.monotonic() < deadline:
            self._sleep(0.2)
            if time.monotonic() - self.book.last_delivered_at > QUIET_SECONDS and not self.book.missing():
                break
        for consumer in self.consumers:
            consumer.stop()
        for consumer in self.consumers:
            consumer.join(30)

    def _sleep(self, seconds: float) -> None:
        """Sleep, print progress, and notice clients that failed."""
        until = time.monotonic() + seconds
        while True:
            for client in [*self.producers, *self.consumers, self.compactor]:
                if client.failure is not None:
                    raise Failed(f"client {client.name}: {client.failure!r}")
            if time.monotonic() - self._printed > PROGRESS_SECONDS:
                self._printed = time.monotonic()
                print(f"{self._printed - self._began:6.0f} s  faults {len(self.done)}/{len(self.faults)}  {self.book.progress()}", flush=True)
            left = until - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, 0.5))


def torture(seed: int, form: Form, *, standby: bool = False, audited: bool = False) -> int:
    """Run on a service of its own; 0 if every promise was kept. `audited`: and if the pipeline proves so."""
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(Service(environment={"SURETY_SEGMENT_ROWS_MAX": str(SEGMENT_ROWS)}))
        ports = [service.stomp_port]
        if standby:
            ports.append(stack.enter_context(service.standby()).stomp_port)
        run = Torture(service, seed, form, ports)
        try:
            verdict = run.run()
            if audited:
                verdict += delivery_audit.audit(service, run.book.confirmed)
        except Failed as error:
            run.compactor.stop()
            verdict = [f"failed: {error}", *run.book.verdict()]
        segments, rows = run.compactor.compacted
        print(run.book.progress(), f"longest interruption {run.slowest:.1f} s", f"repeated under their names {run.naming.repeated}", end="  ")
        print(f"segments compacted {segments}, messages moved out of them {rows}", flush=True)
        if verdict:
            print(f"FAILED\n{run.evidence(verdict)}\n{service.evidence()}", flush=True)
            return 1
        print(f"every promise kept: seed {seed}, {len(run.faults)} faults")
        return 0


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.acceptance.torture", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3)))
    parser.add_argument("--short", action="store_true", help="about a minute")
    parser.add_argument("--standby", action="store_true", help="with a second node standing by; clients know both")
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    missing = delivery_audit.cannot()
    if missing:
        print(f"the ledger will not be audited. {missing}", flush=True)
    sys.exit(torture(chosen.seed, SHORT if chosen.short else FULL, standby=chosen.standby, audited=not missing))


if __name__ == "__main__":
    main()
