"""A transaction manager of a few lines: it moves a message from one queue to another and adds a row in another database, in one distributed transaction, and
can be stopped, or killed, after each of its steps.

As a program it does that once, and kills itself after the step that it is told; or for many messages, each until it is done:

    python -m tests.acceptance.coordinator STOMP_PORT DSN LOG NAME STEP
    python -m tests.acceptance.coordinator STOMP_PORT DSN LOG PREFIX COUNT
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg

from broker_core.client import BranchState, ConnectionFactory, JMSException, Queue, XAConnection, XAConnectionFactory, XASession
from broker_core.client.exceptions import CONNECTION_LOST

FORMAT = 0x5452
"""Of the branches of this transaction manager: others of the same account are none of its business."""
WORKED, BROKER_PREPARED, DATABASE_PREPARED, DECIDED, BROKER_COMMITTED, DATABASE_COMMITTED = STEPS = (
    "worked", "broker-prepared", "database-prepared", "decided", "broker-committed", "database-committed",
)  # fmt: skip
SECONDS = 10.0
TABLE = "CREATE TABLE transfer (name text PRIMARY KEY)"


def queues(name: str) -> tuple[Queue, Queue]:
    """From where, and to where."""
    return Queue(f"xa.{name}.in"), Queue(f"xa.{name}.out")


class Decisions:
    """What was decided to be committed, on disk before anybody is told. Whatever is not there is rolled back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def decide(self, name: str) -> None:
        with self._path.open("a") as file:
            file.write(f"{name}\n")
            file.flush()
            os.fsync(file.fileno())

    def is_decided(self, name: str) -> bool:
        return name in self._path.read_text().splitlines()

    def count(self) -> int:
        return len(self._path.read_text().splitlines())

    @property
    def end(self) -> Path:
        """A file: when it is there, nothing more is begun."""
        return self._path.with_suffix(".end")


def transfer(
    session: XASession, database: psycopg.Connection, decisions: Decisions, name: str, attempt: str = "1", of: str = ""
) -> Iterator[str]:
    """Each step, when it is done. What fails before the decision is rolled back everywhere, and is over. Each attempt is a transaction of its own: what the
    broker may hear late belongs to another. `of`: who has the queues, if it is not this message alone."""
    source, target = queues(of or name)
    identifier = f"{name}#{attempt}"
    try:
        session.tpc_begin(session.xid(FORMAT, identifier, "broker"))
        database.tpc_begin(database.xid(FORMAT, identifier, "database"))
        with session.create_consumer(source) as consumer:
            message = consumer.receive(SECONDS)
        assert message is not None and message.body == name, f"{source} has {message}, and not {name}"
        session.create_producer(target).send(message.body)
        database.execute("INSERT INTO transfer VALUES (%s)", (name,))
        yield WORKED
        session.tpc_prepare()
        yield BROKER_PREPARED
        database.tpc_prepare()
        yield DATABASE_PREPARED
    except (JMSException, psycopg.Error):
        take_back(session, database)
        return
    decisions.decide(identifier)
    yield DECIDED
    commit(session)
    yield BROKER_COMMITTED
    database.tpc_commit()
    yield DATABASE_COMMITTED


def take_back(session: XASession, database: psycopg.Connection) -> None:
    """Whichever has a part of it. Who cannot be reached is told by `recover`."""
    for party, is_in_it, lost in ((session, session.branch is not None, JMSException), (database, not database.closed, psycopg.OperationalError)):
        try:
            if is_in_it:
                party.tpc_rollback()
        except lost as error:
            if isinstance(error, JMSException) and error.error_code != CONNECTION_LOST:
                raise


def commit(session: XASession) -> None:
    """Until the broker says that it is done."""
    while True:
        try:
            session.tpc_commit()
        except JMSException as error:
            if error.error_code == CONNECTION_LOST:
                continue
            raise
        return


def recover(session: XASession, database: psycopg.Connection, decisions: Decisions, prefix: str = "") -> list[str]:
    """End what crashes have left prepared, on both sides, as it was decided; while nothing new is begun. `prefix`: of names that are this manager's. The
    names of what was transferred, and by whom."""
    found = []
    for xid in session.tpc_recover():
        identifier = xid.global_transaction_id.decode("ascii", "replace")
        if xid.format_id == FORMAT and identifier.startswith(prefix):
            assert xid.state is BranchState.PREPARED, f"somebody has ended {xid} by hand"
            end = session.tpc_commit if decisions.is_decided(identifier) else session.tpc_rollback
            end(xid)
            found.append(f"{name_in(identifier)} broker")
    for other in database.tpc_recover():
        if other.format_id == FORMAT and other.gtrid.startswith(prefix):
            end_other = database.tpc_commit if decisions.is_decided(other.gtrid) else database.tpc_rollback
            end_other(other)
            found.append(f"{name_in(other.gtrid)} database")
    return found


def name_in(identifier: str) -> str:
    return identifier.partition("#")[0]


def factory(port: int) -> XAConnectionFactory:
    """One whose connections come back."""
    return XAConnectionFactory(
        address_list=f"127.0.0.1:{port}", reconnect_enabled=True, reconnect_attempts=-1, reconnect_interval=0.1, consumer_flow_limit=1
    )


def connected(port: int) -> XAConnection:
    connection = factory(port).create_xa_connection()
    connection.start()
    return connection


def fill(port: int, names: list[str], of: str = "") -> None:
    """One message for each transfer."""
    with ConnectionFactory(address_list=f"127.0.0.1:{port}").create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer()
        for name in names:
            producer.send(name, queues(of or name)[0])


def until(last: str, port: int, database: psycopg.Connection, decisions: Decisions, name: str) -> None:
    for step in transfer(connected(port).create_xa_session(), database, decisions, name):
        if step == last:
            os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit(f"{name} has not come to {last}")


def work(count: int, port: int, database: psycopg.Connection, decisions: Decisions, prefix: str) -> None:
    """Transfer PREFIX.0 and so on, from one queue, whatever has become of them before; until somebody wants the end."""
    connection = connected(port)
    for number in range(count):
        name = f"{prefix}.{number}"
        for attempt in itertools.count():
            with connection.create_xa_session() as session:
                try:
                    recover(session, database, decisions, f"{prefix}.")
                except JMSException as error:
                    if error.error_code not in (CONNECTION_LOST, "XAER_NOTA"):
                        raise
                    continue
                if decisions.end.exists() or is_done(database, name):
                    break
                for _ in transfer(session, database, decisions, name, f"{os.getpid()}.{attempt}", prefix):
                    pass
    connection.close()


def is_done(database: psycopg.Connection, name: str) -> bool:
    with database.transaction():
        return database.execute("SELECT FROM transfer WHERE name = %s", (name,)).fetchone() is not None


def main(port: str, dsn: str, log: str, name: str, how: str) -> None:
    with psycopg.connect(dsn) as database:
        if how.isdigit():
            work(int(how), int(port), database, Decisions(Path(log)), name)
        else:
            until(how, int(port), database, Decisions(Path(log)), name)


if __name__ == "__main__":
    main(*sys.argv[1:])
