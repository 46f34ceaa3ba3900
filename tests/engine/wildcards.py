"""What tests of subscriptions of patterns share."""

from __future__ import annotations

from broker_core.engine import commands as c
from tests.engine.rig import Bench

A, B, C = "topic/p.a", "topic/p.b", "topic/p.a.c"
PATTERN = "topic/p.*"


def bench(**how) -> Bench:
    """Peers 2 and 3 are the clients `two` and `three`."""
    made = Bench(**how)
    open_clients(made)
    return made


def open_clients(made: Bench) -> None:
    made.apply(c.Open(2, "guest", "two", "s2"), c.Open(3, "guest", "three"))


def restart(b: Bench) -> None:
    b.start()
    open_clients(b)


def durable(b: Bench, link: int = 1, *, peer: int = 2, name: str = "s", address: str = PATTERN, **how) -> list[str]:
    return b.attach(link, peer=peer, address=address, name=name, durable=True, **how)


def plain(b: Bench, link: int = 1, *, address: str = PATTERN, **how) -> list[str]:
    return b.attach(link, address=address, **how)


def publish(b: Bench, address: str, *bodies: str, **how) -> list[str]:
    return b.bodies(b.send(*bodies, address=address, **how))


def held(b: Bench, link: int = 1) -> list[str]:
    return [b.body(message) for message in b.engine.shard.links[link].unsettled.values()]


def members(b: Bench, address: str) -> int:
    return len(b.destination(address).subscriptions)
