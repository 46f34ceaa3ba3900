"""A node without listeners and store: it holds the lease and answers control requests with the real engine, on a thread of its own."""

import json
import threading
from types import TracebackType
from typing import Self

import psycopg

from broker_core.engine.commands import Control, Send
from broker_core.engine.commands import Open as OpenPeer
from broker_core.engine.definitions import (
    AliasDefined, AliasDeleted, DestinationDefined, DestinationDestroyed, PolicyDefined, PolicyDropped, SubscriptionDefined, UndoEnded, UndoKept,
)  # fmt: skip
from broker_core.engine.effects import Effects
from broker_core.engine.limits import Limits
from broker_core.engine.message import Header, Message, Reliability
from broker_core.engine.recovered import Recovered
from broker_core.engine.recovery import recover
from broker_core.engine.writes import Checkpoint
from broker_core.store.lease import LOCK
from broker_core.store.operations import progress
from broker_core.store.undo import end, keep

NOW = 1_800_000_000_000


class EngineNode:
    """`with EngineNode(dsn) as node:` answers as long as the block lasts, and shows its status as a node does."""

    def __init__(self, dsn: str, messages: dict[str, int] | None = None) -> None:
        """`messages`: how many lie on which address from the beginning."""
        self._dsn = dsn
        self._engine = recover(Recovered(epoch=1, clock_ms=NOW, checkpoint=Checkpoint(0, 0, 0)), Limits(undo_ms=3_600_000), "test")
        self._engine.apply(OpenPeer(1, "guest"), NOW)
        for address, number in (messages or {}).items():
            for _ in range(number):
                self._engine.apply(Send(1, None, address, Message(Header(b"", reliability=Reliability.ASSURED), b"x", 1)), NOW)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._answer, name="engine node")

    def __enter__(self) -> Self:
        self._connection = psycopg.connect(self._dsn, autocommit=True)
        self._connection.execute("LISTEN surety_control")
        self._connection.execute(f"SELECT pg_advisory_lock({LOCK}, 0)")
        self._connection.execute(
            """UPDATE surety.lease SET epoch = epoch + 1, holder_pid = pg_backend_pid(), node = 'node-1', acquired_at = clock_timestamp(),
                                       heartbeat_at = clock_timestamp() + interval '1 minute'"""
        )
        self._connection.execute(
            """INSERT INTO surety.node_status (shard, node, epoch, role, started_at, at, listeners, metrics)
               VALUES (0, 'node-1', (SELECT epoch FROM surety.lease), 'active', clock_timestamp(), clock_timestamp() + interval '1 minute',
                       '{"stomp": true}', '{"space_low": false}')"""
        )
        self._write(self._engine.flush(NOW, report=True))
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute("NOTIFY surety_control")
        self._thread.join()
        self._connection.close()

    def _answer(self) -> None:
        while not self._stop.is_set():
            waiting = self._connection.execute(
                "SELECT request, verb, address, arguments FROM surety.control_request WHERE answered_at IS NULL ORDER BY request"
            ).fetchall()
            for request, verb, address, arguments in waiting:
                self._engine.apply(Control(request, verb, address, arguments), NOW)
            self._write(self._engine.flush(NOW, report=True))
            for _ in self._connection.notifies(stop_after=1):
                pass

    def _write(self, effects: Effects) -> None:
        """What a store writes, less the messages."""
        with self._connection.transaction():
            for definition in effects.commit.definitions if effects.commit else ():
                if isinstance(definition, DestinationDefined):
                    self._define(definition)
                elif isinstance(definition, DestinationDestroyed):
                    self._connection.execute(
                        "UPDATE surety.destination SET destroyed_at = clock_timestamp() WHERE destination = %s", [definition.destination]
                    )
                elif isinstance(definition, SubscriptionDefined) and definition.name:
                    self._connection.execute(
                        "INSERT INTO surety.subscription (shard, subscription, destination, name, client_id, shared, selector, no_local, account) "
                        "VALUES (0, %s, %s, %s, %s, %s, %s, %s, %s)",
                        [
                            definition.subscription, definition.destination, definition.name, definition.client_id, definition.shared,
                            definition.selector, definition.no_local, definition.account,
                        ],
                    )  # fmt: skip
                elif isinstance(definition, UndoKept | UndoEnded):
                    for statement in keep(definition, 0, 1) if isinstance(definition, UndoKept) else end(definition, 0, NOW):
                        self._connection.execute(statement)
                else:
                    self._name(definition)
            for row in effects.statistics:
                self._connection.execute("DELETE FROM surety.destination_statistics WHERE destination = %s", [row.destination])
                tell_statistics(
                    self._connection, row.destination, row.address, depth=row.depth, octets=row.octets, consumers=row.consumers,
                    unsettled=row.unsettled, accepted=row.accepted, settled=row.settled, scheduled=row.scheduled, oldest_at=row.oldest_at,
                    state=row.state,
                )  # fmt: skip
            for statement in progress(effects.commit.operations, 0) if effects.commit and effects.commit.operations else ():
                self._connection.execute(statement)
            for request, done, result in effects.commit.answers if effects.commit else ():
                self._connection.execute(
                    "UPDATE surety.control_request SET answered_at = clock_timestamp(), done = %s, result = %s WHERE request = %s",
                    [done, json.dumps(result), request],
                )

    def _name(self, definition: object) -> None:
        """Aliases, and settings by pattern."""
        if isinstance(definition, AliasDeleted):
            self._connection.execute("DELETE FROM surety.alias WHERE address = %s", [definition.address])
        elif isinstance(definition, PolicyDropped):
            self._connection.execute("DELETE FROM surety.policy WHERE pattern = %s", [definition.pattern])
        elif isinstance(definition, AliasDefined):
            self._connection.execute("DELETE FROM surety.alias WHERE address = %s", [definition.address])
            self._connection.execute(
                "INSERT INTO surety.alias VALUES (0, %s, %s, %s, %s, %s)",
                [definition.address, definition.target, definition.default_reliability, definition.maximum_reliability, definition.reliability_override],
            )
        elif isinstance(definition, PolicyDefined):
            self._connection.execute("DELETE FROM surety.policy WHERE pattern = %s", [definition.pattern])
            self._connection.execute("INSERT INTO surety.policy VALUES (0, %s, %s)", [definition.pattern, json.dumps(definition.settings)])

    def _define(self, definition: DestinationDefined) -> None:
        self._connection.execute(
            """INSERT INTO surety.destination (shard, destination, address, created_at, automatic, state, settings)
               VALUES (0, %s, %s, %s, %s, %s, %s)
               ON CONFLICT (shard, destination) DO UPDATE SET automatic = EXCLUDED.automatic, state = EXCLUDED.state, settings = EXCLUDED.settings""",
            [
                definition.destination, definition.address, definition.created_at, definition.automatic, definition.state,
                json.dumps(definition.settings),
            ],
        )  # fmt: skip


def tell_statistics(
    connection: psycopg.Connection,
    destination: int,
    address: str,
    *,
    depth: int = 0,
    octets: int = 0,
    consumers: int = 0,
    unsettled: int = 0,
    accepted: int = 0,
    settled: int = 0,
    scheduled: int = 0,
    oldest_at: int | None = None,
    state: int = 0,
    waiting: int | None = 0,
    oldest_unsettled_at: int | None = None,
    waited: list[int] | None = None,
    died: list[int] | None = None,
) -> None:
    """One row as the node writes it."""
    connection.execute(
        """INSERT INTO surety.destination_statistics (shard, destination, address, depth, octets, consumers, unsettled, accepted_total,
                       settled_total, dead_total, expired_total, redelivered_total, scheduled, oldest_at, state, waiting, oldest_unsettled_at, waited, died)
           VALUES (0, %s, %s, %s, %s, %s, %s, %s, %s, 0, 0, 0, %s, %s, %s, %s, %s, %s, %s)""",
        [destination, address, depth, octets, consumers, unsettled, accepted, settled, scheduled, oldest_at, state, waiting,
         oldest_unsettled_at, waited, died],
    )
