"""Everything the engine answers. One Effects value a batch: a Commit (writes.py: what must be durable), outputs (outputs.py: what peers are told, in order,
only after the commit), reads (reads.py: pages it wants, to be read after the commit), and what operators see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .outputs import Output
from .reads import Read
from .upkeep import Maintenance
from .writes import Checkpoint, Commit


@dataclass(slots=True)
class DestinationStatistics:
    """What operators see of a destination; counts since creation, octets, ms."""

    destination: int
    address: str
    state: int
    automatic: bool
    depth: int
    octets: int
    consumers: int
    unsettled: int
    """Delivered and not yet acknowledged."""
    accepted: int
    settled: int
    dead: int
    expired: int
    redelivered: int
    scheduled: int
    """Delayed messages that are not due yet: in neither `depth` nor `octets`."""
    scheduled_octets: int
    oldest_at: int | None
    """When the oldest unsettled message was accepted; None: unknown or none."""
    waiting: int = 0
    """Sends that wait for room in it."""
    oldest_unsettled_at: int | None = None
    """Since when, to a second, a consumer holds what it has held longest; None: nobody holds anything."""
    waited: Sequence[int] = ()
    """Of acknowledged messages since recovery, by how long they had been there: observing.WAITED_MS, and the sum of ms behind. Empty: there were none."""
    died: Sequence[int] = ()
    """By observing.CAUSES, since recovery. Empty: none."""


@dataclass(slots=True)
class Death:
    """A message that died, for the log: nothing of what its sender said is in it but its identifier and where it was sent to."""

    message_id: str
    destination: str
    reason: str
    """As in JMS_SUN_DMQ_UNDELIVERED_REASON."""
    comment: str
    """The same as a sentence."""
    kept_in: str
    """The dead message queue that has it now; empty: it was discarded."""
    traceparent: str = ""
    """Of the trace that its sender said it belongs to (W3C); empty: none, or nothing that can be one."""


@dataclass(slots=True)
class Turned:
    """A send that was refused, for the log."""

    address: str
    account: str
    reason: str
    detail: str
    traceparent: str
    """As of a Death."""


@dataclass(slots=True)
class Effects:
    """What one batch amounts to. `commit` is None when nothing needs the database."""

    commit: Commit | None
    outputs: list[Output]
    reads: list[Read]
    discarded: list[int] = field(default_factory=list)
    """Large bodies of refused and of volatile messages that are over: no commit names them, nobody needs them any more."""
    checkpoint: Checkpoint | None = None
    """If one was asked for: to be written once `commit` is durable, as all that follows."""
    maintenance: list[Maintenance] = field(default_factory=list)
    statistics: list[DestinationStatistics] = field(default_factory=list)
    noted: list[Death | Turned] = field(default_factory=list)
    """What is to be in the log."""
    noted_more: int = 0
    """As many are beyond what one flush tells of."""
    dismissed: list[tuple[int, str]] = field(default_factory=list)
    """Connections that an operator closes, and what they are told."""
    given_up: list[tuple[int, str, int]] = field(default_factory=list)
    """Purges that cannot be undone any more as disk space is low: number, address, octets."""
    unlisted: list[int] = field(default_factory=list)
    """Temporary destinations that were in earlier statistics and have ended: nothing else says so, as no definition told that they were there."""

    @property
    def reports(self) -> bool:
        """There is something of a report in it."""
        return self.checkpoint is not None or bool(self.statistics or self.unlisted)
