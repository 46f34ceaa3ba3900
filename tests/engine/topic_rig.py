"""A topic on the bench: what its clients do, in a word each."""

from __future__ import annotations

from broker_core.engine import commands as c
from tests.engine.rig import Bench

TOPIC = "topic/prices"


def bench(**how) -> Bench:
    """Peers 2 and 3 are the clients `two` and `three`."""
    made = Bench(**how)
    open_clients(made)
    return made


def open_clients(made: Bench) -> None:
    made.apply(c.Open(2, "guest", "two"), c.Open(3, "guest", "three"))


def durable(b: Bench, link: int = 1, *, peer: int = 2, name: str = "s", **how) -> list[str]:
    return b.attach(link, peer=peer, address=TOPIC, name=name, durable=True, **how)


def plain(b: Bench, link: int = 1, **how) -> list[str]:
    return b.attach(link, address=TOPIC, **how)


def publish(b: Bench, *bodies: str, **how) -> list[str]:
    return b.bodies(b.send(*bodies, address=TOPIC, **how))


def restart(b: Bench) -> None:
    b.start()
    open_clients(b)


def rows(b: Bench) -> int:
    return len(list(b.database.tables.rows()))
