"""The transfer of `coordinator` by the package `transaction`: an XADataManager and the other database, each a party of the same transaction. The last to vote
writes the decision down. It kills itself at the step that it is told:

    python -m tests.acceptance.managed_transfer STOMP_PORT DSN LOG NAME STEP
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import transaction

from broker_core.client.data_manager import XADataManager
from tests.acceptance.coordinator import BROKER_COMMITTED, DATABASE_COMMITTED, DECIDED, FORMAT, SECONDS, Decisions, connected, queues

VOTED = "voted"
STEPS = (VOTED, DECIDED, BROKER_COMMITTED, DATABASE_COMMITTED)
"""Both have voted; so it is to be committed; the broker has done it and not the database; the database and not the broker."""


class Party:
    """Of a transaction: what it does when it is asked to vote, when all have, and when one has not."""

    transaction_manager = None

    def __init__(self, key: str, vote: Callable[[], None], finish: Callable[[], None], take_back: Callable[[], None]) -> None:
        """`key`: parties vote and finish in its order."""
        self._key, self._vote, self._finish, self._take_back = key, vote, finish, take_back

    def sortKey(self) -> str:  # noqa: N802  # the interface's name
        return self._key

    def tpc_begin(self, _: object) -> None:
        """It has begun already."""

    def commit(self, _: object) -> None:
        """Its work is done already."""

    def tpc_vote(self, _: object) -> None:
        self._vote()

    def tpc_finish(self, _: object) -> None:
        self._finish()

    def tpc_abort(self, _: object) -> None:
        self._take_back()

    abort = tpc_abort


def main(port: str, dsn: str, log: str, name: str, last: str) -> None:
    decisions, identifier = Decisions(Path(log)), f"{name}#1"
    source, target = queues(name)
    manager = transaction.TransactionManager()
    session = connected(int(port)).create_xa_session()
    first = "a" if last == BROKER_COMMITTED else "surety"
    XADataManager(session, manager, sort_key=first, make_xid=lambda: session.xid(FORMAT, identifier, "broker"))

    def reached(step: str) -> None:
        if step == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def decide() -> None:
        reached(VOTED)
        decisions.decide(identifier)
        reached(DECIDED)

    def finish() -> None:
        reached(BROKER_COMMITTED)
        database.tpc_commit()
        reached(DATABASE_COMMITTED)

    with psycopg.connect(dsn) as database:
        database.tpc_begin(database.xid(FORMAT, identifier, "database"))
        work = manager.begin()
        work.join(Party("database", database.tpc_prepare, finish, database.tpc_rollback))
        work.join(Party("the log", decide, lambda: None, lambda: None))
        with session.create_consumer(source) as consumer:
            message = consumer.receive(SECONDS)
        assert message is not None and message.body == name, f"{source} has {message}, and not {name}"
        session.create_producer(target).send(message.body)
        database.execute("INSERT INTO transfer VALUES (%s)", (name,))
        work.commit()
    raise SystemExit(f"{name} has not come to {last}")


if __name__ == "__main__":
    main(*sys.argv[1:])
