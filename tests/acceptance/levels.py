"""Five levels of reliability over really running processes, compared with what is promised of them: `python -m tests.acceptance.levels [--rounds N]`.

Every row of tests.acceptance.levels_table has queues of its own, one for each level, so that one restart is enough for all levels. The node has
8 MiB for bodies: what is sent before a stop or a crash is more, so that of each level some is in memory and some, if it may be, on disk.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from functools import reduce

from psycopg import sql

from tests.acceptance.commands import done
from tests.acceptance.foreign import Brokers, await_link, two_brokers
from tests.acceptance.healthy import HealthyTraffic
from tests.acceptance.levels_table import LEVELS, Found, Row, broken, counted, table, together
from tests.acceptance.operators import ask
from tests.acceptance.windows import create
from tests.support.clients import Connection, ErrorReceived, Frame, reconnect
from tests.support.service import Service, await_true

ENVIRONMENT = {"SURETY_BODY_MEMORY_OCTETS_MAX": "8MiB"}
"""The least there may be: a node that is short of memory all the time."""
LARGE = b"x" * 100_000
SMALL = b"x" * 100
MANY = 60
"""Large messages of a level: 6 MB, so that three levels that live in memory need twice what there is."""
FEW = 100
"""Small ones: they fit."""
IN_TRANSACTION = 10
TRANSACTIONS = 30
CUT_AFTER_OCTETS = 2_000
"""From the other broker: some thirty receipts."""
CUT_SECONDS_MAX = 30
RETURN_SECONDS_MAX = 60
RECEIVE_SECONDS_MAX = 30
HASTY = "reliable"
"""It does not wait for the disk: it is sent last, right before a failure, so that nothing else takes it there."""
END = b"the end"


def queue(row: Row, level: str, part: str = "") -> str:
    return f"/queue/levels.{row.name}.{level}{part}"


def open_connection(service: Service) -> Connection:
    return reconnect(service.stomp_port, RETURN_SECONDS_MAX)


# -- clients --------------------------------------------------------------------------------------------------------------------------
def send(connection: Connection, to: str, level: str, count: int, filler: bytes = SMALL, **headers: str) -> None:
    """Bodies begin with their number. It returns when all are confirmed, as far as a message of its level is."""
    for number in range(count):
        receipt = {"receipt": "r"} if number == count - 1 else {}
        connection.command("SEND", {"destination": to, "reliability": level, **receipt, **headers}, b"%d " % number + filler)
    assert connection.expect("RECEIPT", RECEIVE_SECONDS_MAX)


def send_all(service: Service, row: Row, count: int, filler: bytes = SMALL, levels: tuple[str, ...] = LEVELS[::-1]) -> None:
    """The highest level first, so that memory is full when best effort comes."""
    with open_connection(service) as connection:
        for level in levels:
            send(connection, queue(row, level), level, count, filler)


def drain(connection: Connection, of: str, mode: str = "", sender: Connection | None = None) -> list[int]:
    """What is in the queue, of a delivery mode if one is named, taken out. It lies in two lanes, each in its order: behind both is sent what says where
    it ends; by `sender`, if what is there comes from another broker. Then it may come twice."""
    lanes = {"PERSISTENT": ["assured"], "NON_PERSISTENT": ["express"]}.get(mode, ["express", "assured"])
    for level in lanes:
        (sender or connection).confirmed("SEND", {"destination": of, "reliability": level}, END)
    selector = {"selector": f"JMSDeliveryMode = '{mode}'"} if mode else {}
    connection.confirmed("SUBSCRIBE", {"id": of, "destination": of, "ack": "auto", **selector})
    found: list[int] = []
    ends = 0
    while ends < len(lanes):
        body = connection.expect("MESSAGE", RECEIVE_SECONDS_MAX).body
        ends += body == END
        if body != END:
            found.append(int(body.split()[0]))
    connection.confirmed("UNSUBSCRIBE", {"id": of})
    once = sorted(set(found))
    assert sender is not None or len(found) == len(once), f"of {of} came twice: {[n for n in once if found.count(n) > 1]}"
    return once


def kept(service: Service, row: Row, of: int) -> Found:
    """The cells of a row: how many are there now of so many that were sent."""
    with open_connection(service) as connection:
        return counted(row, of, lambda level: len(drain(connection, queue(row, level))))


def rows(service: Service, of: str) -> int:
    """Messages of the queue on disk: in all segments, what spilled included."""
    with service.database() as database:
        names = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'surety' AND tablename ~ '^((message|spill)_|retained$)'").fetchall()
        count = sql.SQL("SELECT count(*) FROM {} WHERE destination = (SELECT destination FROM surety.destination WHERE address = %s)")
        found = [database.execute(count.format(sql.Identifier("surety", name)), [of[1:]]).fetchone() for (name,) in names]
        return sum(row[0] for row in found if row is not None)


def consume(connection: Connection, of: str, count: int) -> list[Frame]:
    """So many deliveries, which are not acknowledged."""
    connection.subscribe(of, link=of, prefetch=count)
    return [connection.expect("MESSAGE", RECEIVE_SECONDS_MAX) for _ in range(count)]


class Transaction:
    """Ten messages of a level, sent and not committed."""

    def __init__(self, connection: Connection, to: str, level: str, name: str = "t", filler: bytes = SMALL) -> None:
        self.connection, self.name, self.level = connection, {"transaction": name}, level
        connection.command("BEGIN", self.name)
        send(connection, to, level, IN_TRANSACTION, filler, **self.name)

    def send(self, to: str) -> None:
        """One more."""
        self.connection.confirmed("SEND", {"destination": to, "reliability": self.level, **self.name}, b"0 ")

    def is_done(self) -> bool:
        """Whether the broker says so when asked to commit it."""
        try:
            self.connection.confirmed("COMMIT", self.name)
        except ErrorReceived:
            return False
        return True


# -- rows that need no failure of the broker ------------------------------------------------------------------------------------------
def few(service: Service) -> Found:
    """Nothing is short: what stands for persistent, and what is written."""
    send_all(service, Row.HARDENED, FEW)
    written = counted(Row.HARDENED, FEW, lambda level: rows(service, queue(Row.HARDENED, level)))
    with open_connection(service) as connection:
        persistent = counted(Row.MODE, FEW, lambda level: len(drain(connection, queue(Row.HARDENED, level), "PERSISTENT")))
        for level in LEVELS:
            drain(connection, queue(Row.HARDENED, level), "NON_PERSISTENT")
    return written | persistent


def clients_fail(service: Service) -> Found:
    """Their connections are cut: of a producer whose messages were confirmed, of a consumer who holds all of them."""
    producer = open_connection(service)
    for level in LEVELS:
        send(producer, queue(Row.PRODUCER, level), level, FEW)
    producer.reset()
    send_all(service, Row.CONSUMER, FEW)
    consumer = open_connection(service)
    for level in LEVELS:
        assert len(consume(consumer, queue(Row.CONSUMER, level), FEW)) == FEW
    consumer.reset()
    return kept(service, Row.PRODUCER, FEW) | kept(service, Row.CONSUMER, FEW)


def rolled_back(service: Service) -> Found:
    with open_connection(service) as connection:
        for level in LEVELS:
            Transaction(connection, queue(Row.ROLLED_BACK, level), level)
            connection.confirmed("ABORT", {"transaction": "t"})
    return kept(service, Row.ROLLED_BACK, IN_TRANSACTION)


def refused(service: Service) -> Found:
    """Each transaction has one message more, for a queue that is paused before the commit."""
    paused = queue(Row.REFUSED, "paused")
    create(service, paused[1:])
    with contextlib.ExitStack() as stack:
        transactions = [Transaction(stack.enter_context(open_connection(service)), queue(Row.REFUSED, level), level) for level in LEVELS]
        for transaction in transactions:
            transaction.send(paused)
        ask(service, "pause", paused[1:], direction="PRODUCERS")
        assert not any(transaction.is_done() for transaction in transactions)
    return kept(service, Row.REFUSED, IN_TRANSACTION)


def full(service: Service) -> Found:
    """The same with a queue that is full: it turns away what comes."""
    limited = queue(Row.FULL, "limited")
    create(service, limited[1:], max_messages=1, limit_behavior="REJECT_NEWEST")
    with contextlib.ExitStack() as stack:
        send(stack.enter_context(open_connection(service)), limited, "assured", 1)
        for level in LEVELS:
            transaction = Transaction(stack.enter_context(open_connection(service)), queue(Row.FULL, level), level)
            transaction.send(limited)
            transaction.is_done()
    return kept(service, Row.FULL, IN_TRANSACTION)


def short_of_memory(service: Service) -> Found:
    """More than fits into memory, of each level, and transactions that are committed meanwhile."""
    send_all(service, Row.PILED, MANY, LARGE)
    written = counted(Row.PILED, MANY, lambda level: rows(service, queue(Row.PILED, level)))
    with open_connection(service) as connection:
        for level in LEVELS:
            assert Transaction(connection, queue(Row.PRESSED, level), level, filler=LARGE).is_done()
        lost = counted(Row.DISCARDED, MANY, lambda level: MANY - len(drain(connection, queue(Row.PILED, level))))
    return written | lost | kept(service, Row.PRESSED, IN_TRANSACTION)


# -- rows with a failure of the broker ------------------------------------------------------------------------------------------------
class Acknowledged:
    """Consumers of each level, who acknowledge everything right before a failure: nothing of it may come again."""

    def __init__(self, service: Service, failure: Row) -> None:
        self.queues = {level: queue(Row.DUPLICATED, level, f".{failure.name}") for level in LEVELS}
        self.connection, self.frames = open_connection(service), list[Frame]()
        for level, of in self.queues.items():
            send(self.connection, of, level, FEW)
            self.frames += consume(self.connection, of, FEW)

    def acknowledge(self) -> None:
        *others, last = self.frames
        for frame in others:
            self.connection.command("ACK", {"id": frame.headers["ack"]})
        self.connection.confirmed("ACK", {"id": last.headers["ack"]})

    def again(self, service: Service) -> Found:
        self.connection.close()
        with open_connection(service) as connection:
            return counted(Row.DUPLICATED, FEW, lambda level: len(drain(connection, self.queues[level])))


class Committing:
    """Transactions of each level under way when the node is killed: some are committed, some may be, some are not."""

    def __init__(self, service: Service) -> None:
        self.connections = {level: open_connection(service) for level in LEVELS}
        self.confirmed = 0
        """Of each level, from the first on."""
        for level, connection in self.connections.items():
            for number in range(TRANSACTIONS):
                Transaction(connection, queue(Row.TORN, level, f".{number}"), level, f"t{number}")

    def commit(self) -> None:
        """The last third without waiting for an answer."""
        self.confirmed = TRANSACTIONS * 2 // 3
        for number in range(TRANSACTIONS):
            for connection in self.connections.values():
                if number < self.confirmed:
                    connection.confirmed("COMMIT", {"transaction": f"t{number}"})
                else:
                    connection.command("COMMIT", {"transaction": f"t{number}", "receipt": "c"})

    def torn(self, service: Service) -> Found:
        for connection in self.connections.values():
            connection.close()

        def count(level: str) -> int:
            whole = [len(drain(connection, queue(Row.TORN, level, f".{number}"))) for number in range(TRANSACTIONS)]
            lost = [found for found in whole[: self.confirmed] if found < IN_TRANSACTION and level == "assured"]
            return sum(0 < found < IN_TRANSACTION for found in whole) + len(lost)

        with open_connection(service) as connection:
            return counted(Row.TORN, TRANSACTIONS, count)


def restart(service: Service) -> None:
    assert service.stop() == 0, service.evidence()
    service.start()


def kill(role: str) -> Callable[[Service], None]:
    def happens(service: Service) -> None:
        service.kill(role)

    return happens


FAILURES: dict[Row, Callable[[Service], None]] = {Row.SHUTDOWN: restart, Row.NODE: kill("node"), Row.DATABASE: kill("postgres")}


def broker_fails(service: Service, row: Row) -> Found:
    acknowledged = Acknowledged(service, row)
    committing = Committing(service) if row is Row.NODE else None
    send_all(service, row, MANY, LARGE, tuple(level for level in LEVELS if level != HASTY))
    acknowledged.acknowledge()
    if committing:
        committing.commit()
    send_all(service, row, MANY, LARGE, (HASTY,))
    FAILURES[row](service)
    found = kept(service, row, MANY) | acknowledged.again(service)
    return found | committing.torn(service) if committing else found


def link_fails(brokers: Brokers) -> Found:
    """A foreign destination of each level: the link is cut when some messages have left and few of them were confirmed."""
    near, far = brokers.near, brokers.far
    for level in LEVELS:
        brokers.forward(queue(Row.LINK, level).removeprefix("/queue/"))
    await_link(near, "connected")
    brokers.wire.stop_after(CUT_AFTER_OCTETS)
    send_all(near, Row.LINK, FEW)
    await_true(lambda: brokers.wire.is_cut, CUT_SECONDS_MAX, "the link was not cut")
    brokers.wire.mend()
    with open_connection(near) as sender, open_connection(far) as connection:
        return counted(Row.LINK, FEW, lambda level: len(drain(connection, queue(Row.LINK, level), sender=sender)))


def backed_up(service: Service) -> Found:
    """While others send and receive; restored in another home."""
    send_all(service, Row.BACKUP, MANY, LARGE)
    other = Service(environment=ENVIRONMENT)
    with HealthyTraffic(service.stomp_port, "/queue/levels.healthy") as healthy:
        done(service, "backup", str(other.folder / "backup"))
        healthy.unharmed()
    done(other, "restore", str(other.folder / "backup"))
    with other:
        return kept(other, Row.BACKUP, MANY)


# -- all of it ------------------------------------------------------------------------------------------------------------------------
QUIET = (few, clients_fail, rolled_back, refused, full, short_of_memory)


def run(service: Service) -> Found:
    """Once, in a service with ENVIRONMENT: everything that needs no other."""
    found: Found = {}
    for rows_of in QUIET:
        found |= rows_of(service)
    for row in FAILURES:
        found = together(found, broker_fails(service, row))
    return found


def rounds(count: int) -> Found:
    """So many, each in a service of its own, which is backed up and restored, and linked to another."""
    found: Found = {}
    for _ in range(count):
        with Service(environment=ENVIRONMENT) as service:
            found = reduce(together, (run(service), backed_up(service)), found)
            with two_brokers(service) as brokers:
                found = together(found, link_fails(brokers))
    return found


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.acceptance.levels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="about half a minute each")
    found = rounds(parser.parse_args().rounds)
    print(table(found))
    sys.exit(bool(broken(found)))


if __name__ == "__main__":
    main()
