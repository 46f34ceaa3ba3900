"""Two brokers and a wire between them that can be cut: what tests of foreign destinations, and others of a lost link, begin with."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.acceptance.operators import ask
from tests.acceptance.relay import Relay
from tests.support.certificates import certificate
from tests.support.service import Service, await_true

LINKED_SECONDS_MAX = 30
LINK = "elsewhere"


def define_link(service: Service, name: str = LINK, *, passcode: str = "guest", **attributes: Any) -> None:
    """As `console.services.foreign` writes it; in place of one that is there."""
    values = {"host": "127.0.0.1", "login": "guest", "heart_beat_ms": 1000, **attributes}
    with service.database() as connection:
        connection.execute(
            "INSERT INTO surety.foreign_link (name, attributes, passcode) VALUES (%s, %s, %s) "
            "ON CONFLICT (name) DO UPDATE SET attributes = EXCLUDED.attributes, passcode = EXCLUDED.passcode",
            [name, json.dumps(values), passcode],
        )


def links(service: Service, after: datetime | None = None) -> dict[tuple[str, str], dict[str, Any]]:
    """What the node that serves tells of its links, by name and direction; as old as a second, and nothing that it said before `after`."""
    with service.database() as connection:
        row = connection.execute(
            "SELECT metrics -> 'foreign' FROM surety.node_status WHERE role = 'active' AND at > coalesce(%s::timestamptz, '-infinity') "
            "ORDER BY at DESC LIMIT 1",
            [after],
        ).fetchone()
    return {(each["link"], each["direction"]): each for each in (row[0] or ())} if row is not None else {}


def await_link(service: Service, state: str, direction: str = "out", name: str = LINK, seconds: float = LINKED_SECONDS_MAX) -> dict[str, Any]:
    """What is told of it once it is in this state, by a report that is newer than the call: older ones may tell of the test before."""
    with service.database() as connection:
        (now,) = connection.execute("SELECT clock_timestamp()").fetchall()[0]
    told: dict[str, Any] = {}

    def arrived() -> bool:
        told.update(links(service, now).get((name, direction), {}))
        return told.get("state") == state

    await_true(arrived, seconds, f"link {name} ({direction}) is not {state}")
    return told


@dataclass
class Brokers:
    """`near` forwards what is sent to it; `far` gets it, by way of `wire`."""

    near: Service
    far: Service
    wire: Relay
    certificate: Path
    """Of `far`, for its TLS port."""

    def forward(self, queue: str, **settings: Any) -> None:
        """The queue of this name at `near` is foreign from now on: it is the one of the same name at `far`."""
        ask(self.near, "create", f"queue/{queue}", foreign_link=LINK, **settings)

    def take(self, far_address: str, address: str, **attributes: Any) -> None:
        """`near` takes what is at this address of `far` (as in /queue/a) into its own (as in queue/b)."""
        define_link(self.near, port=self.wire.port, takes={far_address: address}, **attributes)


@contextlib.contextmanager
def two_brokers(near: Service | None = None) -> Iterator[Brokers]:
    """A link from one to the other is defined. `near`: one that runs already."""
    with contextlib.ExitStack() as stack:
        near = near or stack.enter_context(Service())
        certified, key = certificate(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        far = stack.enter_context(Service(environment={"SURETY_TLS_CERT": str(certified), "SURETY_TLS_KEY": str(key)}))
        wire = stack.enter_context(Relay(far.stomp_port))
        define_link(near, port=wire.port)
        yield Brokers(near, far, wire, certified)
