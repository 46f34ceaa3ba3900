"""What the ledger says of one message, as far as who asks may look: a bounded walk over its commits, whose result says how far it came."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker_core.viewing import life as ledger
from broker_core.viewing.life import Life, Place
from console.permissions import BROWSE_HEADERS, may, sight
from console.selectors import destinations, node, subscriptions

from . import connections
from .audit import Actor, require
from .looking import Declined, NodeSilent, read
from .refusals import NotThere

SECONDS = 0.6
_IDENTITY = re.compile(r"ID:(?P<instance>[0-9A-Za-z]{1,64})-(?P<sequence>[0-9]{1,18})")
CONSUMERS_MAX = 5
"""Of those that are there still, about so many is asked whose they are."""


@dataclass(slots=True, frozen=True)
class Told:
    life: Life
    addresses: Mapping[int, str]
    """Of the destinations that are named, those that may be seen."""
    subscriptions: Mapping[int, str]
    """Names of durable ones; a queue's own has none."""
    epoch: int
    """The present term: consumers of others are gone."""
    consumers: Mapping[int, Mapping[str, Any]]
    """Of those of the present term that are connected still, what the node says."""


def life_of(
    actor: Actor, place: Place, *, subscription: int | None = None, accepted_at: int | None = None, upto: int = 0, seconds: float = SECONDS
) -> Told:
    """Of the message that is, or was, at that place: up to commit `upto` (0: the last). `subscription`: only its deliveries. `accepted_at`: about when it
    came there, in milliseconds. Raises PermissionDenied; NotThere: there is no such destination that the actor may see."""
    address = destinations.address_of(place.destination)
    if address is None or not sight(actor).shows(address):
        raise NotThere("There is no such destination.")
    require(actor, BROWSE_HEADERS, "browse", address, reads=True)
    known: dict[int, str] = {}

    def seen(destination: int) -> str:
        """Its address; empty: nothing of it may be told."""
        if destination not in known:
            found = destinations.address_of(destination)
            known[destination] = found if found and may(actor, BROWSE_HEADERS, found) else ""
        return known[destination]

    def concerned(destination: int) -> Sequence[int] | None:
        if not seen(destination):
            return None
        return [subscription] if subscription is not None and destination == place.destination else subscriptions.numbers_of(destination)

    found = ledger.life(read, time.monotonic, place, concerned, seconds, accepted_at=accepted_at, upto=upto)
    for event in found.events:
        if event.other is not None:
            seen(event.other.destination)
    epoch = node.node_status().epoch
    named = subscriptions.names_of([event.subscription for event in found.events if event.subscription])
    return Told(found, {number: told for number, told in known.items() if told}, named, epoch, _consumers(actor, found, epoch))


def place_of(actor: Actor, identity: str) -> tuple[int, str, str] | None:
    """The number and the address of the destination, and the key there, of the stored message to which this broker gave the identifier: where it came to
    first. None: there is none that the actor may see, or it is not found."""
    found = _IDENTITY.fullmatch(identity)
    if found is None or found["instance"] != node.instance():
        return None
    place = ledger.sought(read, time.monotonic, int(found["sequence"]), SECONDS)
    address = destinations.address_of(place.destination) if place is not None else None
    if place is None or address is None or not may(actor, BROWSE_HEADERS, address):
        return None
    return place.destination, address, f"{place.lane}-{place.position}"


def _consumers(actor: Actor, found: Life, epoch: int) -> dict[int, Mapping[str, Any]]:
    links = dict.fromkeys(event.value for event in found.events if event.kind == ledger.OFFERED and event.epoch == epoch and event.value)
    told: dict[int, Mapping[str, Any]] = {}
    for link in list(links)[:CONSUMERS_MAX]:
        try:
            consumer = connections.consumer(actor, link)
        except (NodeSilent, Declined):
            break
        if consumer is not None:
            told[link] = consumer
    return told


