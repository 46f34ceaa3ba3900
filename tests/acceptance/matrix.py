"""What becomes of a message, by its delivery mode, its destination and what happens (checklist items 87 to 109): `python -m tests.acceptance.matrix`.

Every cell of the document's summary is run against really running processes and compared with what the document demands. A cell that says
"-" is one that cannot be: an active subscription has a consumer, an inactive one has none.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum
from itertools import product

from psycopg import Connection as Database
from psycopg import sql

from tests.support.clients import Connection, Frame, reconnect
from tests.support.service import Service

RETURN_SECONDS_MAX = 60
NAME = "d"
"""Of the durable subscriptions; each has a client identifier of its own."""
FIRST, AFTER, LAST = b"first", b"after the restart", b"last"


class Mode(Enum):
    PERSISTENT = "persistent"
    NON_PERSISTENT = "non-persistent"


class Target(Enum):
    QUEUE = "queue"
    ACTIVE = "durable subscription, active"
    INACTIVE = "durable subscription, inactive"
    NON_DURABLE = "non-durable subscription"


class Fate(Enum):
    PRESENT = "consumer present"
    ABSENT = "consumer absent"
    KILL = "node killed"
    SHUTDOWN = "planned restart"


RESTARTS = (Fate.KILL, Fate.SHUTDOWN)
Key = tuple[Mode, Target, Fate]

NEITHER = "-"
DELIVERED_SAVED, DELIVERED = "delivered, saved", "delivered, not saved"
ON_DISK, IN_MEMORY, NEVER = "kept on disk", "kept in memory", "never received"
SURVIVES, FLAGGED, LOST = "survives", "survives, flagged", "lost"
SUBSCRIPTION_ONLY = "lost, the subscription survives"

_DEMANDED = {
    # (mode, target): consumer present, consumer absent, any restart
    (Mode.PERSISTENT, Target.QUEUE): (DELIVERED_SAVED, ON_DISK, SURVIVES),
    (Mode.PERSISTENT, Target.ACTIVE): (DELIVERED_SAVED, NEITHER, FLAGGED),
    (Mode.PERSISTENT, Target.INACTIVE): (NEITHER, ON_DISK, SURVIVES),
    (Mode.PERSISTENT, Target.NON_DURABLE): (DELIVERED, NEVER, LOST),
    (Mode.NON_PERSISTENT, Target.QUEUE): (DELIVERED, IN_MEMORY, LOST),
    (Mode.NON_PERSISTENT, Target.ACTIVE): (DELIVERED, NEITHER, SUBSCRIPTION_ONLY),
    (Mode.NON_PERSISTENT, Target.INACTIVE): (NEITHER, IN_MEMORY, SUBSCRIPTION_ONLY),
    (Mode.NON_PERSISTENT, Target.NON_DURABLE): (DELIVERED, NEVER, LOST),
}
"""Item 109, with what items 99 to 108 say of where it is kept. Non-persistent to an active durable subscription is their consequence: kept in
memory until it is acknowledged."""
DEMANDED: dict[Key, str] = {
    (mode, target, fate): demanded
    for (mode, target), (present, absent, restart) in _DEMANDED.items()
    for fate, demanded in zip(Fate, (present, absent, restart, restart), strict=True)
}


@dataclass(slots=True)
class Trial:
    """One cell on a destination of its own."""

    service: Service
    mode: Mode
    target: Target
    fate: Fate
    consumer: Connection | None = None

    @property
    def destination(self) -> str:
        kind = "queue" if self.target is Target.QUEUE else "topic"
        return f"/{kind}/{self.mode.name}.{self.target.name}.{self.fate.name}"

    @property
    def durable(self) -> bool:
        return self.target in (Target.ACTIVE, Target.INACTIVE)

    # -- steps ----------------------------------------------------------------------------------------------------------------------
    def open(self) -> None:
        """A consumer comes, or comes back after the broker has hung up."""
        if self.consumer is not None:
            self.consumer.close()
        identity = {"client-id": self.destination} if self.durable else {}
        self.consumer = reconnect(self.service.stomp_port, RETURN_SECONDS_MAX, headers=identity)
        subscribe = {"id": "1", "destination": self.destination, "ack": "client-individual"}
        self.consumer.confirmed("SUBSCRIBE", subscribe | ({"durable-subscription-name": NAME} if self.durable else {}))

    def close(self) -> None:
        """It leaves."""
        assert self.consumer is not None
        self.consumer.disconnect()
        self.consumer = None

    def send(self, body: bytes) -> None:
        headers = {"destination": self.destination} | ({"persistent": "true"} if self.mode is Mode.PERSISTENT else {})
        with reconnect(self.service.stomp_port, RETURN_SECONDS_MAX) as producer:
            producer.confirmed("SEND", headers, body)

    def receive(self) -> Frame:
        assert self.consumer is not None
        return self.consumer.expect("MESSAGE")

    def received(self) -> list[Frame]:
        """All that was there for it: what is sent now comes behind it."""
        self.send(LAST)
        frames = []
        while (frame := self.receive()).body != LAST:
            frames.append(frame)
        return frames

    def is_saved(self) -> bool:
        with self.service.database() as database:
            return _rows(database, self.destination.lstrip("/")) > 0


def _rows(database: Database, address: str) -> int:
    """Of this destination in all segments, wherever a row may be."""
    segments = database.execute("SELECT shard, segment FROM surety.segment WHERE NOT spill").fetchall()
    tables = [sql.Identifier("surety", f"message_{shard}_{segment}") for shard, segment in segments]
    tables.append(sql.Identifier("surety", "retained"))
    count = sql.SQL("SELECT count(*) FROM {} WHERE destination = (SELECT destination FROM surety.destination WHERE address = %s)")
    found = (database.execute(count.format(table), [address]).fetchone() for table in tables)
    return sum(row[0] for row in found if row is not None)


# -- fates --------------------------------------------------------------------------------------------------------------------------
def present(trial: Trial) -> str:
    trial.open()
    trial.send(FIRST)
    frame = trial.receive()
    saved = trial.is_saved()
    assert trial.consumer is not None
    trial.consumer.confirmed("ACK", {"id": frame.headers["ack"]})
    trial.close()
    return DELIVERED_SAVED if saved else DELIVERED


def absent(trials: list[Trial]) -> dict[Key, str]:
    saved = {}
    for trial in trials:
        if trial.target is not Target.QUEUE:  # its subscription has begun, its consumer is gone
            trial.open()
            trial.close()
        trial.send(FIRST)
        saved[trial.destination] = trial.is_saved()
    for trial in trials:
        trial.open()
    found = {}
    for trial in trials:
        kept = ON_DISK if saved[trial.destination] else IN_MEMORY
        found[trial.mode, trial.target, trial.fate] = kept if [frame.body for frame in trial.received()] == [FIRST] else NEVER
        trial.close()
    return found


def restarted(service: Service, trials: list[Trial]) -> dict[Key, str]:
    """What was sent, and delivered where somebody was there, and not acknowledged; then the restart."""
    for trial in trials:
        if trial.target is not Target.QUEUE:
            trial.open()
        if trial.target is Target.INACTIVE:
            trial.close()
        trial.send(FIRST)
        if trial.consumer is not None:
            trial.receive()
    if trials[0].fate is Fate.KILL:
        service.kill("node")
    else:
        assert service.stop() == 0, service.evidence()
        service.start()
    for trial in trials:
        trial.send(AFTER)  # to a subscription that did not survive it does not come
    for trial in trials:
        trial.open()
    found = {}
    for trial in trials:
        found[trial.mode, trial.target, trial.fate] = _after_restart(trial, trial.received())
        trial.close()
    return found


def _after_restart(trial: Trial, frames: list[Frame]) -> str:
    bodies = [frame.body for frame in frames]
    first = [frame for frame in frames if frame.body == FIRST]
    kept = trial.target is not Target.NON_DURABLE
    if AFTER not in bodies and kept:
        return "neither message nor subscription survives"
    if len(bodies) > len(first) + kept:
        return f"received {bodies}"
    if first:
        return FLAGGED if first[0].headers.get("redelivered") == "true" else SURVIVES
    return SUBSCRIPTION_ONLY if trial.durable else LOST


def run(service: Service) -> dict[Key, str]:
    """What was found in each cell."""
    found = dict.fromkeys(DEMANDED, NEITHER)
    trials = [Trial(service, *key) for key, demanded in DEMANDED.items() if demanded != NEITHER]
    for trial in trials:
        if trial.fate is Fate.PRESENT:
            found[trial.mode, trial.target, trial.fate] = present(trial)
    found |= absent([trial for trial in trials if trial.fate is Fate.ABSENT])
    for fate in RESTARTS:
        found |= restarted(service, [trial for trial in trials if trial.fate is fate])
    return found


# -- the table ----------------------------------------------------------------------------------------------------------------------
def table(found: dict[Key, str]) -> str:
    """One line a row of the document; where a cell is not what is demanded, both."""
    head = ["message x target", *(fate.value for fate in Fate)]
    lines = [head, ["---"] * len(head)]
    for mode, target in product(Mode, Target):
        cells = [_cell(found[mode, target, fate], DEMANDED[mode, target, fate]) for fate in Fate]
        lines.append([f"{mode.value} x {target.value}", *cells])
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines)


def _cell(found: str, demanded: str) -> str:
    return found if found == demanded else f"WRONG: {found}; demanded: {demanded}"


def main() -> None:
    with Service() as service:
        found = run(service)
    print(table(found))
    sys.exit(found != DEMANDED)


if __name__ == "__main__":
    main()
